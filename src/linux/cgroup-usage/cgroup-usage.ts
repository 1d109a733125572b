/**
 * What one cgroup has used and may use, told the same way for cgroup v1 and v2. What the machine does not
 * count (a controller that is missing, pressure on v1) is absent, never 0.
 */
import type { Pressure } from '../pressure.ts';

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
