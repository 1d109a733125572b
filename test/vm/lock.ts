import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Runs `action` while no other process holds the lock file at `path`, which names its holder's process id. A lock
 * left behind by a process that is gone is taken over. Waits as long as the holder lives.
 */
export async function withLock<T>(path: string, action: () => T): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  while (!taken(path)) await delay(200);
  try {
    return action();
  } finally {
    rmSync(path, { force: true });
  }
}

function taken(path: string): boolean {
  try {
    writeFileSync(path, `${process.pid}\n`, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const holder = statSync(path, { throwIfNoEntry: false }) && readFileSync(path, 'utf8').trim();
  // Empty for the instant between creation and the first byte.
  const gone =
    holder !== undefined && holder !== '' && !statSync(`/proc/${holder}`, { throwIfNoEntry: false });
  if (gone) rmSync(path, { force: true });
  return false;
}
