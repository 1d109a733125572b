/**
 * Facts about the machine from /proc and /sys. Parsing is apart from reading, so it is tested with text.
 */
import { readdir, readFile } from 'node:fs/promises';

/** Sizes in bytes. */
export interface MemoryInfo {
  readonly total: number;
  readonly free: number;
  readonly available: number;
  readonly swapTotal: number;
  readonly swapFree: number;
}

/** Reads /proc/meminfo text. Throws when `MemTotal` is missing. */
export function parseMemoryInfo(text: string): MemoryInfo {
  const kibibytes = (name: string) => {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text);
    return found ? Number(found[1]) * 1024 : undefined;
  };
  const total = kibibytes('MemTotal');
  if (total === undefined) throw new Error('/proc/meminfo has no MemTotal line');
  return {
    total,
    free: kibibytes('MemFree') ?? 0,
    available: kibibytes('MemAvailable') ?? kibibytes('MemFree') ?? 0,
    swapTotal: kibibytes('SwapTotal') ?? 0,
    swapFree: kibibytes('SwapFree') ?? 0,
  };
}

/** Counts a kernel CPU list such as `0-3,8`. */
export function countCpuList(list: string): number {
  let count = 0;
  for (const range of list.trim().split(',').filter(Boolean)) {
    const [first, last = first] = range.split('-').map(Number) as [number, number?];
    count += last - first + 1;
  }
  return count;
}

/** The time the kernel started, epoch milliseconds, from /proc/stat text. */
export function parseBootTime(stat: string): number {
  const found = /^btime (\d+)$/m.exec(stat);
  if (!found) throw new Error('/proc/stat has no btime line');
  return Number(found[1]) * 1000;
}

export interface SwapArea {
  readonly path: string;
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  readonly used: number;
}

/** Reads /proc/swaps text: one line of headings, then one line for each area. */
export function parseSwaps(text: string): SwapArea[] {
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length >= 4)
    .map(([path, type, size, used]) => ({
      path: path!,
      type: type!,
      size: Number(size) * 1024,
      used: Number(used) * 1024,
    }));
}

export async function readMemoryInfo(): Promise<MemoryInfo> {
  return parseMemoryInfo(await readFile('/proc/meminfo', 'utf8'));
}

/** The logical CPUs that are online, as the kernel lists them: `0-3,8`. */
export async function readOnlineCpus(): Promise<string> {
  return (await readFile('/sys/devices/system/cpu/online', 'utf8')).trim();
}

/** How many logical CPUs are online. */
export async function readCpuCount(): Promise<number> {
  return countCpuList(await readOnlineCpus());
}

/** An id that is new after each boot. */
export async function readBootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

/** Seconds since boot. */
export async function readUptime(): Promise<number> {
  return Number((await readFile('/proc/uptime', 'utf8')).split(' ')[0]);
}

/** Empty too on a kernel that cannot swap. */
export async function readSwaps(): Promise<SwapArea[]> {
  const text = await readFile('/proc/swaps', 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  return parseSwaps(text);
}

/** AT_PAGESZ of the auxiliary vector. */
const pageSizeEntry = 6n;

/** Bytes of a memory page, from the auxiliary vector that the kernel gives to every process. */
export async function readPageSize(): Promise<number> {
  return parsePageSize(await readFile('/proc/self/auxv'));
}

/** Reads a 64 bit little-endian auxiliary vector: pairs of type and value. */
export function parsePageSize(vector: Buffer): number {
  for (let at = 0; at + 16 <= vector.length; at += 16) {
    if (vector.readBigUInt64LE(at) === pageSizeEntry) return Number(vector.readBigUInt64LE(at + 8));
  }
  throw new Error('/proc/self/auxv tells no page size');
}

/** How many processes and threads the machine can have: the lower of pid_max and threads-max. */
export async function readMaxProcesses(): Promise<number> {
  const [pidMax, threadsMax] = await Promise.all([
    readFile('/proc/sys/kernel/pid_max', 'utf8'),
    readFile('/proc/sys/kernel/threads-max', 'utf8'),
  ]);
  return Math.min(Number(pidMax), Number(threadsMax));
}

/** The release of the running kernel, such as `6.1.0-18-amd64`. */
export async function readKernelVersion(): Promise<string> {
  return (await readFile('/proc/sys/kernel/osrelease', 'utf8')).trim();
}

export interface HugePagePool {
  /** Bytes of one page. */
  readonly pageSize: number;
  /** Pages reserved by the administrator. */
  readonly pages: number;
}

/** The huge page pools of the machine, smallest pages first; empty when the kernel has none. */
export async function readHugePages(directory = '/sys/kernel/mm/hugepages'): Promise<HugePagePool[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  const pools: HugePagePool[] = [];
  for (const name of names) {
    const found = /^hugepages-(\d+)kB$/.exec(name);
    if (!found) continue;
    const pages = Number(await readFile(`${directory}/${name}/nr_hugepages`, 'utf8'));
    pools.push({ pageSize: Number(found[1]) * 1024, pages });
  }
  return pools.sort((a, b) => a.pageSize - b.pageSize);
}
