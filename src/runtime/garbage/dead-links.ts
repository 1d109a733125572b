/**
 * Links in the directory for log collectors (`/var/log/containers`) whose logs are gone. Only links into the
 * pods' logs are touched, and none of a container that the runtime still has: its log may just be rotated.
 */
import { lstat, readdir, readlink, unlink } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';

export interface DeadLinksOptions {
  readonly podLogsDirectory: string;
  readonly containerLogsDirectory: string;
  readonly isKnownContainer: (id: string) => boolean;
  readonly isKnownPod: (uid: string) => boolean;
}

/** Removes them; resolves to their names. */
export async function removeDeadLinks(options: DeadLinksOptions): Promise<string[]> {
  const { containerLogsDirectory } = options;
  const removed: string[] = [];
  for (const name of await readdir(containerLogsDirectory).catch(orNothing)) {
    if (!name.endsWith('.log')) continue;
    const link = join(containerLogsDirectory, name);
    const target = await readlink(link).catch(() => undefined);
    if (target === undefined || !isDisposable(name, target, options)) continue;
    const isThere = await lstat(target).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
    );
    if (isThere) continue;
    await unlink(link).catch(orNothing);
    removed.push(name);
  }
  return removed;
}

/** Whether a link may go if its log is gone. Long names are cut, and then end without a container's id. */
function isDisposable(name: string, target: string, options: DeadLinksOptions): boolean {
  const inside = relative(options.podLogsDirectory, target);
  const uid = /^[^_/]+_[^_/]+_([^_/]+)\//.exec(inside)?.[1];
  if (uid === undefined) return false;
  const id = /-([0-9a-f]{64})\.log$/.exec(basename(name))?.[1];
  return id === undefined ? !options.isKnownPod(uid) : !options.isKnownContainer(id);
}

function orNothing(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}
