/** The cgroups of pods: where they are, what is kept from them, and which limits they get. */
import { parseDuration } from '../../kubernetes/duration.ts';
import { parseCpuSet } from '../cpu-set.ts';
import { given, type Loaded } from './loaded.ts';

/** Resources kept from pods (`cpu`, `memory`, `ephemeral-storage`, `pid`), as quantities in text. */
type Reservation = Readonly<Record<string, string>>;

export interface CgroupSettings {
  readonly driver: 'cgroupfs' | 'systemd';
  /** Always absolute, as cgroupfs spells it; `/` when pods stand below the root. */
  readonly root: string;
  readonly perQos: boolean;
  /** True when the limit of `kubepods` is enforced. */
  readonly enforcePods: boolean;
  readonly kubeReserved: Reservation;
  readonly systemReserved: Reservation;
  /** `reservedSystemCPUs`: CPU numbers; undefined when the reservations count CPUs instead. */
  readonly reservedCpus: readonly number[] | undefined;
  /** `evictionHard` as far as it is kept from pods: signal to quantity or percentage. */
  readonly evictionHard: Readonly<Record<string, string>>;
  /** Undefined while the MemoryQoS feature is off. */
  readonly memoryQos:
    | { readonly throttlingFactor: number; readonly reservation: 'TieredReservation' | 'None' }
    | undefined;
  readonly podPidsLimit: number | undefined;
  readonly cpuCfsQuota: boolean;
  /** Whole microseconds, as the kernel takes them. */
  readonly cpuCfsPeriodUs: number;
  readonly swap: 'NoSwap' | 'LimitedSwap';
  /** Undefined: true on cgroup v1, false on v2. */
  readonly singleProcessOomKill: boolean | undefined;
  readonly failOnSwap: boolean;
  readonly failOnCgroupV1: boolean;
}

export function cgroupSettings({ configuration, flags, gates }: Loaded): CgroupSettings {
  const reservedCpus = parseCpuSet(configuration.reservedSystemCPUs) ?? [];
  return {
    driver: configuration.cgroupDriver,
    root: given(configuration.cgroupRoot) ?? '/',
    perQos: configuration.cgroupsPerQOS,
    enforcePods: configuration.enforceNodeAllocatable.includes('pods'),
    kubeReserved: configuration.kubeReserved ?? {},
    systemReserved: configuration.systemReserved ?? {},
    reservedCpus: reservedCpus.length > 0 ? reservedCpus : undefined,
    evictionHard: flags['experimental-allocatable-ignore-eviction'] ? {} : configuration.evictionHard,
    memoryQos: gates.enabled('MemoryQoS')
      ? {
          throttlingFactor: configuration.memoryThrottlingFactor,
          reservation: configuration.memoryReservationPolicy,
        }
      : undefined,
    podPidsLimit: configuration.podPidsLimit > 0 ? configuration.podPidsLimit : undefined,
    cpuCfsQuota: configuration.cpuCFSQuota,
    cpuCfsPeriodUs: Math.round(parseDuration(configuration.cpuCFSQuotaPeriod) * 1000),
    swap: configuration.memorySwap.swapBehavior || 'NoSwap',
    singleProcessOomKill: configuration.singleProcessOOMKill,
    failOnSwap: configuration.failSwapOn,
    failOnCgroupV1: configuration.failCgroupV1,
  };
}
