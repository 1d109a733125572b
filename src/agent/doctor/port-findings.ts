/** Which ports the agent is to listen on and cannot. */
import { createServer } from 'node:net';
import { type PortHolder, portHolder } from '../../linux/port-holder.ts';
import { errorText } from '../../telemetry/error-text.ts';
import type { Finding } from './finding.ts';

/** A port the agent is going to listen on. */
export interface WantedPort {
  /** What it serves: `the kubelet API`. */
  readonly server: string;
  readonly address: string;
  readonly port: number;
  /** The flag or field that changes it. */
  readonly setting: string;
}

/** `ownProgram`: what the command line of an agent of this installation holds; its ports are not taken. */
export async function portFindings(wanted: readonly WantedPort[], ownProgram: string): Promise<Finding[]> {
  const findings = await Promise.all(wanted.map((port) => findingFor(port, ownProgram)));
  return findings.filter((finding) => finding !== undefined);
}

async function findingFor(wanted: WantedPort, ownProgram: string): Promise<Finding | undefined> {
  const { server, address, port, setting } = wanted;
  const error = await tryToListen(address, port);
  if (!error) return undefined;
  const about = { check: 'port', severity: 'error', object: `${address}:${port}` } as const;
  if (error.code !== 'EADDRINUSE') {
    return {
      ...about,
      problem: `The port for ${server} cannot be used: ${errorText(error)}`,
      remedy: `Correct ${setting}`,
    };
  }
  const holder = await portHolder(port);
  if (holder?.commandLine.includes(ownProgram)) return undefined;
  return {
    ...about,
    problem: `The port for ${server} is taken${holder ? ` by ${inWords(holder)}` : ''}`,
    remedy: `End that program (another kubelet: systemctl disable --now kubelet), or change ${setting}`,
  };
}

function inWords({ pid, commandLine }: PortHolder): string {
  return `process ${pid} (${commandLine.join(' ').slice(0, 120)})`;
}

/** Listens for an instant; the error when that is not possible. */
function tryToListen(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
