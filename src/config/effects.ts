/**
 * Which settings do something, and which are only accepted so far. A user who sets one of the latter is
 * told at start-up; silence would be a lie. Every flag and every field stands in exactly one list, and a
 * test keeps it so.
 */
import type { JsonObject, JsonValue } from '../kubernetes/yaml.ts';
import { FLAG_NAMES, FLAGS, type FlagName, type GivenFlags } from './flags/flags.ts';
import { listFields } from './kubelet-configuration.ts';
import { isDefault } from './rules/gate-rules.ts';

/** Flags without a configuration field that have an effect. */
export const EFFECTIVE_FLAGS: readonly FlagName[] = [
  'config',
  'config-dir',
  'help',
  'hostname-override',
  'image-credential-provider-bin-dir',
  'image-credential-provider-config',
  'maximum-dead-containers',
  'maximum-dead-containers-per-container',
  'minimum-container-ttl-duration',
  'root-dir',
  'version',
];

/** Flags without a configuration field that are read and checked, and change nothing yet. */
export const PENDING_FLAGS: readonly FlagName[] = [
  'application-metrics-count-limit',
  'boot-id-file',
  'bootstrap-kubeconfig',
  'cert-dir',
  'cloud-provider',
  'container-hints',
  'containerd',
  'containerd-namespace',
  'enable-load-reader',
  'event-storage-age-limit',
  'event-storage-event-limit',
  'exit-on-lock-contention',
  'experimental-allocatable-ignore-eviction',
  'experimental-mounter-path',
  'global-housekeeping-interval',
  'housekeeping-interval',
  'kubeconfig',
  'lock-file',
  'log-cadvisor-usage',
  'machine-id-file',
  'max-housekeeping-interval',
  'node-ip',
  'node-labels',
  'runtime-cgroups',
  'storage-driver-buffer-duration',
  'storage-driver-db',
  'storage-driver-host',
  'storage-driver-password',
  'storage-driver-secure',
  'storage-driver-table',
  'storage-driver-user',
  'windows-priorityclass',
  'windows-service',
];

/** Fields that have an effect; a flag that sets one has it too. Paths of leaves, lists as a whole. */
export const EFFECTIVE_FIELDS: readonly string[] = [
  'apiVersion',
  'kind',
  'staticPodPath',
  'staticPodURL',
  'staticPodURLHeader',
  'fileCheckFrequency',
  'httpCheckFrequency',
  'syncFrequency',
  'containerRuntimeEndpoint',
  'imageServiceEndpoint',
  'runtimeRequestTimeout',
  'healthzPort',
  'healthzBindAddress',
  'readOnlyPort',
  'address',
  'cgroupDriver',
  'cgroupRoot',
  'cgroupsPerQOS',
  'enforceNodeAllocatable',
  'kubeReserved',
  'systemReserved',
  'podPidsLimit',
  'cpuCFSQuota',
  'cpuCFSQuotaPeriod',
  'resolvConf',
  'clusterDNS',
  'clusterDomain',
  'podLogsDir',
  'failSwapOn',
  'failCgroupV1',
  'featureGates',
  'logging.verbosity',
  'logging.format',
  'logging.vmodule',
  'runOnce',
  'seccompDefault',
  'serializeImagePulls',
  'maxParallelImagePulls',
  'imageGCHighThresholdPercent',
  'imageGCLowThresholdPercent',
  'imageMaximumGCAge',
  'imageMinimumGCAge',
  'imagePullCredentialsVerificationPolicy',
  'preloadedImagesVerificationAllowlist',
  'maxPods',
  'podsPerCore',
  'crashLoopBackOff.maxContainerRestartPeriod',
  'memorySwap.swapBehavior',
  'singleProcessOOMKill',
  'allowedUnsafeSysctls',
  'userNamespaces.idsPerPod',
];

