/**
 * Gives a volume to the pod's `fsGroup`, so that containers of any user can write to it.
 */
import { chmod, lchown, lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';

const fileBits = 0o660;
const directoryBits = 0o770;
const setGid = 0o2000;

/**
 * Sets the group of `directory` and everything in it, and adds the permissions a group needs: 0660 to
 * files, 0770 and setgid to directories. Links get the group, what they point to is left alone. The root
 * comes last, so an interrupted run shows.
 */
export async function applyFsGroup(directory: string, group: number, signal: AbortSignal): Promise<void> {
  const directories = [directory];
  for (let next = 0; next < directories.length; next++) {
    const parent = directories[next]!;
    for await (const entry of await opendir(parent)) {
      signal.throwIfAborted();
      const path = join(parent, entry.name);
      if (entry.isDirectory()) directories.push(path);
      else await give(path, group);
    }
  }
  for (const path of directories.reverse()) await give(path, group);
}

async function give(path: string, group: number): Promise<void> {
  const facts = await lstat(path);
  await lchown(path, facts.uid, group);
  if (facts.isSymbolicLink()) return;
  const bits = facts.isDirectory() ? directoryBits | setGid : fileBits;
  // chown takes setuid and setgid away, so the mode is written even when it looks complete.
  await chmod(path, (facts.mode & 0o7777) | bits);
}
