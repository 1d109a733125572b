/**
 * Debian's `docker-registry` on loopback, with passwords. The package is unpacked beside the checkout, not
 * installed: it would start at every boot of the machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { findProgram, runCommand } from '../../scripts/machine/command.ts';
import { updatePackageLists } from '../../scripts/machine/install-packages.ts';

/** Users with their passwords, and the hashes of these (bcrypt) as the registry wants them. */
export const users = {
  alice: {
    password: 'alice-secret',
    hash: '$2b$04$1mmTAl2sihrisPm7D.IrROtdakMpLHgTSqaqZebOloiFrzSR31U7.',
  },
  bob: {
    password: 'bob-secret',
    hash: '$2b$04$o/J7h.JXNKHZVp6jcXiLqO5wgNOFXdeIZTRJ1P3c5vyTA8XfGSgMS',
  },
} as const;

const toolDirectory = join(import.meta.dirname, '../../.cache/tools');

/** The program's path; the first call may download the package. */
export async function registryProgram(): Promise<string> {
  const unpacked = join(toolDirectory, 'docker-registry');
  const known = findProgram('docker-registry') ?? (existsSync(unpacked) ? unpacked : undefined);
  if (known !== undefined) return known;
  const work = join(toolDirectory, `registry-${process.pid}`);
  mkdirSync(work, { recursive: true });
  try {
    const download = ['-q', '-o', 'APT::Sandbox::User=root', 'download', 'docker-registry'];
    await runCommand('apt-get', download, { cwd: work, timeout: 300_000 }).catch(async () => {
      await updatePackageLists();
      await runCommand('apt-get', download, { cwd: work, timeout: 300_000 });
    });
    const archive = readdirSync(work).find((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error(`apt-get download left no archive in ${work}`);
    await runCommand('dpkg-deb', ['--extract', join(work, archive), work]);
    renameSync(join(work, 'usr/bin/docker-registry'), unpacked);
    return unpacked;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

export interface Registry {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts it with its data in `directory`; resolves when it answers. */
export async function startRegistry(program: string, directory: string): Promise<Registry> {
  const port = await freePort();
  const passwords = join(directory, 'htpasswd');
  const configuration = join(directory, 'config.json');
  mkdirSync(directory, { recursive: true });
  writeFileSync(
    passwords,
    Object.entries(users)
      .map(([name, { hash }]) => `${name}:${hash}\n`)
      .join(''),
  );
  // Its YAML takes JSON as well.
  writeFileSync(
    configuration,
    JSON.stringify({
      version: '0.1',
      log: { level: 'error' },
      storage: { filesystem: { rootdirectory: join(directory, 'data') } },
      http: { addr: `127.0.0.1:${port}` },
      auth: { htpasswd: { realm: 'test', path: passwords } },
    }),
  );
  const child = spawn(program, ['serve', configuration], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4096)));
  const stop = () => end(child);
  try {
    for (let tries = 0; ; tries++) {
      const answer = await fetch(`http://127.0.0.1:${port}/v2/`).catch(() => undefined);
      if (answer?.status === 401) return { port, stop };
      if (tries > 300 || child.exitCode !== null) throw new Error(`the registry does not answer: ${said}`);
      await pause(100);
    }
  } catch (error) {
    await stop();
    throw error;
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
}
