/**
 * Answers queries for the logs of services: from systemd's journal where that knows the service, else from its
 * file below the log directory. `journalctl` is run with arguments, never through a shell, and killed with the
 * client's leaving or when time is up.
 *
 * Differs from the kubelet: times are handed on as points in time, not as text of the client's time zone; a name
 * must be that of a unit, not a part of it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Clock } from '../concurrency/clock.ts';
import { openBeneath } from './beneath.ts';
import type { Exchange } from './route.ts';
import type { ServiceLogQuery } from './system-log-query.ts';

export interface ServiceLogOptions {
  /** `/var/log`. */
  readonly directory: string;
  /** Where `journalctl` is looked for: a `PATH`. */
  readonly searchPath: string;
  readonly clock: Clock;
}

/** For a whole answer. */
const timeoutMs = 30_000;

/** Resolves when the answer is complete, however it ended. */
export async function sendServiceLogs(
  query: ServiceLogQuery,
  { response, headers, signal, method }: Pick<Exchange, 'response' | 'headers' | 'signal' | 'method'>,
  options: ServiceLogOptions,
): Promise<void> {
  const isGzip = headers['accept-encoding'] === 'gzip';
  response.writeHead(200, {
    'content-type': 'text/plain;charset=UTF-8',
    'x-content-type-options': 'nosniff',
    ...(isGzip && { 'content-encoding': 'gzip' }),
  });
  if (method === 'HEAD') return void response.end();
  const time = new AbortController();
  const cancel = options.clock.after(timeoutMs, () => time.abort());
  const limit = AbortSignal.any([signal, time.signal]);
  const text = new PassThrough();
  const sent = isGzip ? pipeline(text, createGzip({ level: 1 }), response) : pipeline(text, response);
  // Who leaves early needs no end; `signal` has told.
  sent.catch(() => text.destroy());
  try {
    await writeLogs(query, text, { ...options, limit });
  } catch (error) {
    if (!limit.aborted) throw error;
    if (!signal.aborted) text.write(`\nnot all of it: no end within ${timeoutMs / 1000} s\n`);
  } finally {
    cancel();
  }
  text.end();
  await sent.catch(() => {});
}

type Limited = ServiceLogOptions & { readonly limit: AbortSignal };

async function writeLogs(query: ServiceLogQuery, text: Writable, options: Limited): Promise<void> {
  const units = await journaledUnits(options);
  const unitOf = (service: string) => [`${service}.service`, service].find((unit) => units.has(unit));
  const journaled = query.services.flatMap((service) => unitOf(service) ?? []);
  const inFiles = query.services.filter((service) => unitOf(service) === undefined);
  if (journaled.length > 0) await writeJournal({ ...query, services: journaled }, text, options);
  if (inFiles.length === 0) return;
  const { services: _, ...switches } = query;
  if (Object.keys(switches).some((name) => name !== 'kind')) {
    const names = inFiles.join(', ');
    text.write(`\n${names}: not in the journal, and a log file is sent as it is; ask without options\n`);
    return;
  }
  for (const service of inFiles) await writeFileLog(service, text, options);
}

/** Units that the journal has lines of; none where there is no journal. */
async function journaledUnits(options: Limited): Promise<ReadonlySet<string>> {
  const units = new Set<string>();
  const child = journalctl(['--field=_SYSTEMD_UNIT'], options);
  const ended = endOf(child);
  // A pipe that nobody reads would stop it once it is full.
  child.stderr!.resume();
  for await (const unit of createInterface({ input: child.stdout! })) units.add(unit);
  await ended;
  options.limit.throwIfAborted();
  return units;
}

async function writeJournal(query: ServiceLogQuery, text: Writable, options: Limited): Promise<void> {
  const { services, since, until, tailLines, pattern, boot } = query;
  const child = journalctl(
    [
      '--utc',
      '--no-pager',
      '--output=short-precise',
      ...(since === undefined ? [] : [`--since=@${since}`]),
      ...(until === undefined ? [] : [`--until=@${until}`]),
      ...(tailLines === undefined ? [] : [`--lines=${tailLines}`]),
      ...services.map((unit) => `--unit=${unit}`),
      ...(pattern === undefined ? [] : [`--grep=${pattern}`, '--case-sensitive=false']),
      ...(boot === undefined ? [] : [`--boot=${boot}`]),
    ],
    options,
  );
  const ended = endOf(child);
  await Promise.all([copy(child.stdout!, text, options.limit), copy(child.stderr!, text, options.limit)]);
  if ((await ended) === 'not run') text.write('\nthe journal cannot be read: journalctl does not start\n');
}

function journalctl(args: readonly string[], { searchPath, limit }: Limited): ChildProcess {
  return spawn('journalctl', args, {
    env: { PATH: searchPath, LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: limit,
    killSignal: 'SIGKILL',
  });
}

/** Never rejects. */
function endOf(child: ChildProcess): Promise<'run' | 'not run'> {
  return new Promise((resolve) => {
    child.once('close', () => resolve('run'));
    child.on('error', () => {
      if (child.pid === undefined) resolve('not run');
    });
  });
}

async function copy(from: Readable, text: Writable, limit: AbortSignal): Promise<void> {
  await pipeline(from, text, { end: false, signal: limit });
}

/** The first of `NAME`, `NAME.log` and `NAME/NAME.log` that is a file. */
async function writeFileLog(service: string, text: Writable, { directory, limit }: Limited): Promise<void> {
  for (const path of [service, `${service}.log`, `${service}/${service}.log`]) {
    const found = await openBeneath(directory, path);
    if (found?.kind !== 'file') continue;
    try {
      // What is written meanwhile is not waited for.
      if (found.size === 0) return;
      const content = found.file.createReadStream({ start: 0, end: found.size - 1, autoClose: false });
      return await copy(content, text, limit);
    } finally {
      await found.file.close();
    }
  }
  text.write(`\n${service}: neither in the journal nor a file below ${directory}\n`);
}
