/** CPU, memory, NUMA, reservations, limits of the node, eviction. */
import {
  bool,
  choice,
  duration,
  float,
  integer,
  map,
  object,
  objects,
  required,
  text,
  texts,
} from '../field.ts';
import { aboveZeroUpToOne, absoluteCgroup, atLeast, cpuSet, durationBetween } from '../value-checks.ts';

/** Thresholds on Linux when a configuration names none. */
const DEFAULT_EVICTION_HARD = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
};

export const resourcesFields = {
  cpuCFSQuota: bool('Enforce CPU limits with CFS quota', { default: true, pointer: true }),
  cpuCFSQuotaPeriod: duration('CFS period for quotas', {
    default: '100ms',
    pointer: true,
    gate: 'CustomCPUCFSQuotaPeriod',
    check: durationBetween('1ms', '1s'),
  }),
  cpuManagerPolicy: choice('string', ['none', 'static'], 'CPU manager policy', { default: 'none' }),
  cpuManagerPolicyOptions: map('string', 'Options of the CPU manager policy'),
  cpuManagerReconcilePeriod: duration('CPU manager reconcile loop period', { default: '10s' }),
  enforceNodeAllocatable: texts('Allocatable enforcement levels', { default: ['pods'] }),
  evictionHard: map('string', 'Hard eviction thresholds', { default: DEFAULT_EVICTION_HARD }),
  evictionMaxPodGracePeriod: integer('int32', 'Cap on grace period in soft evictions', { default: 0 }),
  evictionMinimumReclaim: map('string', 'Extra amount to reclaim past the threshold'),
  evictionPressureTransitionPeriod: duration('Hold time before a pressure condition clears', {
    default: '5m',
  }),
  evictionSoft: map('string', 'Soft eviction thresholds'),
  evictionSoftGracePeriod: map('string', 'Grace for each soft signal'),
  kernelMemcgNotification: bool('Use memcg notifications besides polling', { default: false }),
  kubeReserved: map('string', 'Resources kept for Kubernetes daemons'),
  kubeReservedCgroup: text('Cgroup where kubeReserved is enforced', { default: '', check: absoluteCgroup }),
  maxPods: integer('int32', 'Pod limit of the node', { default: 110, check: atLeast(0) }),
  memoryManagerPolicy: choice('string', ['None', 'Static'], 'Memory manager policy', { default: 'None' }),
  memoryReservationPolicy: choice(
    'string(enum)',
    ['None', 'TieredReservation'],
    'Whether memory.min/low are set',
    { default: 'None', gate: 'MemoryQoS' },
  ),
  memorySwap: object(
    'Swap settings',
    {
      swapBehavior: choice('string', ['', 'NoSwap', 'LimitedSwap'], 'Swap policy for workloads', {
        default: '',
        gate: 'NodeSwap',
      }),
    },
    { gate: 'NodeSwap' },
  ),
  memoryThrottlingFactor: float('Factor for memory.high', {
    default: 0.9,
    pointer: true,
    gate: 'MemoryQoS',
    check: aboveZeroUpToOne,
  }),
  mergeDefaultEvictionSettings: bool('Keep default hard thresholds for unnamed signals', {
    default: false,
    pointer: true,
  }),
  podPidsLimit: integer('int64', 'PID limit of each pod cgroup', { default: -1, pointer: true }),
  podsPerCore: integer('int32', 'Pod limit by CPU core', { default: 0, check: atLeast(0) }),
  qosReserved: map('string', 'Percent of requests kept from lower QoS classes', { gate: 'QOSReserved' }),
  reservedMemory: objects('list(object)', 'Memory reserved on each NUMA node', {
    limits: required(map('quantity', 'Reserved amounts')),
    numaNode: required(integer('int32', 'NUMA node id')),
  }),
  reservedSystemCPUs: text('Explicit CPUs reserved for the system', { default: '', check: cpuSet }),
  systemReserved: map('string', 'Resources kept for OS daemons'),
  systemReservedCgroup: text('Cgroup where systemReserved is enforced', {
    default: '',
    check: absoluteCgroup,
  }),
  topologyManagerPolicy: choice(
    'string',
    ['none', 'best-effort', 'restricted', 'single-numa-node'],
    'NUMA alignment policy',
    { default: 'none' },
  ),
  topologyManagerPolicyOptions: map('string', 'Options of the topology manager policy'),
  topologyManagerScope: choice('string', ['container', 'pod'], 'Unit to which alignment applies', {
    default: 'container',
  }),
};
