/**
 * What the cgroups of pods, of QoS classes and of all pods together limit, from pod specs and what the node
 * can give away. Pure.
 */
import { cpuQuota, cpuShares, minCpuShares } from '../kubernetes/cgroup-amounts.ts';
import {
  bytesOf,
  milliCpu,
  podIsLimited,
  podLimits,
  podRequests,
  type ResourceAmounts,
} from '../kubernetes/pod-resources.ts';
import { podQosClass } from '../kubernetes/qos.ts';
import { parseQuantity, quantityValue } from '../kubernetes/quantity.ts';
import type { Pod, PodSpec } from '../kubernetes/types.ts';
import type { CgroupValues } from './cgroup-values.ts';

/** A limit so high that it limits nothing; what the kubelet writes for huge pages of QoS classes. */
const unbounded = 2 ** 62;

/** How the node limits its pods. */
export interface PodCgroupOptions {
  /** `cpuCFSQuota`: false keeps CPU quotas off. */
  readonly cpuCfsQuota: boolean;
  /** `cpuCFSQuotaPeriod` in microseconds. */
  readonly cpuPeriod: number;
  /** `podPidsLimit`; only a positive number limits. */
  readonly podPidsLimit: number;
  /** Huge page sizes of the machine, bytes: a pod may not use sizes it did not ask for. */
  readonly hugePageSizes: readonly number[];
  /** Keep what pods request from being reclaimed (`memoryReservationPolicy: TieredReservation`). */
  readonly protectMemory?: boolean;
}

/** Memory that is kept for pods, in bytes; the `memory.min` and `memory.low` of a cgroup. */
export interface ProtectedMemory {
  readonly memoryMin: number;
  readonly memoryLow: number;
}

/**
 * What the pods that are to run keep together, by tier: requests of Guaranteed pods are never reclaimed, those
 * of Burstable pods last. Nothing is kept unless `protectMemory`. A cgroup protects nothing that its parents
 * do not, so the cgroup of all pods carries both sums and the class its own.
 */
export function protectedMemory(
  pods: readonly { readonly spec: PodSpec }[],
  protectMemory: boolean,
): ProtectedMemory {
  let memoryMin = 0;
  let memoryLow = 0;
  for (const { spec } of protectMemory ? pods : []) {
    const own = podProtectedMemory(spec);
    memoryMin += own.memoryMin ?? 0;
    memoryLow += own.memoryLow ?? 0;
  }
  return { memoryMin, memoryLow };
}

function podProtectedMemory(spec: PodSpec): Partial<ProtectedMemory> {
  const request = bytesOf(podRequests(spec));
  if (request === 0) return {};
  return podQosClass(spec) === 'Guaranteed' ? { memoryMin: request } : { memoryLow: request };
}

/** The limits of a pod's cgroup, overhead included. */
export function podCgroupValues(spec: PodSpec, options: PodCgroupOptions): CgroupValues {
  const limits = podLimits(spec);
  const shared: CgroupValues = {
    ...(options.podPidsLimit > 0 ? { pidsMax: options.podPidsLimit } : {}),
    hugePages: hugePageLimits(limits, options.hugePageSizes, 0),
  };
  const qos = podQosClass(spec);
  if (qos === 'BestEffort') return { cpuShares: minCpuShares, ...shared };
  // No limit and no quota at all are the same to the kernel.
  const quota = options.cpuCfsQuota
    ? cpuQuota(milliCpu(limits), options.cpuPeriod) || 'unlimited'
    : 'unlimited';
  return {
    cpuShares: cpuShares(milliCpu(podRequests(spec))),
    ...(qos === 'Guaranteed' || podIsLimited(spec, 'cpu')
      ? { cpuPeriod: options.cpuPeriod, cpuQuota: quota }
      : {}),
    ...(podIsLimited(spec, 'memory') ? { memoryLimit: bytesOf(limits) } : {}),
    ...(options.protectMemory ? podProtectedMemory(spec) : {}),
    ...shared,
  };
}

/** BestEffort and Burstable classes, given the pods that are to run. */
export function qosCgroupValues(
  pods: readonly Pick<Pod, 'spec'>[],
  hugePageSizes: readonly number[],
): Readonly<Record<'Burstable' | 'BestEffort', CgroupValues>> {
  const hugePages = hugePageLimits(new Map(), hugePageSizes, unbounded);
  let burstable = 0;
  for (const { spec } of pods) {
    if (podQosClass(spec) === 'Burstable') burstable += milliCpu(podRequests(spec));
  }
  return {
    Burstable: { cpuShares: cpuShares(burstable), hugePages },
    BestEffort: { cpuShares: minCpuShares, hugePages },
  };
}

/**
 * The cgroup of all pods: what {@link import('./node-capacity.ts').podsShare} leaves for them. When
 * `enforced` is false (`enforceNodeAllocatable` without `pods`), only the CPU share is set.
 */
export function kubepodsCgroupValues(
  share: ResourceAmounts,
  options: { enforced: boolean; pidsMax?: number; hugePageSizes: readonly number[] },
): CgroupValues {
  const shares = cpuShares(milliCpu(share));
  if (!options.enforced) return { cpuShares: shares };
  return {
    cpuShares: shares,
    ...(share.has('memory') ? { memoryLimit: bytesOf(share) } : {}),
    ...(options.pidsMax === undefined ? {} : { pidsMax: options.pidsMax }),
    hugePages: hugePageLimits(share, options.hugePageSizes, 0),
  };
}

function hugePageLimits(
  amounts: ResourceAmounts,
  sizes: readonly number[],
  otherwise: number,
): ReadonlyMap<number, number> {
  const limits = new Map(sizes.map((size) => [size, otherwise]));
  for (const [name, amount] of amounts) {
    if (!name.startsWith('hugepages-')) continue;
    limits.set(quantityValue(parseQuantity(name.slice('hugepages-'.length))), quantityValue(amount));
  }
  return limits;
}
