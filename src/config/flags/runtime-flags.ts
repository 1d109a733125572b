/** The container runtime, images, and the process itself. */
import { configFlag, flag } from './flag.ts';

export const runtimeFlags = {
  'cgroup-driver': configFlag('string', 'cgroupfs', 'cgroupDriver', 'Cgroup naming and management driver'),
  'cgroup-root': configFlag('string', '', 'cgroupRoot', 'Parent of all pod cgroups'),
  'cgroups-per-qos': configFlag('bool', true, 'cgroupsPerQOS', 'Create QoS and pod level cgroups'),
  'container-runtime-endpoint': configFlag(
    'string',
    'unix:///run/containerd/containerd.sock',
    'containerRuntimeEndpoint',
    'CRI runtime endpoint',
  ),
  'fail-cgroupv1': flag('bool', true, 'Refuse to start on cgroup v1', { field: 'failCgroupV1' }),
  'fail-swap-on': configFlag('bool', true, 'failSwapOn', 'Refuse to start while swap is on'),
  'image-gc-high-threshold': configFlag(
    'int32',
    85,
    'imageGCHighThresholdPercent',
    'Disk use that triggers image collection',
  ),
  'image-gc-low-threshold': configFlag(
    'int32',
    80,
    'imageGCLowThresholdPercent',
    'Disk use image collection frees down to',
  ),
  'image-service-endpoint': configFlag('string', '', 'imageServiceEndpoint', 'CRI image endpoint'),
  'kubelet-cgroups': configFlag('string', '', 'kubeletCgroups', 'Cgroup the kubelet moves itself into'),
  'max-open-files': configFlag('int64', 1000000, 'maxOpenFiles', 'RLIMIT_NOFILE of the kubelet'),
  'minimum-image-ttl-duration': configFlag(
    'duration',
    '2m',
    'imageMinimumGCAge',
    'Unused image must be this old to be collected',
  ),
  'oom-score-adj': configFlag('int32', -999, 'oomScoreAdj', 'oom_score_adj of the kubelet process'),
  'protect-kernel-defaults': configFlag(
    'bool',
    false,
    'protectKernelDefaults',
    'Fail instead of changing kernel tunables',
  ),
  'registry-burst': configFlag('int32', 10, 'registryBurst', 'Burst of image pulls'),
  'registry-qps': configFlag('int32', 5, 'registryPullQPS', 'Image pulls per second'),
  'runtime-cgroups': flag('string', '', 'Cgroup of the container runtime'),
  'runtime-request-timeout': configFlag(
    'duration',
    '2m',
    'runtimeRequestTimeout',
    'Deadline of ordinary CRI calls',
  ),
  'serialize-image-pulls': configFlag('bool', true, 'serializeImagePulls', 'Pull images one by one'),
  'system-cgroups': configFlag('string', '', 'systemCgroups', 'Cgroup for stray non-kernel processes'),
};
