/** Reservations, limits, managers, eviction. */
import { configFlag, retiredFlag } from './flag.ts';

export const resourcesFlags = {
  'cpu-cfs-quota': configFlag('bool', true, 'cpuCFSQuota', 'Enforce CPU limits with CFS quota'),
  'cpu-cfs-quota-period': configFlag('duration', '100ms', 'cpuCFSQuotaPeriod', 'CFS period for quotas'),
  'cpu-manager-policy': configFlag('string', 'none', 'cpuManagerPolicy', 'CPU manager policy'),
  'cpu-manager-policy-options': configFlag(
    'mapStringString',
    {},
    'cpuManagerPolicyOptions',
    'Options of the CPU manager policy',
  ),
  'cpu-manager-reconcile-period': configFlag(
    'duration',
    '10s',
    'cpuManagerReconcilePeriod',
    'CPU manager reconcile loop period',
  ),
  'enforce-node-allocatable': configFlag(
    'strings',
    ['pods'],
    'enforceNodeAllocatable',
    'Allocatable enforcement levels',
  ),
  'eviction-hard': configFlag('mapStringString', {}, 'evictionHard', 'Hard eviction thresholds', {
    separator: '<',
  }),
  'eviction-max-pod-grace-period': configFlag(
    'int32',
    0,
    'evictionMaxPodGracePeriod',
    'Cap on grace period in soft evictions',
  ),
  'eviction-minimum-reclaim': configFlag(
    'mapStringString',
    {},
    'evictionMinimumReclaim',
    'Extra amount to reclaim past the threshold',
  ),
  'eviction-pressure-transition-period': configFlag(
    'duration',
    '5m',
    'evictionPressureTransitionPeriod',
    'Hold time before a pressure condition clears',
  ),
  'eviction-soft': configFlag('mapStringString', {}, 'evictionSoft', 'Soft eviction thresholds', {
    separator: '<',
  }),
  'eviction-soft-grace-period': configFlag(
    'mapStringString',
    {},
    'evictionSoftGracePeriod',
    'Grace for each soft signal',
  ),
  'experimental-allocatable-ignore-eviction': retiredFlag(
    'bool',
    false,
    'Leave hard eviction out of allocatable',
  ),
  'kernel-memcg-notification': configFlag(
    'bool',
    false,
    'kernelMemcgNotification',
    'Use memcg notifications besides polling',
  ),
  'kube-reserved': configFlag('mapStringString', {}, 'kubeReserved', 'Resources kept for Kubernetes daemons'),
  'kube-reserved-cgroup': configFlag(
    'string',
    '',
    'kubeReservedCgroup',
    'Cgroup where kubeReserved is enforced',
  ),
  'max-pods': configFlag('int32', 110, 'maxPods', 'Pod limit of the node'),
  'maximum-dead-containers': retiredFlag('int32', -1, 'Dead instances kept on the node; negative = no limit'),
  'maximum-dead-containers-per-container': retiredFlag('int32', 1, 'Dead instances kept for each container'),
  'memory-manager-policy': configFlag('string', 'None', 'memoryManagerPolicy', 'Memory manager policy'),
  'minimum-container-ttl-duration': retiredFlag(
    'duration',
    '0s',
    'Age a dead container must reach before removal',
  ),
  'pod-max-pids': configFlag('int64', -1, 'podPidsLimit', 'PID limit of each pod cgroup'),
  'pods-per-core': configFlag('int32', 0, 'podsPerCore', 'Pod limit by CPU core'),
  'qos-reserved': configFlag(
    'mapStringString',
    {},
    'qosReserved',
    'Percent of requests kept from lower QoS classes',
  ),
  'reserved-cpus': configFlag('string', '', 'reservedSystemCPUs', 'Explicit CPUs reserved for the system'),
  'reserved-memory': configFlag('reserved-memory', [], 'reservedMemory', 'Memory reserved on each NUMA node'),
  'system-reserved': configFlag('mapStringString', {}, 'systemReserved', 'Resources kept for OS daemons'),
  'system-reserved-cgroup': configFlag(
    'string',
    '',
    'systemReservedCgroup',
    'Cgroup where systemReserved is enforced',
  ),
  'topology-manager-policy': configFlag('string', 'none', 'topologyManagerPolicy', 'NUMA alignment policy'),
  'topology-manager-policy-options': configFlag(
    'mapStringString',
    {},
    'topologyManagerPolicyOptions',
    'Options of the topology manager policy',
  ),
  'topology-manager-scope': configFlag(
    'string',
    'container',
    'topologyManagerScope',
    'Unit to which alignment applies',
  ),
};
