/** One look at everything that is measured in cgroups and network namespaces, plain data. */
import type { CgroupUsage, UsageDetail } from '../linux/cgroup-usage/cgroup-usage.ts';
import type { InterfaceCounters } from '../linux/network-counters.ts';
import type { MeasuredContainer, MeasuredPod } from './measured-pod.ts';

/** What a cgroup used, and how fast it uses processor time now (nanoseconds a second). */
export interface GroupSample {
  readonly cgroup: string;
  readonly usage: CgroupUsage;
  readonly nanoCores: number | undefined;
  /** When the cgroup was made, epoch milliseconds. */
  readonly createdAt: number | undefined;
}

export interface ContainerSample extends GroupSample {
  /** How many files its first process may have open; only with the detail `all`. */
  readonly openFilesLimit?: number;
  readonly container: MeasuredContainer;
}

export interface PodSample {
  readonly pod: MeasuredPod;
  /** Absent where pods have no cgroup of their own. */
  readonly group: GroupSample | undefined;
  /** The cgroup of what holds the pod's namespaces; absent where the runtime has none. */
  readonly sandbox: (GroupSample & { readonly id: string }) | undefined;
  readonly containers: readonly ContainerSample[];
  /** Absent on the host's network. */
  readonly network: readonly InterfaceCounters[] | undefined;
}

/** Cgroups beside the pods', by what the summary calls them; classes are only told by `/metrics/cadvisor`. */
export type SystemGroup = 'kubelet' | 'runtime' | 'misc' | 'pods' | 'burstable' | 'besteffort';

export interface NodeSample {
  readonly detail: UsageDetail;
  /** When the look began, epoch milliseconds. */
  readonly at: number;
  readonly node: GroupSample;
  readonly system: ReadonlyMap<SystemGroup, GroupSample>;
  readonly pods: readonly PodSample[];
  readonly network: readonly InterfaceCounters[];
  /** The interface of the default route. */
  readonly defaultInterface: string | undefined;
  readonly swap: { readonly total: number; readonly free: number };
  /** Names of block devices by `major:minor`; empty unless the detail is `all`. */
  readonly blockDevices: ReadonlyMap<string, string>;
  /** Tasks of the machine, and how many it can have. */
  readonly tasks: { readonly running: number; readonly max: number };
}
