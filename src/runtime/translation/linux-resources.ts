/**
 * Requests and limits as the kernel counts them: CPU shares and quota, memory, swap, huge pages and the
 * OOM score, for sandboxes and containers, on cgroup v1 and v2.
 */
import { cpuQuota, cpuShares, hugePageSizeName } from '../../kubernetes/cgroup-amounts.ts';
import { oomScoreAdj } from '../../kubernetes/oom-score.ts';
import { isCriticalPod } from '../../kubernetes/pod-identity.ts';
import {
  amountsOf,
  bytesOf,
  containerLimits,
  containerRequests,
  milliCpu,
  podLimits,
  podRequests,
  type ResourceAmounts,
} from '../../kubernetes/pod-resources.ts';
import { podQosClass } from '../../kubernetes/qos.ts';
import type { Container, Pod } from '../../kubernetes/types.ts';
import type { HugepageLimit, LinuxContainerResources } from '../generated/cri.ts';

/** How the node limits CPU time. */
export interface CpuQuotaSettings {
  /** `cpuCFSQuota`: false means no quota for anybody. */
  readonly enabled: boolean;
  /** `cpuCFSQuotaPeriod` in microseconds, 100000 as a rule. */
  readonly periodUs: number;
}

/** `memoryThrottlingFactor` and `memoryReservationPolicy` of the MemoryQoS feature. */
export interface MemoryQosSettings {
  readonly throttlingFactor: number;
  /** With `TieredReservation`, requests are kept from being reclaimed. */
  readonly reservation: 'TieredReservation' | 'None';
  readonly nodeAllocatableBytes: number;
  readonly pageSizeBytes: number;
}

/** What the node is like and how the agent is configured, as far as resources are concerned. */
export interface NodeResourceSettings {
  readonly cgroupVersion: 1 | 2;
  /** Memory capacity of the node. */
  readonly nodeMemoryBytes: number;
  readonly cpuQuota: CpuQuotaSettings;
  /** Sizes of the node's huge pages, in bytes. */
  readonly hugePageSizes: readonly number[];
  readonly swap: {
    /** False where the kernel keeps no account of swap; then nothing is said about it. */
    readonly controllerAvailable: boolean;
    /** `memorySwap.swapBehavior` */
    readonly behavior: 'NoSwap' | 'LimitedSwap';
    readonly totalBytes: number;
  };
  /** Kill one process instead of all of a container when it is out of memory. */
  readonly singleProcessOomKill: boolean;
  /** Absent while the MemoryQoS feature is off. */
  readonly memoryQos?: MemoryQosSettings | undefined;
}

/** CPUs and memory nodes that were given to a container; an exclusive share goes without quota. */
export interface CpuAssignment {
  /** Kernel list, for example `2-3`; empty for no pinning. */
  readonly cpus: string;
  readonly mems: string;
  readonly exclusive: boolean;
}

/** Totals of the pod's containers, without overhead; runtimes that start machines size them by it. */
export function sandboxResources(
  pod: Pod,
  quota: CpuQuotaSettings,
  hasExclusiveCpus = false,
): LinuxContainerResources {
  const requests = podRequests(pod.spec, { withoutOverhead: true });
  const limits = podLimits(pod.spec, { withoutOverhead: true });
  return cpuAndMemory(requests, limits, hasExclusiveCpus ? undefined : quota);
}

/** What the runtime itself needs around the containers (`spec.overhead`). */
export function sandboxOverhead(pod: Pod, quota: CpuQuotaSettings): LinuxContainerResources {
  if (!pod.spec.overhead) return noResources();
  const overhead = amountsOf(pod.spec.overhead);
  return cpuAndMemory(overhead, overhead, quota);
}

export interface ContainerResourcesInput {
  readonly pod: Pod;
  readonly container: Container;
  readonly node: NodeResourceSettings;
  readonly assignment?: CpuAssignment | undefined;
}

/** What the kernel is to give one container, on the cgroup version of the node. */
export function containerResources(input: ContainerResourcesInput): LinuxContainerResources {
  const { pod, container, node, assignment } = input;
  const requests = containerRequests(container);
  const limits = effectiveLimits(pod, container);
  const quota = assignment?.exclusive ? undefined : node.cpuQuota;
  const resources = cpuAndMemory(requests, limits, quota);
  resources.oomScoreAdj = BigInt(oomScoreAdj(pod, container, node.nodeMemoryBytes));
  resources.hugepageLimits = hugepageLimits(container, node.hugePageSizes);
  resources.cpusetCpus = assignment?.cpus ?? '';
  resources.cpusetMems = assignment?.mems ?? '';
  if (node.cgroupVersion === 2) {
    resources.unified = { ...oomGroup(node), ...memoryQos(input, limits), ...swapMax(input) };
  } else if (node.swap.controllerAvailable) {
    // Memory and swap are counted together on v1; the same limit for both leaves no swap.
    resources.memorySwapLimitInBytes = resources.memoryLimitInBytes;
  }
  return resources;
}

