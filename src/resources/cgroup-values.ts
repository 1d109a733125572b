/**
 * What a cgroup limits, free of the cgroup version, and how each version's files and systemd spell it. Pure.
 */
import { hugePageSizeName } from '../kubernetes/cgroup-amounts.ts';
import type { CgroupSetting } from '../linux/cgroupfs.ts';
import type { UnitProperty } from '../linux/systemd-slices.ts';

/** Absent values are left as they are. */
export interface CgroupValues {
  /** Relative share of the CPU in units of v1's `cpu.shares`: 2..262144, 1024 for one CPU. */
  readonly cpuShares?: number;
  /** Microseconds of CPU time in each period; `unlimited` takes a quota away. */
  readonly cpuQuota?: number | 'unlimited';
  /** Microseconds. */
  readonly cpuPeriod?: number;
  /** Bytes. */
  readonly memoryLimit?: number;
  /** Bytes that are never reclaimed (`memory.min`), v2 only: v1 has nothing like it. */
  readonly memoryMin?: number;
  /** Bytes that are reclaimed only when nothing else is left (`memory.low`), v2 only. */
  readonly memoryLow?: number;
  /** Processes and threads. */
  readonly pidsMax?: number;
  /** Limit in bytes for each page size in bytes. */
  readonly hugePages?: ReadonlyMap<number, number>;
}

/** v2's weight (1..10000) of v1's shares. */
export function weightOf(shares: number): number {
  return 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

/** v1's shares of v2's weight. */
export function sharesOfWeight(weight: number): number {
  return Math.floor(((weight - 1) * 262_142) / 9999) + 2;
}

/** The files to write, in the order the kernel takes them: the period before the quota that refers to it. */
export function cgroupSettings(version: 1 | 2, values: CgroupValues): CgroupSetting[] {
  return version === 1 ? v1Settings(values) : v2Settings(values);
}

function v1Settings(values: CgroupValues): CgroupSetting[] {
  const settings: CgroupSetting[] = [];
  const set = (file: string, value: number | undefined) => {
    if (value !== undefined) settings.push({ file, value: String(value) });
  };
  set('cpu.shares', values.cpuShares);
  set('cpu.cfs_period_us', values.cpuPeriod);
  set('cpu.cfs_quota_us', values.cpuQuota === 'unlimited' ? -1 : values.cpuQuota);
  set('memory.limit_in_bytes', values.memoryLimit);
  set('pids.max', values.pidsMax);
  for (const [size, limit] of values.hugePages ?? []) {
    set(`hugetlb.${hugePageSizeName(size)}.limit_in_bytes`, limit);
  }
  return settings;
}

function v2Settings(values: CgroupValues): CgroupSetting[] {
  const settings: CgroupSetting[] = [];
  const set = (file: string, value: number | string) => settings.push({ file, value: String(value) });
  if (values.cpuShares !== undefined) set('cpu.weight', weightOf(values.cpuShares));
  if (values.cpuQuota !== undefined) {
    const quota = values.cpuQuota === 'unlimited' ? 'max' : String(values.cpuQuota);
    set('cpu.max', values.cpuPeriod === undefined ? quota : `${quota} ${values.cpuPeriod}`);
  }
  if (values.memoryLimit !== undefined) set('memory.max', values.memoryLimit);
  if (values.memoryMin !== undefined) set('memory.min', values.memoryMin);
  if (values.memoryLow !== undefined) set('memory.low', values.memoryLow);
  if (values.pidsMax !== undefined) set('pids.max', values.pidsMax);
  for (const [size, limit] of values.hugePages ?? []) set(`hugetlb.${hugePageSizeName(size)}.max`, limit);
  return settings;
}

/** The same for a slice, so that systemd keeps the values when it looks its units over. */
export function sliceProperties(version: 1 | 2, values: CgroupValues): UnitProperty[] {
  const properties: UnitProperty[] = [];
  const set = (name: string, value: number | 'infinity' | undefined) => {
    if (value !== undefined) properties.push({ name, type: 't', value });
  };
  if (values.cpuShares !== undefined) {
    if (version === 1) set('CPUShares', values.cpuShares);
    else set('CPUWeight', weightOf(values.cpuShares));
  }
  if (values.cpuQuota === 'unlimited') set('CPUQuotaPerSecUSec', 'infinity');
  else if (values.cpuQuota !== undefined) {
    const perSecond = (values.cpuQuota * 1_000_000) / (values.cpuPeriod ?? 100_000);
    // systemd keeps whole 10 ms; rounding up never takes CPU time away.
    set('CPUQuotaPerSecUSec', Math.ceil(perSecond / 10_000) * 10_000);
  }
  set(version === 1 ? 'MemoryLimit' : 'MemoryMax', values.memoryLimit);
  if (version === 2) {
    set('MemoryMin', values.memoryMin);
    set('MemoryLow', values.memoryLow);
  }
  set('TasksMax', values.pidsMax);
  return properties;
}
