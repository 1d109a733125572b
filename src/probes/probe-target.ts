/** Where a probe goes: host, port and command from the Pod. Pure. */
import { expandAll } from '../kubernetes/expansion.ts';
import type { Container, IntOrString, Probe } from '../kubernetes/types.ts';

/** The container instance a probe is for, as it is now. */
export interface ProbeSubject {
  readonly container: Container;
  readonly containerId: string;
  /** The pod's address, the node's for a pod on the host's network; absent while unknown. */
  readonly podIp: string | undefined;
}

/** The probe cannot be made as the Pod asks for it. */
export class ProbeTargetError extends Error {
  override readonly name = 'ProbeTargetError';
}

/** The host of an httpGet, tcpSocket or grpc probe. */
export function probeHost(host: string | undefined, { podIp, container }: ProbeSubject): string {
  if (host) return host;
  if (podIp) return podIp;
  throw new ProbeTargetError(`the pod of container ${container.name} has no IP address yet`);
}

/** A number, or the name of one of the container's ports. */
export function probePort(port: IntOrString, container: Container): number {
  const named = container.ports?.find(({ name }) => name === port)?.containerPort;
  const number = named ?? (typeof port === 'number' || /^\d+$/.test(port) ? Number(port) : undefined);
  if (number === undefined) {
    throw new ProbeTargetError(`container ${container.name} has no port named "${String(port)}"`);
  }
  if (number < 1 || number > 65_535) throw new ProbeTargetError(`port ${number} is not in 1 to 65535`);
  return number;
}

/** The command of an exec probe, with `$(NAME)` from the container's entries that have a plain value. */
export function probeCommand(probe: Probe, { env }: Container): string[] {
  const plain = new Map<string, string>();
  for (const { name, value, valueFrom } of env ?? []) {
    if (!valueFrom) plain.set(name, value ?? '');
  }
  return expandAll(probe.exec?.command, (name) => plain.get(name));
}
