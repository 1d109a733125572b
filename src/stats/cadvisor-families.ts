/**
 * The families of `/metrics/cadvisor` that one number of a cgroup answers, by the names cAdvisor gives them.
 * A reading that gives `undefined` makes no series.
 */
import type { GroupSample } from './node-sample.ts';

export interface Family {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly read: (sample: GroupSample) => number | undefined;
  /** Labels of the only series beside the usual ones, as text that follows them. */
  readonly extra?: string;
}

const seconds = (ns: number | undefined) => (ns === undefined ? undefined : ns / 1e9);
const fromMicroseconds = (us: number | undefined) => (us === undefined ? undefined : us / 1e6);

function counter(name: string, help: string, read: Family['read'], extra?: string): Family {
  return { name, type: 'counter', help, read, ...(extra !== undefined && { extra }) };
}

function gauge(name: string, help: string, read: Family['read']): Family {
  return { name, type: 'gauge', help, read };
}

export const cgroupFamilies: readonly Family[] = [
  counter(
    'container_cpu_usage_seconds_total',
    'Processor time used, in seconds.',
    ({ usage }) => seconds(usage.cpu?.totalNs),
    'cpu="total"',
  ),
  counter('container_cpu_user_seconds_total', 'Processor time used in user mode, in seconds.', ({ usage }) =>
    seconds(usage.cpu?.userNs),
  ),
  counter(
    'container_cpu_system_seconds_total',
    'Processor time used in the kernel, in seconds.',
    ({ usage }) => seconds(usage.cpu?.systemNs),
  ),
  counter('container_cpu_cfs_periods_total', 'Periods in which a CPU limit was enforced.', (sample) =>
    limited(sample, sample.usage.cpu?.periods),
  ),
  counter(
    'container_cpu_cfs_throttled_periods_total',
    'Periods in which the CPU limit was reached.',
    (sample) => limited(sample, sample.usage.cpu?.throttledPeriods),
  ),
  counter(
    'container_cpu_cfs_throttled_seconds_total',
    'Time spent waiting because of a CPU limit, in seconds.',
    (sample) => limited(sample, seconds(sample.usage.cpu?.throttledNs)),
  ),
  counter(
    'container_cpu_cfs_burst_periods_total',
    'Periods in which saved-up processor time was used.',
    (sample) => limited(sample, sample.usage.cpu?.burstPeriods),
  ),
  counter(
    'container_cpu_cfs_burst_seconds_total',
    'Saved-up processor time that was used, in seconds.',
    (sample) => limited(sample, seconds(sample.usage.cpu?.burstNs)),
  ),
  gauge(
    'container_memory_usage_bytes',
    'Memory in use, all page cache included, in bytes.',
    ({ usage }) => usage.memory?.usage,
  ),
  gauge(
    'container_memory_working_set_bytes',
    'Memory in use without page cache that is not being used, in bytes.',
    ({ usage }) => usage.memory?.workingSet,
  ),
  gauge('container_memory_rss', 'Anonymous memory in bytes.', ({ usage }) => usage.memory?.rss),
  gauge('container_memory_cache', 'Page cache in bytes.', ({ usage }) => usage.memory?.cache),
  gauge(
    'container_memory_mapped_file',
    'Files mapped into memory, in bytes.',
    ({ usage }) => usage.memory?.mappedFile,
  ),
  gauge('container_memory_swap', 'Swap in use, in bytes.', ({ usage }) => usage.memory?.swap),
  gauge(
    'container_memory_kernel_usage',
    'Memory of the kernel in bytes.',
    ({ usage }) => usage.memory?.kernel,
  ),
  gauge(
    'container_memory_max_usage_bytes',
    'Most memory that was ever in use, in bytes.',
    ({ usage }) => usage.memory?.maxUsage,
  ),
  gauge(
    'container_memory_total_active_file_bytes',
    'Page cache that is being used, in bytes.',
    ({ usage }) => usage.memory?.activeFile,
  ),
  gauge(
    'container_memory_total_inactive_file_bytes',
    'Page cache that is not being used, in bytes.',
    ({ usage }) => usage.memory?.inactiveFile,
  ),
  counter(
    'container_memory_failcnt',
    'How often the memory limit was reached.',
    ({ usage }) => usage.memory?.failures,
  ),
  counter(
    'container_oom_events_total',
    'Processes that the kernel killed for want of memory.',
    ({ usage }) => usage.memory?.oomKills,
  ),
  gauge('container_processes', 'Processes running.', ({ usage }) => usage.processes?.count),
  gauge('container_threads', 'Threads running.', ({ usage }) => usage.tasks),
  gauge('container_threads_max', 'Most threads that may run; 0 without a limit.', ({ usage }) =>
    usage.tasks === undefined ? undefined : (usage.limits.tasks ?? 0),
  ),
  gauge('container_start_time_seconds', 'When it started, in seconds since 1970.', ({ createdAt }) =>
    createdAt === undefined ? undefined : createdAt / 1000,
  ),
  gauge('container_last_seen', 'When it was seen last, in seconds since 1970.', ({ usage }) =>
    Math.floor(usage.at / 1000),
  ),
  gauge('container_spec_cpu_shares', 'CPU shares.', ({ usage }) => usage.limits.cpuShares),
  gauge(
    'container_spec_cpu_period',
    'Period of the CPU limit in microseconds.',
    ({ usage }) => usage.limits.cpuPeriod,
  ),
  gauge(
    'container_spec_cpu_quota',
    'Processor time in each period, in microseconds.',
    ({ usage }) => usage.limits.cpuQuota,
  ),
  gauge('container_spec_memory_limit_bytes', 'Memory limit in bytes; 0 without one.', ({ usage }) =>
    bound(usage.memory, usage.limits.memory),
  ),
  gauge(
    'container_spec_memory_reservation_limit_bytes',
    'Memory kept for it when memory is short, in bytes.',
    ({ usage }) => bound(usage.memory, usage.limits.memoryReservation),
  ),
  gauge('container_spec_memory_swap_limit_bytes', 'Swap limit in bytes; 0 without one.', ({ usage }) =>
    bound(usage.memory, usage.limits.swap),
  ),
  ...(['cpu', 'memory', 'io'] as const).flatMap((kind) => [
    counter(
      `container_pressure_${kind}_waiting_seconds_total`,
      `Time in which a task waited for ${kind === 'io' ? 'input and output' : kind}, in seconds.`,
      ({ usage }) => fromMicroseconds(usage.pressure?.[kind]?.some.total),
    ),
    counter(
      `container_pressure_${kind}_stalled_seconds_total`,
      `Time in which every task waited for ${kind === 'io' ? 'input and output' : kind}, in seconds.`,
      ({ usage }) => fromMicroseconds(usage.pressure?.[kind]?.full.total),
    ),
  ]),
];

/** What bandwidth control counts says something only where there is a limit. */
function limited({ usage }: GroupSample, value: number | undefined): number | undefined {
  return usage.limits.cpuQuota === undefined ? undefined : value;
}

function bound(measured: object | undefined, limit: number | undefined): number | undefined {
  return measured === undefined ? undefined : (limit ?? 0);
}
