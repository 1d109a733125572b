/**
 * Files that are either the old or the new content, never a part of it: not for a reader, not after a
 * power cut.
 */
import { constants } from 'node:fs';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes to one path happen one after the other: they share the name of the temporary file. */
const writing = new Map<string, Promise<void>>();

/**
 * Replaces `path` with `content`: written to `<path>.tmp`, flushed, renamed, and the directory flushed. A
 * temporary file left by a crash is overwritten by the next write. `mode` is exact, whatever the umask.
 */
export async function writeFileAtomically(
  path: string,
  content: string | Uint8Array,
  options: { mode?: number } = {},
): Promise<void> {
  const former = writing.get(path) ?? Promise.resolve();
  const write = former.catch(() => {}).then(() => replace(path, content, options.mode ?? 0o600));
  writing.set(path, write);
  try {
    await write;
  } finally {
    if (writing.get(path) === write) writing.delete(path);
  }
}

async function replace(path: string, content: string | Uint8Array, mode: number): Promise<void> {
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  try {
    try {
      await file.chmod(mode);
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes renames, creations and removals in a directory survive a power cut. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** The file's text, or undefined when there is no such file. */
export async function readFileIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
