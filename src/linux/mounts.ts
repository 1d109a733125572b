/**
 * The mount table of this process, and the few ways a node agent changes it. Reading gives what the kernel
 * says now; every change is idempotent, so it can be run again after a crash.
 */
import { isUtf8 } from 'node:buffer';
import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MountFlag, mount, SystemCallError, UnmountFlag, umount } from './syscalls.ts';

/** One line of /proc/self/mountinfo. */
export interface Mount {
  readonly id: number;
  readonly parentId: number;
  /** `major:minor` of the device. */
  readonly device: string;
  /** The directory of the file system that is shown here; not `/` for bind mounts and inside containers. */
  readonly root: string;
  readonly mountPoint: string;
  /** The mount point as the kernel has it, where it is not UTF-8 and `mountPoint` only shows it. */
  readonly mountPointBytes?: Buffer;
  readonly options: readonly string[];
  /** Propagation and such: `shared:2`, `master:1`, `unbindable`; empty for a private mount. */
  readonly tags: readonly string[];
  readonly type: string;
  readonly source: string;
  readonly superOptions: readonly string[];
}

/** Undoes the kernel's octal escapes (space, tab, line break, backslash): `\040` is a space. */
function unescape(text: string): Buffer {
  const plain = text.includes('\\')
    ? text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
    : text;
  return Buffer.from(plain, 'latin1');
}

/**
 * Reads mountinfo text, given as one character for each byte (`latin1`): paths may hold any bytes. Lines
 * that do not have the documented shape are left out.
 */
export function parseMountInfo(latin1: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of latin1.split('\n')) {
    const fields = line.split(' ');
    const separator = fields.indexOf('-', 6);
    if (separator < 0 || fields.length < separator + 4) continue;
    const bytes = unescape(fields[4]!);
    const mountPoint = bytes.toString();
    mounts.push({
      id: Number(fields[0]),
      parentId: Number(fields[1]),
      device: fields[2]!,
      root: unescape(fields[3]!).toString(),
      mountPoint,
      ...(isUtf8(bytes) ? {} : { mountPointBytes: bytes }),
      options: fields[5]!.split(','),
      tags: fields.slice(6, separator),
      type: fields[separator + 1]!,
      source: unescape(fields[separator + 2]!).toString(),
      superOptions: fields[separator + 3]!.split(','),
    });
  }
  return mounts;
}

/** The mount table, in the order the kernel keeps it: a mount stands after the one it covers. */
export async function readMounts(): Promise<Mount[]> {
  return parseMountInfo(await readFile('/proc/self/mountinfo', 'latin1'));
}

