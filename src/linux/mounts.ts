/**
 * The few ways a node agent changes what is mounted. Every change is idempotent, so it can be run again after
 * a crash.
 */
import { type Clock, systemClock } from '../concurrency/clock.ts';
import { enclosingMount, mountAt, mountsAtOrBelow, mountTablePath, readMounts } from './mount-table.ts';
import { MountFlag, mount, SystemCallError, UnmountFlag, umount } from './syscalls.ts';

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

/** How mounts are taken away; tests make it hang. */
export interface Unmounting {
  readonly unmount: typeof unmount;
  readonly clock: Clock;
}

const kernelUnmounting: Unmounting = { unmount, clock: systemClock };

/** A plain unmount writes back what is left to write, which ends well within this on a disk that works. */
const unmountMs = 10_000;

/** The kernel does not come back from taking a mount away. */
export class UnmountHangsError extends Error {
  override readonly name = 'UnmountHangsError';
  constructor(mountPoint: string) {
    super(
      `unmounting ${mountPoint} hangs; its file system does not answer (a server that is gone, a FUSE program ` +
        'that was stopped): bring it back, or restart the node',
    );
  }
}

/**
 * Unmounts everything on `directory` and below it, last mounted first, and proves it by the mount table.
 * Busy mounts, and those whose file system does not answer within ten seconds, are detached. Resolves with the
 * mount points it took away; throws {@link StillMountedError} when some stay, with {@link UnmountHangsError} as
 * its cause for one that cannot even be detached.
 */
export async function unmountAtOrBelow(
  directory: string,
  signal?: AbortSignal,
  how: Unmounting = kernelUnmounting,
): Promise<string[]> {
  const gone: string[] = [];
  const hung = new Set<string>();
  let lastError: unknown;
  // A shared mount may uncover others; each pass works from a fresh table.
  for (let pass = 0; pass < 5; pass++) {
    const present = await mountsAtOrBelow(directory);
    if (present.length === 0) return gone;
    for (const { mountPoint, mountPointBytes } of present.reverse()) {
      signal?.throwIfAborted();
      if (hung.has(mountPoint)) continue;
      try {
        if (await unmountOrDetach(mountPointBytes ?? mountPoint, how)) gone.push(mountPoint);
      } catch (error) {
        lastError = error;
        if (error instanceof UnmountHangsError) hung.add(mountPoint);
      }
    }
  }
  const remaining = (await mountsAtOrBelow(directory)).map((left) => left.mountPoint);
  if (remaining.length > 0) throw new StillMountedError(directory, remaining, lastError);
  return gone;
}

async function unmountOrDetach(mountPoint: string | Buffer, how: Unmounting): Promise<boolean> {
  try {
    return await within(how, mountPoint, how.unmount(mountPoint));
  } catch (error) {
    const isBusy = error instanceof SystemCallError && error.code === 'EBUSY';
    if (!isBusy && !(error instanceof UnmountHangsError)) throw error;
    return await within(how, mountPoint, how.unmount(mountPoint, { detach: true }));
  }
}

/** The call itself cannot be taken back; it ends when the kernel lets it. */
async function within<T>({ clock }: Unmounting, mountPoint: string | Buffer, call: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const cancel = clock.after(unmountMs, () => reject(new UnmountHangsError(String(mountPoint))));
  try {
    return await Promise.race([call, promise]);
  } finally {
    cancel();
    call.catch(() => {});
  }
}
