/**
 * Reads a file that a workload has written to its volume (`fileKeyRef`). The workload may have put anything
 * there: links that lead out of the volume, pipes that never end, files without bounds.
 */
import { closeSync, constants, fstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { openat2, openPathOnly, Resolve } from '../linux/syscalls.ts';
import { safeFilePath } from './atomic-writer.ts';

/** A file of a volume cannot be read. */
export class VolumeFileError extends Error {
  override readonly name = 'VolumeFileError';
  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`cannot read ${JSON.stringify(path)}: ${problem}`, options);
  }
}

/** Larger than any env file the API allows. */
const largestFile = 2 ** 20;
const bounds = Resolve.beneath | Resolve.noMagicLinks;
const workingDirectory = -100;

/** The text of the file; `undefined` when there is none. Throws {@link VolumeFileError}. */
export async function readVolumeFile(volumePath: string, path: string): Promise<string | undefined> {
  const name = checkedPath(path);
  const volume = await openat2(workingDirectory, volumePath, { flags: openPathOnly, resolve: 0 }).catch(
    missing,
  );
  if (volume === undefined) return undefined;
  try {
    // Opened without touching it at first: opening a pipe or a device may do harm.
    const part = await openat2(volume, name, { flags: openPathOnly, resolve: bounds }).catch(missing);
    if (part === undefined) return undefined;
    try {
      return await read(part, path);
    } finally {
      closeSync(part);
    }
  } catch (cause) {
    if (cause instanceof VolumeFileError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    const leaves = code === 'EXDEV' || code === 'ELOOP';
    const problem = leaves ? 'its path leads out of the volume' : (code ?? (cause as Error).message);
    throw new VolumeFileError(path, problem, { cause });
  } finally {
    closeSync(volume);
  }
}

function checkedPath(path: string): string {
  try {
    return safeFilePath(path);
  } catch (cause) {
    throw new VolumeFileError(path, (cause as Error).message, { cause });
  }
}

async function read(part: number, path: string): Promise<string> {
  const facts = fstatSync(part);
  if (!facts.isFile()) throw new VolumeFileError(path, 'it is not a regular file');
  if (facts.size > largestFile) {
    throw new VolumeFileError(path, `it is larger than the ${largestFile} bytes an env file may have`);
  }
  const file = await open(`/proc/self/fd/${part}`, constants.O_RDONLY);
  try {
    // A file that grows while it is read ends where it ended before.
    const { buffer, bytesRead } = await file.read(Buffer.alloc(facts.size), 0, facts.size, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

function missing(error: { code?: string }): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
  throw error;
}
