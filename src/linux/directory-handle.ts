/**
 * Walking trees that somebody else writes to: everything is reached through the descriptor of its directory,
 * so swapping a directory for a link while a walk is under way leads nowhere. Names are bytes.
 */
import { constants } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { openat2, Resolve } from './syscalls.ts';

const directoryOnly = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const within = Resolve.beneath | Resolve.noCrossDevice | Resolve.noSymlinks | Resolve.noMagicLinks;
const workingDirectory = -100;

/**
 * Opens the directory `name` in the directory `parent`, or at the path `name` without one. In a parent, links
 * are not followed (ELOOP, ENOTDIR) and other mounts not entered (EXDEV). The caller closes the descriptor.
 */
export async function openDirectory(parent: number | undefined, name: string | Buffer): Promise<number> {
  return parent === undefined
    ? await openat2(workingDirectory, name, {
        flags: constants.O_RDONLY | constants.O_DIRECTORY,
        resolve: 0,
      })
    : await openat2(parent, name, { flags: directoryOnly, resolve: within });
}

/** `/proc/self/fd/<n>/<name>` leads to exactly the opened directory, whatever its name is by now. */
export function entryPath(directory: number, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${directory}/`), name]);
}

/** The entries of an opened directory. Read in portions: it may hold millions. */
export async function* children(directory: number): AsyncGenerator<{ name: Buffer; isDirectory: boolean }> {
  const entries = await opendir(`/proc/self/fd/${directory}/`, {
    encoding: 'buffer' as BufferEncoding,
    bufferSize: 256,
  });
  for await (const entry of entries) {
    yield { name: entry.name as unknown as Buffer, isDirectory: entry.isDirectory() };
  }
}