/** Fields that are read and checked, and change nothing yet. */
export const PENDING_FIELDS: readonly string[] = [
  'authentication.anonymous.enabled',
  'authentication.webhook.cacheTTL',
  'authentication.webhook.enabled',
  'authentication.x509.clientCAFile',
  'authorization.mode',
  'authorization.webhook.cacheAuthorizedTTL',
  'authorization.webhook.cacheUnauthorizedTTL',
  'configMapAndSecretChangeDetectionStrategy',
  'containerLogMaxFiles',
  'containerLogMaxSize',
  'containerLogMaxWorkers',
  'containerLogMonitorInterval',
  'contentType',
  'cpuManagerPolicy',
  'cpuManagerPolicyOptions',
  'cpuManagerReconcilePeriod',
  'enableContentionProfiling',
  'enableControllerAttachDetach',
  'enableDebugFlagsHandler',
  'enableDebuggingHandlers',
  'enableProfilingHandler',
  'enableServer',
  'enableSystemLogHandler',
  'enableSystemLogQuery',
  'eventBurst',
  'eventRecordQPS',
  'evictionHard',
  'evictionMaxPodGracePeriod',
  'evictionMinimumReclaim',
  'evictionPressureTransitionPeriod',
  'evictionSoft',
  'evictionSoftGracePeriod',
  'hairpinMode',
  'iptablesDropBit',
  'iptablesMasqueradeBit',
  'kernelMemcgNotification',
  'kubeAPIBurst',
  'kubeAPIQPS',
  'kubeReservedCgroup',
  'kubeletCgroups',
  'localStorageCapacityIsolation',
  'logging.flushFrequency',
  'logging.options.json.infoBufferSize',
  'logging.options.json.splitStream',
  'logging.options.text.infoBufferSize',
  'logging.options.text.splitStream',
  'makeIPTablesUtilChains',
  'maxOpenFiles',
  'memoryManagerPolicy',
  'memoryReservationPolicy',
  'memoryThrottlingFactor',
  'mergeDefaultEvictionSettings',
  'nodeLeaseDurationSeconds',
  'nodeStatusMaxImages',
  'nodeStatusReportFrequency',
  'nodeStatusUpdateFrequency',
  'oomScoreAdj',
  'podCIDR',
  'port',
  'protectKernelDefaults',
  'providerID',
  'qosReserved',
  'registerNode',
  'registerWithTaints',
  'registryBurst',
  'registryPullQPS',
  'reservedMemory',
  'reservedSystemCPUs',
  'rotateCertificates',
  'serverTLSBootstrap',
  'showHiddenMetricsForVersion',
  'shutdownGracePeriod',
  'shutdownGracePeriodByPodPriority',
  'shutdownGracePeriodCriticalPods',
  'streamingConnectionIdleTimeout',
  'systemCgroups',
  'systemReservedCgroup',
  'tlsCertFile',
  'tlsCipherSuites',
  'tlsCurvePreferences',
  'tlsMinVersion',
  'tlsPrivateKeyFile',
  'topologyManagerPolicy',
  'topologyManagerPolicyOptions',
  'topologyManagerScope',
  'tracing.endpoint',
  'tracing.samplingRatePerMillion',
  'volumePluginDir',
  'volumeStatsAggPeriod',
];

/**
 * What the user set away from its default although it changes nothing yet: `--flag` names and field
 * paths. `files` are the values of each configuration file.
 */
export function ineffective(given: GivenFlags, files: readonly JsonObject[]): string[] {
  const pendingFlags = new Set<string>(PENDING_FLAGS);
  const pendingFields = new Set<string>(PENDING_FIELDS);
  const fields = listFields();
  const named = new Set<string>();
  for (const name of FLAG_NAMES) {
    const { field, default: byDefault } = FLAGS[name];
    const value = given[name];
    if (value === undefined) continue;
    const isPending = field === undefined ? pendingFlags.has(name) : pendingFields.has(field);
    if (isPending && JSON.stringify(value) !== JSON.stringify(byDefault)) named.add(`--${name}`);
  }
  for (const values of files) {
    for (const path of PENDING_FIELDS) {
      const value = valueAt(values, path.split('.'));
      const described = fields.get(path);
      if (value === undefined || value === null || !described || isDefault(described, value)) continue;
      named.add(path);
    }
  }
  return [...named];
}

function valueAt(values: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = values;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, part))
      return undefined;
    value = value[part];
  }
  return value;
}