/** Whether `path` is `directory` or lies below it; both absolute and without `..`. */
export function isAtOrBelow(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`);
}

/** The mounts on `directory` and below it, in table order. Pure; `directory` must be a real path. */
export function mountsAtOrBelow(mounts: readonly Mount[], directory: string): Mount[] {
  return mounts.filter((candidate) => isAtOrBelow(candidate.mountPoint, directory));
}

/**
 * The path as the mount table spells it: links in the parent are resolved, the last element is kept as it
 * is, and a parent that does not exist leaves the path unchanged.
 */
export async function mountTablePath(path: string): Promise<string> {
  if (path === '/') return path;
  try {
    return join(await realpath(dirname(path)), basename(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return path;
    throw error;
  }
}

/** The uppermost mount on exactly `path`, if there is one. */
export async function mountAt(path: string): Promise<Mount | undefined> {
  const exact = await mountTablePath(path);
  return (await readMounts()).findLast((candidate) => candidate.mountPoint === exact);
}

/** Mounts a tmpfs on `target` unless one is already there. `options` are those of tmpfs(5): `size=…`. */
export async function mountTmpfs(target: string, options: readonly string[]): Promise<void> {
  await mountNew('tmpfs', target, options);
}

/** Mounts a hugetlbfs on `target` unless one is already there; `options` such as `pagesize=2097152`. */
export async function mountHugetlbfs(target: string, options: readonly string[]): Promise<void> {
  await mountNew('hugetlbfs', target, options);
}

async function mountNew(type: string, target: string, options: readonly string[]): Promise<void> {
  if ((await mountAt(target))?.type === type) return;
  await mount({ source: type, target, type, data: options.join(',') });
}

/**
 * Shows `source` at `target` as well (a bind mount; below it only with `recursive`). Mounting read-only is
 * a second step to the kernel, so a crash between the two is repaired by running this again.
 */
export async function bindMount(
  source: string,
  target: string,
  options: { readOnly?: boolean; recursive?: boolean } = {},
): Promise<void> {
  const flags = MountFlag.bind | (options.recursive ? MountFlag.recursive : 0);
  if ((await mountAt(target)) === undefined) await mount({ source, target, flags });
  if (options.readOnly) await remountBind(target, MountFlag.readOnly);
}

/** Changes the flags of the bind mount at `target`, for example to {@link MountFlag.readOnly}. */
async function remountBind(target: string, flags: number): Promise<void> {
  await mount({ source: 'none', target, flags: MountFlag.bind | MountFlag.remount | flags });
}

/**
 * Makes sure that what is mounted below `path` is shared with its copies in other mount namespaces, both
 * ways (what volumes with mount propagation need). Where the file system around it is not shared, `path`
 * becomes a mount point of its own; resolves with true then, and {@link unmount} undoes it.
 */
export async function makeSharedMount(path: string): Promise<boolean> {
  const exact = await mountTablePath(path);
  const around = enclosingMount(await readMounts(), exact);
  if (around?.tags.some((tag) => tag.startsWith('shared:'))) return false;
  if (around?.mountPoint !== exact)
    await mount({ source: exact, target: exact, flags: MountFlag.bind | MountFlag.recursive });
  await mount({ source: 'none', target: exact, flags: MountFlag.shared | MountFlag.recursive });
  return true;
}

/** The mount that `path`, a real path, lies in: the uppermost on the nearest mount point. Pure. */
export function enclosingMount(mounts: readonly Mount[], path: string): Mount | undefined {
  let nearest: Mount | undefined;
  for (const candidate of mounts) {
    const isNearer = candidate.mountPoint.length >= (nearest?.mountPoint.length ?? 0);
    if (isNearer && isAtOrBelow(path, candidate.mountPoint)) nearest = candidate;
  }
  return nearest;
}

/**
 * Unmounts what is mounted on `target`; false when nothing is. `detach` takes a busy mount out of the tree
 * at once and lets the kernel finish when its last user is gone.
 */
export async function unmount(target: string | Buffer, options: { detach?: boolean } = {}): Promise<boolean> {
  try {
    await umount(target, options.detach ? UnmountFlag.detach : 0);
    return true;
  } catch (error) {
    if (error instanceof SystemCallError && (error.code === 'EINVAL' || error.code === 'ENOENT')) {
      if (typeof target !== 'string' || (await mountAt(target)) === undefined) return false;
    }
    throw error;
  }
}

/** Something is still mounted where nothing may be. */
export class StillMountedError extends Error {
  override readonly name = 'StillMountedError';
  readonly mountPoints: readonly string[];

  constructor(directory: string, mountPoints: readonly string[], cause?: unknown) {
    super(
      `${mountPoints.length} mounts remain at or below ${directory}: ${mountPoints.slice(0, 5).join(', ')}; ` +
        'find what uses them (fuser -vm) or unmount them by hand, nothing was deleted',
      { cause },
    );
    this.mountPoints = mountPoints;
  }
}

/**
 * Unmounts everything on `directory` and below it, last mounted first, and proves it by the mount table.
 * Busy mounts are detached. Resolves with the mount points it took away; throws {@link StillMountedError}
 * when some stay.
 */
export async function unmountAtOrBelow(directory: string, signal?: AbortSignal): Promise<string[]> {
  const exact = await mountTablePath(directory);
  const gone: string[] = [];
  let lastError: unknown;
  // A shared mount may uncover others; each pass works from a fresh table.
  for (let pass = 0; pass < 5; pass++) {
    const present = mountsAtOrBelow(await readMounts(), exact);
    if (present.length === 0) return gone;
    for (const { mountPoint, mountPointBytes } of present.reverse()) {
      signal?.throwIfAborted();
      try {
        if (await unmountOrDetach(mountPointBytes ?? mountPoint)) gone.push(mountPoint);
      } catch (error) {
        lastError = error;
      }
    }
  }
  const remaining = mountsAtOrBelow(await readMounts(), exact).map((left) => left.mountPoint);
  if (remaining.length > 0) throw new StillMountedError(directory, remaining, lastError);
  return gone;
}

async function unmountOrDetach(mountPoint: string | Buffer): Promise<boolean> {
  try {
    return await unmount(mountPoint);
  } catch (error) {
    if (error instanceof SystemCallError && error.code === 'EBUSY')
      return await unmount(mountPoint, { detach: true });
    throw error;
  }
}
