/** Usage from cgroup v1, where each controller has a tree of its own. */
import type { CgroupLayout } from '../cgroup-layout.ts';
import { bandwidth, type CgroupFiles, defined, directoryIn, entry } from './cgroup-files.ts';
import type { CgroupUsage, DeviceUsage, MemoryUsage, UsageDetail } from './cgroup-usage.ts';

/** v1 writes "no limit" as the largest page-aligned number. */
const unlimited = 2 ** 62;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

const blkioLine = /^(\d+):(\d+) (Read|Write) (\d+)$/gm;

/** Reads cgroups of v1, and of machines that have v2 beside it. */
export class CgroupUsageV1 {
  readonly #trees: CgroupLayout['trees'];
  readonly #files: CgroupFiles;

  constructor(trees: CgroupLayout['trees'], files: CgroupFiles) {
    this.#trees = trees;
    this.#files = files;
  }

  /** `undefined` when there is no such cgroup. */
  read(cgroup: string, at: number, detail: UsageDetail): CgroupUsage | undefined {
    const [accounts, memory, pids] = ['cpuacct', 'memory', 'pids'].map((name) =>
      directoryIn(this.#trees.get(name), cgroup),
    );
    const totalNs = this.#files.number(accounts, 'cpuacct.usage');
    const usage = this.#files.number(memory, 'memory.usage_in_bytes');
    if (totalNs === undefined && usage === undefined) return undefined;
    const tasks = this.#files.number(pids, 'pids.current');
    const stat = usage === undefined ? '' : this.#files.table(memory, 'memory.stat');
    const ceiling = finite(this.#files.number(memory, 'memory.limit_in_bytes'));
    const withSwap = finite(entry(stat, 'hierarchical_memsw_limit'));
    const isAll = detail === 'all';
    const cpu = isAll ? directoryIn(this.#trees.get('cpu'), cgroup) : undefined;
    const quota = this.#files.number(cpu, 'cpu.cfs_quota_us') ?? -1;
    return {
      at,
      ...(totalNs !== undefined && {
        cpu: {
          totalNs,
          ...(isAll && {
            ...defined({
              userNs: this.#files.number(accounts, 'cpuacct.usage_user'),
              systemNs: this.#files.number(accounts, 'cpuacct.usage_sys'),
            }),
            ...bandwidth(this.#files.table(cpu, 'cpu.stat'), 'throttled_time', 'burst_time', 1),
          }),
        },
      }),
      ...(usage !== undefined && {
        memory: {
          ...memoryUsage(usage, stat),
          ...(isAll &&
            defined({
              failures: this.#files.number(memory, 'memory.failcnt'),
              maxUsage: this.#files.number(memory, 'memory.max_usage_in_bytes'),
              kernel: this.#files.number(memory, 'memory.kmem.usage_in_bytes'),
              oomKills: entry(this.#files.table(memory, 'memory.oom_control'), 'oom_kill'),
            })),
        },
      }),
      ...defined({ tasks }),
      ...(isAll && { processes: this.#files.processes(memory) }),
      devices: isAll ? this.#devices(cgroup) : [],
      limits: defined({
        memory: ceiling,
        swap: ceiling === undefined || withSwap === undefined ? undefined : Math.max(0, withSwap - ceiling),
        memoryReservation: isAll
          ? finite(this.#files.number(memory, 'memory.soft_limit_in_bytes'))
          : undefined,
        tasks: isAll ? this.#files.number(pids, 'pids.max') : undefined,
        cpuShares: this.#files.number(cpu, 'cpu.shares'),
        cpuPeriod: this.#files.number(cpu, 'cpu.cfs_period_us'),
        cpuQuota: quota > 0 ? quota : undefined,
      }),
    };
  }

  #devices(cgroup: string): DeviceUsage[] {
    const directory = directoryIn(this.#trees.get('blkio'), cgroup);
    const devices = new Map<string, Writable<DeviceUsage>>();
    const add = (file: string, read: 'readBytes' | 'reads', write: 'writeBytes' | 'writes') => {
      for (const [, major, minor, kind, value] of this.#files.table(directory, file).matchAll(blkioLine)) {
        const device = deviceOf(devices, major!, minor!);
        device[kind === 'Read' ? read : write] = Number(value);
      }
    };
    add('blkio.throttle.io_service_bytes_recursive', 'readBytes', 'writeBytes');
    add('blkio.throttle.io_serviced_recursive', 'reads', 'writes');
    return [...devices.values()];
  }
}

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

function memoryUsage(usage: number, stat: string): MemoryUsage {
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

function finite(value: number | undefined): number | undefined {
  return value === undefined || value >= unlimited ? undefined : value;
}
