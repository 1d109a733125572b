/**
 * What one cgroup has used and may use, read from the files of cgroup v1 or v2 and told the same way for both.
 *
 * Reading is synchronous and costs about ten small files; see `KernelFileReader`. What the machine does not
 * count (a controller that is missing, pressure on v1) is absent, never 0.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import type { CgroupLayout } from './cgroup-layout.ts';
import { KernelFileReader } from './kernel-file-reader.ts';
import { type Pressure, parsePressure } from './pressure.ts';

export interface CpuUsage {
  /** Processor time since the cgroup was made, nanoseconds. */
  readonly totalNs: number;
  readonly userNs?: number;
  readonly systemNs?: number;
  /** Bandwidth control; times in nanoseconds. */
  readonly periods?: number;
  readonly throttledPeriods?: number;
  readonly throttledNs?: number;
  readonly burstPeriods?: number;
  readonly burstNs?: number;
}

/** Bytes, unless it says otherwise. */
export interface MemoryUsage {
  readonly usage: number;
  /** Usage without file pages that have not been used for a while: what counts for Kubernetes. */
  readonly workingSet: number;
  readonly rss: number;
  readonly cache: number;
  readonly mappedFile: number;
  readonly activeFile: number;
  readonly inactiveFile: number;
  /** Absent where the kernel does not count swap. */
  readonly swap?: number;
  readonly kernel?: number;
  readonly maxUsage?: number;
  /** How often the limit was reached. */
  readonly failures?: number;
  /** Processes that the kernel killed for want of memory. */
  readonly oomKills?: number;
  /** Counts of the cgroup with those below it. */
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** Counts of the cgroup alone; the same as above on v2, which has no other. */
  readonly ownPageFaults: number;
  readonly ownMajorPageFaults: number;
}

/** Bytes and operations of one block device. */
export interface DeviceUsage {
  readonly major: number;
  readonly minor: number;
  readonly readBytes: number;
  readonly writeBytes: number;
  readonly reads: number;
  readonly writes: number;
}

/** Absent: without a limit, or not read. */
export interface CgroupLimits {
  readonly memory?: number;
  readonly memoryReservation?: number;
  /** Swap alone, without memory; 0 where swap is forbidden. */
  readonly swap?: number;
  readonly cpuShares?: number;
  /** Microseconds. */
  readonly cpuQuota?: number;
  readonly cpuPeriod?: number;
  readonly tasks?: number;
}

export interface CgroupUsage {
  /** When it was read, epoch milliseconds. */
  readonly at: number;
  readonly cpu?: CpuUsage;
  readonly memory?: MemoryUsage;
  /** Tasks, as the pids controller counts: threads too. */
  readonly tasks?: number;
  /** Processes of the cgroup itself, without those below it; the first of them. */
  readonly processes?: { readonly count: number; readonly first: number | undefined };
  readonly devices: readonly DeviceUsage[];
  readonly pressure?: { readonly cpu?: Pressure; readonly memory?: Pressure; readonly io?: Pressure };
  readonly limits: CgroupLimits;
}

/** `core`: processor time, memory, tasks, pressure. `all`: devices, bandwidth control and all limits as well. */
export type UsageDetail = 'core' | 'all';

/** v1 writes "no limit" as the largest page-aligned number. */
const unlimited = 2 ** 62;

export class CgroupUsageReader {
  readonly #layout: CgroupLayout;
  readonly #clock: Clock;
  readonly #files = new KernelFileReader();
  readonly #isV2: boolean;

  constructor(layout: CgroupLayout, clock: Clock) {
    this.#layout = layout;
    this.#clock = clock;
    this.#isV2 = layout.mode === 'v2';
  }

  /** Which kind of files cgroups have here. */
  get version(): 1 | 2 {
    return this.#isV2 ? 2 : 1;
  }

  /** Any other file of the kernel, through the same buffer. */
  readFile(path: string): string | undefined {
    return this.#files.read(path);
  }

  /** The directory of a cgroup in the tree that counts memory, or in the one tree of v2. */
  directory(cgroup: string): string | undefined {
    return this.#in(cgroup, 'memory');
  }

