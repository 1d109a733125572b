/**
 * Reads one manifest file without trusting it: a pipe, socket or device is refused unopened, a file that
 * is too large is refused unread, one that grows while it is read is cut off at the limit. Never blocks on
 * what is behind a name, never throws.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, stat } from 'node:fs/promises';

/** Largest manifest read, bytes; the kubelet's own limit for files and URLs. */
export const maxManifestBytes = 10 * 1024 * 1024;

export type FileLook =
  | { readonly kind: 'absent' }
  | { readonly kind: 'directory' }
  /** `fingerprint` changes when the file does; `changedAt` is the inode change time, epoch ms. */
  | {
      readonly kind: 'file';
      readonly fingerprint: string;
      readonly inode: string;
      readonly changedAt: number;
    }
  | FileRefused;

export interface FileRefused {
  readonly kind: 'refused';
  readonly reason: string;
  readonly remedy: string;
}

export type FileRead =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'read';
      readonly content: Uint8Array;
      readonly fingerprint: string;
      readonly inode: string;
      readonly changedAt: number;
      /** True when the file changed under the reading: the content may be a mixture. */
      readonly moved: boolean;
    }
  | FileRefused;

/** What stands behind a path, following symbolic links, without opening it. */
export async function lookAtFile(path: string): Promise<FileLook> {
  try {
    return judge(await stat(path, { bigint: true }));
  } catch (error) {
    const look = failed(error);
    return look.kind === 'absent' ? await absentOrDangling(path) : look;
  }
}

/** A link to nothing is not an absent file: its name is still there, so its pod is still meant. */
async function absentOrDangling(path: string): Promise<FileLook> {
  try {
    await lstat(path);
    return refused('it is a symbolic link to a file that does not exist', 'Remove or repair the link');
  } catch (error) {
    return failed(error);
  }
}

/** The content of a regular file of at most {@link maxManifestBytes}. */
export async function readManifestFile(path: string): Promise<FileRead> {
  const look = await lookAtFile(path);
  if (look.kind === 'directory') return { kind: 'absent' };
  if (look.kind !== 'file') return look;
  let file: FileHandle;
  try {
    // The name may mean something else by now; NONBLOCK keeps even a pipe from holding us.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    return failed(error);
  }
  try {
    return await readOpened(file);
  } catch (error) {
    return failed(error);
  } finally {
    await file.close().catch(() => {});
  }
}

async function readOpened(file: FileHandle): Promise<FileRead> {
  const before = judge(await file.stat({ bigint: true }));
  if (before.kind === 'directory') return { kind: 'absent' };
  if (before.kind !== 'file') return before;
  const content = await readUpTo(file, maxManifestBytes + 1);
  if (content.length > maxManifestBytes) return tooLarge(BigInt(content.length));
  const after = judge(await file.stat({ bigint: true }));
  const { fingerprint, inode, changedAt } = after.kind === 'file' ? after : before;
  return { kind: 'read', content, fingerprint, inode, changedAt, moved: fingerprint !== before.fingerprint };
}

async function readUpTo(file: FileHandle, limit: number): Promise<Uint8Array> {
  let buffer = new Uint8Array(16 * 1024);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) return buffer.subarray(0, length);
    length += bytesRead;
    if (length >= limit) return buffer.subarray(0, length);
    if (length === buffer.length) {
      const larger = new Uint8Array(Math.min(buffer.length * 4, limit));
      larger.set(buffer);
      buffer = larger;
    }
  }
}

interface BigStats {
  isDirectory(): boolean;
  isFile(): boolean;
  isFIFO(): boolean;
  isSocket(): boolean;
  dev: bigint;
  ino: bigint;
  size: bigint;
  mtimeNs: bigint;
  ctimeNs: bigint;
}

function judge(stats: BigStats): Exclude<FileLook, { kind: 'absent' }> {
  if (stats.isDirectory()) return { kind: 'directory' };
  if (!stats.isFile()) {
    const what = stats.isFIFO() ? 'a pipe' : stats.isSocket() ? 'a socket' : 'a device';
    return refused(`it is ${what}, not a regular file`, 'Put a regular file there or remove it');
  }
  if (stats.size > BigInt(maxManifestBytes)) return tooLarge(stats.size);
  const { dev, ino, size, mtimeNs, ctimeNs } = stats;
  return {
    kind: 'file',
    fingerprint: `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`,
    inode: `${dev}:${ino}`,
    changedAt: Number(ctimeNs / 1_000_000n),
  };
}

function tooLarge(size: bigint): FileRefused {
  return refused(
    `it has ${size} bytes or more; a manifest may have at most ${maxManifestBytes} (10 MiB)`,
    'Remove what does not belong into a Pod manifest',
  );
}

function failed(error: unknown): FileRefused | { kind: 'absent' } {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
      return { kind: 'absent' };
    case 'ELOOP':
      return refused('it is a symbolic link that leads back to itself', 'Remove or repair the link');
    case 'EACCES':
    case 'EPERM':
      return refused('permission to read it is denied', 'Let the user of the kubelet read the file');
    default:
      return refused(`it cannot be read: ${message}`, 'Check the file and the disk it lies on');
  }
}

function refused(reason: string, remedy: string): FileRefused {
  return { kind: 'refused', reason, remedy };
}
