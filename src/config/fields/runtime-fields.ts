/** The container runtime, images, and the process itself. */
import { bool, choice, duration, integer, text, texts } from '../field.ts';
import {
  absoluteCgroup,
  atLeast,
  between,
  notEmpty,
  notNegativeDuration,
  positiveDuration,
} from '../value-checks.ts';

export const runtimeFields = {
  cgroupDriver: choice('string', ['cgroupfs', 'systemd'], 'Cgroup naming and management driver', {
    default: 'cgroupfs',
  }),
  cgroupRoot: text('Parent of all pod cgroups', { default: '' }),
  cgroupsPerQOS: bool('Create QoS and pod level cgroups', { default: true, pointer: true }),
  containerRuntimeEndpoint: text('CRI runtime endpoint', {
    default: 'unix:///run/containerd/containerd.sock',
    check: notEmpty,
  }),
  failCgroupV1: bool('Refuse to start on cgroup v1', { default: true, pointer: true }),
  failSwapOn: bool('Refuse to start while swap is on', { default: true, pointer: true }),
  imageGCHighThresholdPercent: integer('int32', 'Disk use that triggers image collection', {
    default: 85,
    pointer: true,
    check: between(0, 100),
  }),
  imageGCLowThresholdPercent: integer('int32', 'Disk use image collection frees down to', {
    default: 80,
    pointer: true,
    check: between(0, 100),
  }),
  imageMaximumGCAge: duration('Unused images older than this are removed', {
    default: '0s',
    gate: 'ImageMaximumGCAge',
    check: notNegativeDuration,
  }),
  imageMinimumGCAge: duration('Unused image must be this old to be collected', {
    default: '2m',
    check: notNegativeDuration,
  }),
  imagePullCredentialsVerificationPolicy: choice(
    'string(enum)',
    ['NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'],
    'When present images need credential checks',
    { gate: 'KubeletEnsureSecretPulledImages' },
  ),
  imageServiceEndpoint: text('CRI image endpoint', { default: '' }),
  kubeletCgroups: text('Cgroup the kubelet moves itself into', { default: '', check: absoluteCgroup }),
  maxOpenFiles: integer('int64', 'RLIMIT_NOFILE of the kubelet', { default: 1000000, check: atLeast(0) }),
  maxParallelImagePulls: integer('int32', 'Ceiling of concurrent pulls', {
    pointer: true,
    check: atLeast(1),
  }),
  oomScoreAdj: integer('int32', 'oom_score_adj of the kubelet process', {
    default: -999,
    pointer: true,
    check: between(-1000, 1000),
  }),
  preloadedImagesVerificationAllowlist: texts('Preloaded images exempt from credential checks', {
    gate: 'KubeletEnsureSecretPulledImages',
  }),
  protectKernelDefaults: bool('Fail instead of changing kernel tunables', { default: false }),
  registryBurst: integer('int32', 'Burst of image pulls', { default: 10, check: atLeast(0) }),
  registryPullQPS: integer('int32', 'Image pulls per second', {
    default: 5,
    pointer: true,
    check: atLeast(0),
  }),
  runtimeRequestTimeout: duration('Deadline of ordinary CRI calls', {
    default: '2m',
    check: positiveDuration,
  }),
  serializeImagePulls: bool('Pull images one by one; here false unless given', {
    default: true,
    pointer: true,
  }),
  singleProcessOOMKill: bool('If true, memory.oom.group is not set', { pointer: true }),
  systemCgroups: text('Cgroup for stray non-kernel processes', { default: '', check: absoluteCgroup }),
};
