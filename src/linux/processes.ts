/** Processes as /proc shows them. A pid alone may be another process a moment later; pid and start are not. */
import { readFile } from 'node:fs/promises';
import { uptime } from 'node:os';

/** USER_HZ, which the kernel fixes at 100 for everything in /proc. */
const ticksPerSecond = 100;

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  /** Pid of the session's leader. */
  readonly session: number;
  /** When it started, clock ticks since boot. */
  readonly startTicks: number;
  /** It has ended and waits for its parent to notice. */
  readonly isZombie: boolean;
  /** It is process 1 of a pid namespace below this one, where orphans become its children. */
  readonly isNamespaceInit: boolean;
  /** Arguments as they were given to it. */
  readonly command: readonly string[];
}

/** Now, in the unit of {@link ProcessInfo.startTicks}. */
export function ticksNow(): number {
  return Math.floor(uptime() * ticksPerSecond);
}

/** Reads the text of /proc/PID/stat, whose second field may hold anything, brackets and blanks included. */
export function parseProcessStat(stat: string): Omit<ProcessInfo, 'command' | 'isNamespaceInit'> {
  const end = stat.lastIndexOf(')');
  const fields = stat.slice(end + 2).split(' ');
  return {
    pid: Number.parseInt(stat, 10),
    isZombie: fields[0] === 'Z',
    parent: Number(fields[1]),
    session: Number(fields[3]),
    startTicks: Number(fields[19]),
  };
}

/** `undefined` when there is no such process any more. */
export async function readProcess(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const [stat, status, command] = await Promise.all(
      ['stat', 'status', 'cmdline'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8')),
    );
    return {
      ...parseProcessStat(stat!),
      isNamespaceInit: /^NSpid:\t.*\t1$/m.test(status!),
      command: command!.split('\0').slice(0, -1),
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

/** Kills exactly this process; false when it is gone already. */
export async function killProcess({ pid, startTicks }: ProcessInfo): Promise<boolean> {
  const now = await readProcess(pid);
  if (now?.startTicks !== startTicks || now.isZombie) return false;
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
