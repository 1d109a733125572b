/**
 * How much a directory tree occupies, like du(1), at a bounded pace: a large volume must not keep the disk
 * or the program busy.
 */
import { lstat as lstatCallback, type Stats } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { type Clock, sleep } from '../concurrency/clock.ts';

export interface DirectoryUsage {
  /** Space occupied, in bytes (allocated blocks, not file lengths). */
  readonly bytes: number;
  /** Files, directories and links; a file with several names counts once. */
  readonly inodes: number;
}

/** Entries looked at together: one by one, each would cost several times as much. */
const batchSize = 64;
/** Entries looked at between two breaks. */
const sliceSize = 500;

/**
 * Walks `directory` without following links and without entering other file systems. Entries that vanish
 * meanwhile are not counted. A missing directory is 0. At most `entriesPerSecond` (default 10,000, a tenth of
 * a core) entries are looked at.
 */
export async function directoryUsage(
  directory: string,
  options: { clock: Clock; signal?: AbortSignal | undefined; entriesPerSecond?: number },
): Promise<DirectoryUsage> {
  const { clock, signal, entriesPerSecond = 10_000 } = options;
  const root = await lstat(directory).catch(absent);
  if (root === undefined) return { bytes: 0, inodes: 0 };
  let bytes = root.blocks * 512;
  let inodes = 1;
  const counted = new Set<number>();
  const pending = root.isDirectory() ? [directory] : [];
  let sliceStart = clock.now();
  let inSlice = 0;

  const count = async (paths: readonly string[]): Promise<void> => {
    signal?.throwIfAborted();
    for (const [index, facts] of (await lookAt(paths)).entries()) {
      if (facts === undefined || facts.dev !== root.dev) continue;
      if (facts.nlink > 1 && !facts.isDirectory()) {
        if (counted.has(facts.ino)) continue;
        counted.add(facts.ino);
      }
      bytes += facts.blocks * 512;
      inodes++;
      if (facts.isDirectory()) pending.push(paths[index]!);
    }
    inSlice += paths.length;
    if (inSlice < sliceSize) return;
    const early = sliceStart + (inSlice * 1000) / entriesPerSecond - clock.now();
    if (early > 0) await sleep(clock, early, signal);
    sliceStart = clock.now();
    inSlice = 0;
  };

  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const entries = await opendir(path, { bufferSize: 256 }).catch(absent);
    if (entries === undefined) continue;
    let batch: string[] = [];
    for await (const entry of entries) {
      if (batch.push(`${path}/${entry.name}`) < batchSize) continue;
      await count(batch);
      batch = [];
    }
    if (batch.length > 0) await count(batch);
  }
  return { bytes, inodes };
}

/** What stands at each of the paths; `undefined` where nothing does. */
function lookAt(paths: readonly string[]): Promise<(Stats | undefined)[]> {
  return new Promise((resolve, reject) => {
    const found: (Stats | undefined)[] = paths.map(() => undefined);
    let left = paths.length;
    paths.forEach((path, index) => {
      lstatCallback(path, (error, facts) => {
        if (!error) found[index] = facts;
        else if (!isAbsent(error)) return reject(error);
        if (--left === 0) resolve(found);
      });
    });
  });
}

/** ENAMETOOLONG: deeper than a path can say; what lies there cannot be reached by name. */
function isAbsent({ code }: NodeJS.ErrnoException): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG';
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (!isAbsent(error)) throw error;
}
