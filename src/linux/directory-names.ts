/** What stands in a directory that need not be there. */
import { readdir } from 'node:fs/promises';

/** The names in `directory`; empty when it does not exist or is none. */
export async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw error;
  }
}
