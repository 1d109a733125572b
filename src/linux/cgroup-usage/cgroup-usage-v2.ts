/** Usage from cgroup v2, where one tree has everything. */
import { parsePressure } from '../pressure.ts';
import { bandwidth, type CgroupFiles, defined, entry } from './cgroup-files.ts';
import type { CgroupUsage, DeviceUsage, MemoryUsage, UsageDetail } from './cgroup-usage.ts';

/** `undefined` when there is no such cgroup. */
export function readUsageV2(
  files: CgroupFiles,
  directory: string | undefined,
  at: number,
  detail: UsageDetail,
): CgroupUsage | undefined {
  const cpu = files.table(directory, 'cpu.stat');
  const usedUs = entry(cpu, 'usage_usec');
  const stat = files.table(directory, 'memory.stat');
  const usage = files.number(directory, 'memory.current');
  if (usedUs === undefined && stat === '') return undefined;
  const isAll = detail === 'all';
  const [userUs, systemUs] = [entry(cpu, 'user_usec'), entry(cpu, 'system_usec')];
  const events = isAll ? files.table(directory, 'memory.events') : '';
  const pressure = defined({
    cpu: parsePressure(files.text(`${directory}/cpu.pressure`)),
    memory: parsePressure(files.text(`${directory}/memory.pressure`)),
    io: parsePressure(files.text(`${directory}/io.pressure`)),
  });
  const [quota, period] = isAll ? files.table(directory, 'cpu.max').split(' ').map(Number) : [];
  const weight = isAll ? files.number(directory, 'cpu.weight') : undefined;
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
        ...memoryUsage(usage ?? (entry(stat, 'anon') ?? 0) + (entry(stat, 'file') ?? 0), stat),
        ...defined({
          swap: files.number(directory, 'memory.swap.current'),
          failures: entry(events, 'max'),
          oomKills: entry(events, 'oom_kill'),
          maxUsage: isAll ? files.number(directory, 'memory.peak') : undefined,
        }),
      },
    }),
    ...defined({ tasks: files.number(directory, 'pids.current') }),
    ...(isAll && { processes: files.processes(directory) }),
    devices: isAll ? deviceUsages(files.table(directory, 'io.stat')) : [],
    ...(Object.keys(pressure).length > 0 && { pressure }),
    limits: defined({
      memory: files.number(directory, 'memory.max'),
      swap: files.number(directory, 'memory.swap.max'),
      memoryReservation: isAll ? files.number(directory, 'memory.low') || undefined : undefined,
      tasks: isAll ? files.number(directory, 'pids.max') : undefined,
      cpuShares: weight === undefined ? undefined : sharesOf(weight),
      cpuPeriod: period === undefined || Number.isNaN(period) ? undefined : period,
      cpuQuota: quota === undefined || Number.isNaN(quota) ? undefined : quota,
    }),
  };
}

function deviceUsages(text: string): DeviceUsage[] {
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

function memoryUsage(usage: number, stat: string): MemoryUsage {
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

/** CPU shares of cgroup v1 that stand for a v2 weight: the two ranges laid upon each other. */
function sharesOf(weight: number): number {
  return Math.floor(((weight - 1) * 262_142) / 9999) + 2;
}