  /** When the cgroup was made, as well as its directory tells, epoch milliseconds. */
  createdAt(cgroup: string): number | undefined {
    const directory = this.directory(cgroup);
    if (directory === undefined) return undefined;
    return statSync(directory, { throwIfNoEntry: false })?.mtimeMs;
  }

  /** The first process of the cgroup itself; `undefined` when it has none or is gone. */
  firstProcess(cgroup: string): number | undefined {
    const directory = this.directory(cgroup);
    if (directory === undefined) return undefined;
    const pid = Number.parseInt(this.#files.read(join(directory, 'cgroup.procs')) ?? '', 10);
    return pid > 0 ? pid : undefined;
  }

  /** `undefined` when there is no such cgroup. */
  read(cgroup: string, detail: UsageDetail): CgroupUsage | undefined {
    return this.#isV2 ? this.#readV2(cgroup, detail) : this.#readV1(cgroup, detail);
  }

  #in(cgroup: string, controller: string): string | undefined {
    const tree = this.#isV2 ? this.#layout.unified : this.#layout.trees.get(controller);
    return tree === undefined ? undefined : `${tree}${cgroup === '/' ? '' : cgroup}`;
  }

  #processes(directory: string | undefined): CgroupUsage['processes'] {
    const text = this.#table(directory, 'cgroup.procs');
    let count = 0;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
    const first = Number.parseInt(text, 10);
    return { count, first: first > 0 ? first : undefined };
  }

  #number(directory: string | undefined, file: string): number | undefined {
    if (directory === undefined) return undefined;
    const text = this.#files.read(`${directory}/${file}`);
    if (text === undefined) return undefined;
    const value = Number.parseInt(text, 10);
    return Number.isNaN(value) ? undefined : value;
  }

  #table(directory: string | undefined, file: string): string {
    return (directory === undefined ? undefined : this.#files.read(`${directory}/${file}`)) ?? '';
  }

  #readV1(cgroup: string, detail: UsageDetail): CgroupUsage | undefined {
    const at = this.#clock.now();
    const [accounts, memory, pids] = ['cpuacct', 'memory', 'pids'].map((name) => this.#in(cgroup, name));
    const totalNs = this.#number(accounts, 'cpuacct.usage');
    const usage = this.#number(memory, 'memory.usage_in_bytes');
    if (totalNs === undefined && usage === undefined) return undefined;
    const tasks = this.#number(pids, 'pids.current');
    const stat = usage === undefined ? '' : this.#table(memory, 'memory.stat');
    const ceiling = finite(this.#number(memory, 'memory.limit_in_bytes'));
    const withSwap = finite(entry(stat, 'hierarchical_memsw_limit'));
    const isAll = detail === 'all';
    const cpu = isAll ? this.#in(cgroup, 'cpu') : undefined;
    const quota = this.#number(cpu, 'cpu.cfs_quota_us') ?? -1;
    return {
      at,
      ...(totalNs !== undefined && {
        cpu: {
          totalNs,
          ...(isAll && {
            ...defined({
              userNs: this.#number(accounts, 'cpuacct.usage_user'),
              systemNs: this.#number(accounts, 'cpuacct.usage_sys'),
            }),
            ...bandwidth(this.#table(cpu, 'cpu.stat'), 'throttled_time', 'burst_time', 1),
          }),
        },
      }),
      ...(usage !== undefined && {
        memory: {
          ...memoryOfV1(usage, stat),
          ...(isAll &&
            defined({
              failures: this.#number(memory, 'memory.failcnt'),
              maxUsage: this.#number(memory, 'memory.max_usage_in_bytes'),
              kernel: this.#number(memory, 'memory.kmem.usage_in_bytes'),
              oomKills: entry(this.#table(memory, 'memory.oom_control'), 'oom_kill'),
            })),
        },
      }),
      ...defined({ tasks }),
      ...(isAll && { processes: this.#processes(memory) }),
      devices: isAll ? this.#devicesOfV1(cgroup) : [],
      limits: defined({
        memory: ceiling,
        swap: ceiling === undefined || withSwap === undefined ? undefined : Math.max(0, withSwap - ceiling),
        memoryReservation: isAll ? finite(this.#number(memory, 'memory.soft_limit_in_bytes')) : undefined,
        tasks: isAll ? this.#number(pids, 'pids.max') : undefined,
        cpuShares: this.#number(cpu, 'cpu.shares'),
        cpuPeriod: this.#number(cpu, 'cpu.cfs_period_us'),
        cpuQuota: quota > 0 ? quota : undefined,
      }),
    };
  }

  #devicesOfV1(cgroup: string): DeviceUsage[] {
    const directory = this.#in(cgroup, 'blkio');
    const devices = new Map<string, Writable<DeviceUsage>>();
    const add = (file: string, read: 'readBytes' | 'reads', write: 'writeBytes' | 'writes') => {
      for (const [, major, minor, kind, value] of this.#table(directory, file).matchAll(blkioLine)) {
        const device = deviceOf(devices, major!, minor!);
        device[kind === 'Read' ? read : write] = Number(value);
      }
    };
    add('blkio.throttle.io_service_bytes_recursive', 'readBytes', 'writeBytes');
    add('blkio.throttle.io_serviced_recursive', 'reads', 'writes');
    return [...devices.values()];
  }

  #readV2(cgroup: string, detail: UsageDetail): CgroupUsage | undefined {
    const at = this.#clock.now();
    const directory = this.#in(cgroup, '');
    const cpu = this.#table(directory, 'cpu.stat');
    const usedUs = entry(cpu, 'usage_usec');
    const stat = this.#table(directory, 'memory.stat');
    const usage = this.#number(directory, 'memory.current');
    if (usedUs === undefined && stat === '') return undefined;
    const isAll = detail === 'all';
    const [userUs, systemUs] = [entry(cpu, 'user_usec'), entry(cpu, 'system_usec')];
    const events = isAll ? this.#table(directory, 'memory.events') : '';
    const pressure = defined({
      cpu: parsePressure(this.#files.read(`${directory}/cpu.pressure`)),
      memory: parsePressure(this.#files.read(`${directory}/memory.pressure`)),
      io: parsePressure(this.#files.read(`${directory}/io.pressure`)),
    });
    const [quota, period] = isAll ? this.#table(directory, 'cpu.max').split(' ').map(Number) : [];
    const weight = isAll ? this.#number(directory, 'cpu.weight') : undefined;
    return {
      at,
      ...(usedUs !== undefined && {
        cpu: {
          totalNs: usedUs * 1000,
          ...defined({
            userNs: userUs === undefined ? undefined : userUs * 1000,
            systemNs: systemUs === undefined ? undefined : systemUs * 1000,
          }),
          ...bandwidth(cpu, 'throttled_usec', 'burst_usec', 1000),
        },
      }),
      ...(stat !== '' && {
        memory: {
          // The root cgroup has no memory.current: what pages of all kinds add up to stands for it.
          ...memoryOfV2(usage ?? (entry(stat, 'anon') ?? 0) + (entry(stat, 'file') ?? 0), stat),
          ...defined({
            swap: this.#number(directory, 'memory.swap.current'),
            failures: entry(events, 'max'),
            oomKills: entry(events, 'oom_kill'),
            maxUsage: isAll ? this.#number(directory, 'memory.peak') : undefined,
          }),
        },
      }),
      ...defined({ tasks: this.#number(directory, 'pids.current') }),
      ...(isAll && { processes: this.#processes(directory) }),
      devices: isAll ? devicesOfV2(this.#table(directory, 'io.stat')) : [],
      ...(Object.keys(pressure).length > 0 && { pressure }),
      limits: defined({
        memory: this.#number(directory, 'memory.max'),
        swap: this.#number(directory, 'memory.swap.max'),
        memoryReservation: isAll ? this.#number(directory, 'memory.low') || undefined : undefined,
        tasks: isAll ? this.#number(directory, 'pids.max') : undefined,
        cpuShares: weight === undefined ? undefined : sharesOf(weight),
        cpuPeriod: period === undefined || Number.isNaN(period) ? undefined : period,
        cpuQuota: quota === undefined || Number.isNaN(quota) ? undefined : quota,
      }),
    };
  }
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

const blkioLine = /^(\d+):(\d+) (Read|Write) (\d+)$/gm;

function deviceOf(devices: Map<string, Writable<DeviceUsage>>, major: string, minor: string) {
  const key = `${major}:${minor}`;
  let device = devices.get(key);
  if (device === undefined) {
    device = {
      major: Number(major),
      minor: Number(minor),
      readBytes: 0,
      writeBytes: 0,
      reads: 0,
      writes: 0,
    };
    devices.set(key, device);
  }
  return device;
}

function devicesOfV2(text: string): DeviceUsage[] {
  const devices: DeviceUsage[] = [];
  for (const row of text.split('\n')) {
    const found = /^(\d+):(\d+) /.exec(row);
    if (!found) continue;
    const figure = (name: string) => Number(new RegExp(` ${name}=(\\d+)`).exec(row)?.[1] ?? 0);
    devices.push({
      major: Number(found[1]),
      minor: Number(found[2]),
      readBytes: figure('rbytes'),
      writeBytes: figure('wbytes'),
      reads: figure('rios'),
      writes: figure('wios'),
    });
  }
  return devices;
}

/** The number behind `name` in a table of lines `name number`. */
function entry(table: string, name: string): number | undefined {
  const start = table.startsWith(`${name} `) ? 0 : table.indexOf(`\n${name} `) + 1;
  if (start === 0 && !table.startsWith(`${name} `)) return undefined;
  return Number.parseInt(table.slice(start + name.length + 1, start + name.length + 22), 10);
}

function memoryOfV1(usage: number, stat: string): MemoryUsage {
  const total = (name: string) => entry(stat, `total_${name}`) ?? entry(stat, name) ?? 0;
  const inactiveFile = total('inactive_file');
  const swap = entry(stat, 'total_swap');
  return {
    usage,
    workingSet: Math.max(0, usage - inactiveFile),
    rss: total('rss'),
    cache: total('cache'),
    mappedFile: total('mapped_file'),
    activeFile: total('active_file'),
    inactiveFile,
    pageFaults: total('pgfault'),
    majorPageFaults: total('pgmajfault'),
    ownPageFaults: entry(stat, 'pgfault') ?? 0,
    ownMajorPageFaults: entry(stat, 'pgmajfault') ?? 0,
    ...defined({ swap }),
  };
}

function memoryOfV2(usage: number, stat: string): MemoryUsage {
  const value = (name: string) => entry(stat, name) ?? 0;
  const inactiveFile = value('inactive_file');
  return {
    usage,
    workingSet: Math.max(0, usage - inactiveFile),
    rss: value('anon'),
    cache: value('file'),
    mappedFile: value('file_mapped'),
    activeFile: value('active_file'),
    inactiveFile,
    pageFaults: value('pgfault'),
    majorPageFaults: value('pgmajfault'),
    ownPageFaults: value('pgfault'),
    ownMajorPageFaults: value('pgmajfault'),
    ...defined({ kernel: entry(stat, 'kernel') }),
  };
}

function bandwidth(table: string, throttled: string, burst: string, toNs: number): Partial<CpuUsage> {
  const scaled = (name: string) => {
    const value = entry(table, name);
    return value === undefined ? undefined : value * toNs;
  };
  return defined({
    periods: entry(table, 'nr_periods'),
    throttledPeriods: entry(table, 'nr_throttled'),
    throttledNs: scaled(throttled),
    burstPeriods: entry(table, 'nr_bursts'),
    burstNs: scaled(burst),
  });
}

function finite(value: number | undefined): number | undefined {
  return value === undefined || value >= unlimited ? undefined : value;
}

/** CPU shares of cgroup v1 that stand for a v2 weight: the two ranges laid upon each other. */
function sharesOf(weight: number): number {
  return Math.floor(((weight - 1) * 262_142) / 9999) + 2;
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Without the fields that are undefined. */
function defined<T extends object>(fields: T): Defined<T> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) kept[name] = value;
  return kept as Defined<T>;
}