/** A container without a limit of its own is bounded by the pod's, where the pod has one. */
function effectiveLimits(pod: Pod, container: Container): ResourceAmounts {
  const limits = new Map(containerLimits(container));
  const podLevel = amountsOf(pod.spec.resources?.limits);
  for (const name of ['cpu', 'memory']) {
    const bound = podLevel.get(name);
    if (bound && (limits.get(name)?.nano ?? 0n) === 0n) limits.set(name, bound);
  }
  return limits;
}

function cpuAndMemory(
  requests: ResourceAmounts,
  limits: ResourceAmounts,
  quota: CpuQuotaSettings | undefined,
): LinuxContainerResources {
  const resources = noResources();
  const shares = cpuShares(milliCpu(requests.has('cpu') ? requests : limits));
  resources.cpuShares = BigInt(shares);
  resources.memoryLimitInBytes = BigInt(bytesOf(limits));
  if (quota?.enabled) {
    resources.cpuPeriod = BigInt(quota.periodUs);
    resources.cpuQuota = BigInt(cpuQuota(milliCpu(limits), quota.periodUs));
  }
  return resources;
}

function hugepageLimits(container: Container, sizes: readonly number[]): HugepageLimit[] {
  const asked = new Map<number, bigint>();
  const limits = containerLimits(container);
  for (const name of limits.keys()) {
    if (!name.startsWith('hugepages-')) continue;
    const size = bytesOf(amountsOf({ size: name.slice('hugepages-'.length) }), 'size');
    asked.set(size, BigInt(bytesOf(limits, name)));
  }
  return [...new Set([...sizes, ...asked.keys()])].map((size) => ({
    pageSize: hugePageSizeName(size),
    limit: asked.get(size) ?? 0n,
  }));
}

type Unified = Record<string, string>;

function oomGroup(node: NodeResourceSettings): Unified {
  return node.singleProcessOomKill ? {} : { 'memory.oom.group': '1' };
}

function swapMax(input: ContainerResourcesInput): Unified {
  const { swap } = input.node;
  if (!swap.controllerAvailable) return {};
  const bytes = swap.behavior === 'LimitedSwap' ? limitedSwapBytes(input) : 0;
  return { 'memory.swap.max': String(bytes) };
}

/** A container's share of the node's swap, in proportion to its share of the node's memory. */
function limitedSwapBytes({ pod, container, node }: ContainerResourcesInput): number {
  const request = bytesOf(containerRequests(container));
  const isFixed = request === bytesOf(containerLimits(container));
  if (podQosClass(pod.spec) !== 'Burstable' || isCriticalPod(pod) || request === 0 || isFixed) return 0;
  return Math.floor((request / Math.max(node.nodeMemoryBytes, 1)) * node.swap.totalBytes);
}

function memoryQos({ pod, container, node }: ContainerResourcesInput, limits: ResourceAmounts): Unified {
  const settings = node.memoryQos;
  if (!settings) return {};
  const result: Unified = {};
  const qos = podQosClass(pod.spec);
  const request = bytesOf(containerRequests(container));
  if (settings.reservation === 'TieredReservation' && request > 0) {
    result[qos === 'Guaranteed' ? 'memory.min' : 'memory.low'] = String(request);
  }
  const bound = bytesOf(limits) || settings.nodeAllocatableBytes;
  if (qos === 'Guaranteed' || bound === request) return result;
  const high = request + (bound - request) * settings.throttlingFactor;
  const floored = Math.floor(high / settings.pageSizeBytes) * settings.pageSizeBytes;
  if (floored > request) result['memory.high'] = String(floored);
  return result;
}

function noResources(): LinuxContainerResources {
  return {
    cpuPeriod: 0n,
    cpuQuota: 0n,
    cpuShares: 0n,
    memoryLimitInBytes: 0n,
    oomScoreAdj: 0n,
    cpusetCpus: '',
    cpusetMems: '',
    hugepageLimits: [],
    unified: {},
    memorySwapLimitInBytes: 0n,
  };
}
