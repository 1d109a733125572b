/**
 * How much a directory tree occupies, like du(1), at a bounded pace: a large volume must not keep the disk
 * or the program busy.
 */
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../concurrency/clock.ts';

export interface DirectoryUsage {
  /** Space occupied, in bytes (allocated blocks, not file lengths). */
  readonly bytes: number;
  /** Files, directories and links; a file with several names counts once. */
  readonly inodes: number;
}

/** Entries looked at between two breaks. */
const sliceSize = 500;

/**
 * Walks `directory` without following links and without entering other file systems. Entries that vanish
 * meanwhile are not counted. A missing directory is 0. At most `entriesPerSecond` (default 50,000) entries
 * are looked at.
 */
export async function directoryUsage(
  directory: string,
  options: { clock: Clock; signal?: AbortSignal; entriesPerSecond?: number },
): Promise<DirectoryUsage> {
  const { clock, signal, entriesPerSecond = 50_000 } = options;
  const root = await lstat(directory).catch(absent);
  if (root === undefined) return { bytes: 0, inodes: 0 };
  let bytes = root.blocks * 512;
  let inodes = 1;
  const counted = new Set<number>();
  const pending = root.isDirectory() ? [directory] : [];
  let sliceStart = clock.now();
  let inSlice = 0;

  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const entries = await opendir(path, { bufferSize: 256 }).catch(absent);
    if (entries === undefined) continue;
    for await (const entry of entries) {
      signal?.throwIfAborted();
      const child = join(path, entry.name);
      const facts = await lstat(child).catch(absent);
      if (facts === undefined || facts.dev !== root.dev) continue;
      if (facts.nlink > 1 && !facts.isDirectory()) {
        if (counted.has(facts.ino)) continue;
        counted.add(facts.ino);
      }
      bytes += facts.blocks * 512;
      inodes++;
      if (facts.isDirectory()) pending.push(child);
      if (++inSlice >= sliceSize) {
        const due = sliceStart + (inSlice * 1000) / entriesPerSecond;
        const early = due - clock.now();
        if (early > 0) await sleep(clock, early, signal);
        sliceStart = clock.now();
        inSlice = 0;
      }
    }
  }
  return { bytes, inodes };
}

function absent(error: NodeJS.ErrnoException): undefined {
  // ENAMETOOLONG: deeper than a path can say; what lies there cannot be reached by name.
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'ENAMETOOLONG') return undefined;
  throw error;
}
