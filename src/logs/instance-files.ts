/**
 * The files of one instance of a container, opened so that nothing is missed and nothing comes twice while
 * rotation renames, compresses and removes them.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LogFile } from './log-file.ts';
import { rotatedNames, splitLogPath } from './log-file-name.ts';
import { firstTime, sinceStart, TailSearch } from './log-start.ts';

export interface InstanceFiles {
  /** The file that is written to; undefined for the moment between its rotation and the next one's making. */
  readonly live: LogFile | undefined;
  /** Paths of the rotated parts without `.gz`, oldest first, all of them older than `live`. */
  readonly rotated: readonly string[];
}

/** What to begin with; without either, the oldest line there is. */
export interface LogStart {
  readonly tailLines?: number;
  readonly sinceMs?: number;
}

export interface OpenLog {
  readonly file: LogFile;
  readonly offset: number;
}

/** Rotation takes a few system calls; more tries in a row mean that the directory is not what it should be. */
const mostTries = 20;

/** Opens the live file and lists the parts before it as they are at one moment. The caller closes `live`. */
export async function openInstance(path: string): Promise<InstanceFiles> {
  const { directory, live: name } = splitLogPath(path);
  for (let attempt = 1; ; attempt++) {
    const live = await LogFile.open(path);
    const rotated = rotatedNames(await namesIn(directory), name).map((part) => join(directory, part.name));
    if (!live || (await live.isAt(path))) return { live, rotated };
    await live.close();
    if (attempt === mostTries) throw new Error(`the log ${path} is replaced again and again`);
  }
}

/** Opens a rotated part under the name it has now; undefined when rotation has removed it. */
export async function openRotated(path: string): Promise<LogFile | undefined> {
  // Compressing makes the new name before it removes the old one.
  return (await LogFile.open(path)) ?? (await LogFile.open(`${path}.gz`));
}

/**
 * Opens the parts of an instance that `start` asks for, oldest first, and says where to begin in each. The
 * caller closes them; `files.live`, when there is one, is always among them, as the last.
 */
export async function openFrom(files: InstanceFiles, start: LogStart): Promise<OpenLog[]> {
  const tail = start.tailLines === undefined ? undefined : new TailSearch(start.tailLines);
  const opened: OpenLog[] = [];
  const waiting = [...files.rotated];
  try {
    for (let file = files.live ?? (await nextOlder(waiting)); file; file = await nextOlder(waiting)) {
      opened.unshift({ file, offset: 0 });
      const offset = await beginning(file, start, tail);
      if (offset === undefined) continue;
      opened[0] = { file, offset };
      break;
    }
    return opened;
  } catch (error) {
    await closeAll(opened.filter(({ file }) => file !== files.live));
    throw error;
  }
}

async function nextOlder(waiting: string[]): Promise<LogFile | undefined> {
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = await openRotated(path);
    if (file) return file;
  }
  return undefined;
}

/** Undefined when what is asked for begins in an older file. */
async function beginning(
  file: LogFile,
  { sinceMs }: LogStart,
  tail?: TailSearch,
): Promise<number | undefined> {
  if (tail) return await tail.startIn(file);
  if (sinceMs === undefined) return undefined;
  const time = await firstTime(file);
  return time === undefined || time >= sinceMs ? undefined : await sinceStart(file, sinceMs);
}

export async function closeAll(logs: readonly OpenLog[]): Promise<void> {
  await Promise.all(logs.map(({ file }) => file.close()));
}

export async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
