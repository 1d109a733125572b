/**
 * A part of a volume for one container. The workload owns what is in the volume, so its links may point
 * anywhere and change at any moment: the part is opened within the bounds of the volume by the kernel
 * itself, and what was opened, not its name, is bound to a place that only the agent can change.
 */
import { closeSync, constants, fstatSync, type Stats } from 'node:fs';
import { chmod, mkdir, open, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { mountAt } from '../linux/mount-table.ts';
import { bindMount, unmount } from '../linux/mounts.ts';
import { openat2, openPathOnly, Resolve } from '../linux/syscalls.ts';
import { ContainerMountError } from './container-mounts.ts';

/** Beyond these a path would leave the volume, by `..`, absolute links or /proc links. */
export const bounds = Resolve.beneath | Resolve.noMagicLinks;
const workingDirectory = -100;

/**
 * Shows `subPath` of the volume at `volumePath` on `target`; missing directories of it are made with the
 * mode of the volume's root. Can be run again: what is bound already and still the same stays.
 *
 * The error of the caller's container hides host paths; the cause has them.
 */
export async function bindSubPath(options: {
  volumePath: string;
  subPath: string;
  target: string;
  mountName: string;
  container: string;
}): Promise<void> {
  const { volumePath, subPath, target, mountName, container } = options;
  try {
    const volume = await openat2(workingDirectory, volumePath, { flags: openPathOnly, resolve: 0 });
    try {
      const part = await openPart(volume, subPath.split('/'));
      try {
        await bind(part, target);
      } finally {
        closeSync(part);
      }
    } finally {
      closeSync(volume);
    }
  } catch (cause) {
    throw new ContainerMountError(
      `failed to prepare subPath for volumeMount "${mountName}" of container "${container}"`,
      { cause },
    );
  }
}

/**
 * Opens `elements` below the opened directory `volume`, making directories that are missing. The caller closes
 * the result. Whatever the workload does meanwhile, what is opened and what is made lies in the volume.
 */
export async function openPart(volume: number, elements: readonly string[]): Promise<number> {
  const how = { flags: openPathOnly, resolve: bounds };
  const whole = await openat2(volume, elements.join('/'), how).catch(missing);
  if (whole !== undefined) return whole;

  // With the sticky bit of a volume in memory: users that share the directory keep their files apart there too.
  const mode = fstatSync(volume).mode & 0o7777;
  let parent = await openat2(volume, '.', how);
  for (let depth = 1; depth <= elements.length; depth++) {
    const path = elements.slice(0, depth).join('/');
    let child: number;
    try {
      child =
        (await openat2(volume, path, how).catch(missing)) ??
        (await makeDirectory(volume, parent, path, mode));
    } finally {
      closeSync(parent);
    }
    parent = child;
  }
  return parent;
}

async function makeDirectory(volume: number, parent: number, path: string, mode: number): Promise<number> {
  let created = true;
  // Through the descriptor: mkdir follows no link in its last element, and the parent is the one opened.
  await mkdir(`/proc/self/fd/${parent}/${basename(path)}`, { mode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    created = false;
  });
  // What stands there now may be a link that somebody put in its place; the bounds hold for it as well.
  const made = await openat2(volume, path, { flags: openPathOnly | constants.O_DIRECTORY, resolve: bounds });
  // Not by mkdir's mode: the umask would cut it. The setgid bit comes from the parent and stays.
  if (created) await chmod(`/proc/self/fd/${made}`, mode | (fstatSync(made).mode & 0o7000));
  return made;
}

async function bind(part: number, target: string): Promise<void> {
  const facts = fstatSync(part);
  if ((await mountAt(target)) !== undefined) {
    if (isSame(facts, await stat(target))) return;
    while (await unmount(target, { detach: true }));
  }
  await mkdir(dirname(target), { recursive: true, mode: 0o750 });
  if (facts.isDirectory()) await mkdir(target, { recursive: true, mode: 0o750 });
  else
    await (await open(target, constants.O_CREAT | constants.O_WRONLY | constants.O_NOFOLLOW, 0o640)).close();
  await bindMount(`/proc/self/fd/${part}`, target);
}

function isSame(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

function missing(error: { code?: string }): undefined {
  if (error.code === 'ENOENT') return undefined;
  throw error;
}
