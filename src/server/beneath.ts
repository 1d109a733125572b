/**
 * Opens files and directories below a root, and never anything else: whatever symbolic links lead to, and
 * whoever changes them meanwhile. Links that stay below the root are followed, also absolute ones, as
 * `/var/log/containers` has them. What is neither a file nor a directory is not opened: reading a pipe may hang,
 * and opening a device may do harm.
 */
import { close, constants, fstat } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { openat2, openPathOnly, Resolve } from '../linux/syscalls.ts';

const workingDirectory = -100;
/** Links have been followed before: one that turns up now has been put there since. */
const bounds = Resolve.beneath | Resolve.noSymlinks | Resolve.noMagicLinks;
/** The last is Node's, for a path with a NUL in it. */
const nowhere = new Set([
  'ENOENT',
  'ENOTDIR',
  'ELOOP',
  'EXDEV',
  'ENAMETOOLONG',
  'EACCES',
  'ERR_INVALID_ARG_VALUE',
]);

export interface FileBeneath {
  readonly kind: 'file';
  readonly file: FileHandle;
  readonly size: number;
  readonly modified: Date;
}

export type FoundBeneath =
  | FileBeneath
  /** Its real place, for listing. */
  | { readonly kind: 'directory'; readonly path: string };

/** Undefined when there is nothing of the kind below `root`. The caller closes `file`. */
export async function openBeneath(root: string, path: string): Promise<FoundBeneath | undefined> {
  try {
    return await find(root, path);
  } catch (error) {
    if (nowhere.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

async function find(root: string, path: string): Promise<FoundBeneath | undefined> {
  const top = await realpath(root);
  const real = await realpath(resolve(top, path));
  const inside = relative(top, real);
  if (inside === '..' || inside.startsWith('../')) return undefined;
  const directory = await openat2(workingDirectory, top, {
    flags: openPathOnly | constants.O_DIRECTORY,
    resolve: Resolve.noSymlinks,
  });
  try {
    const part = await openat2(directory, inside || '.', { flags: openPathOnly, resolve: bounds });
    try {
      return await reopened(part, real);
    } finally {
      await promisify(close)(part);
    }
  } finally {
    await promisify(close)(directory);
  }
}

async function reopened(part: number, real: string): Promise<FoundBeneath | undefined> {
  const facts = await promisify(fstat)(part);
  if (facts.isDirectory()) return { kind: 'directory', path: real };
  if (!facts.isFile()) return undefined;
  const file = await open(`/proc/self/fd/${part}`, constants.O_RDONLY);
  return { kind: 'file', file, size: facts.size, modified: facts.mtime };
}
