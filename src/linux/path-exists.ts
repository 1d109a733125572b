/** Whether there is something at a path. */
import { lstat, stat } from 'node:fs/promises';

/**
 * False only when nothing is there; rejects when that cannot be told. Follows a symbolic link unless
 * `ofLink`: then a link is something, wherever it leads.
 */
export async function pathExists(path: string, { ofLink = false } = {}): Promise<boolean> {
  try {
    await (ofLink ? lstat(path) : stat(path));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
