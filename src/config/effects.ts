/**
 * Which settings do something, and which are only accepted so far. A user who sets one of the latter is
 * told at start-up; silence would be a lie. Every flag and every field stands in exactly one list, every
 * gate that can be switched in the list of the effective ones or not at all, and tests keep it so.
 */
import type { JsonObject, JsonValue } from '../kubernetes/yaml.ts';
import { FEATURE_GATES, type FeatureGates, GATE_NAMES, type GateName } from './feature-gates.ts';
import { FLAG_NAMES, FLAGS, type FlagName, type GivenFlags } from './flags/flags.ts';
import { listFields } from './kubelet-configuration.ts';
import { isDefault } from './rules/gate-rules.ts';

/** Flags without a configuration field that have an effect. */
export const EFFECTIVE_FLAGS: readonly FlagName[] = [
  'boot-id-file',
  'bootstrap-kubeconfig',
  'cert-dir',
  'cloud-provider',
  'config',
  'config-dir',
  'experimental-allocatable-ignore-eviction',
  'help',
  'hostname-override',
  'housekeeping-interval',
  'image-credential-provider-bin-dir',
  'image-credential-provider-config',
  'kubeconfig',
  'machine-id-file',
  'maximum-dead-containers',
  'maximum-dead-containers-per-container',
  'minimum-container-ttl-duration',
  'node-ip',
  'node-labels',
  'restore-pods-offline',
  'root-dir',
  'runtime-cgroups',
  'version',
];

/** Flags without a configuration field that are read and checked, and change nothing yet. */
export const PENDING_FLAGS: readonly FlagName[] = [
  'application-metrics-count-limit',
  'container-hints',
  'containerd',
  'containerd-namespace',
  'enable-load-reader',
  'event-storage-age-limit',
  'event-storage-event-limit',
  'exit-on-lock-contention',
  'experimental-mounter-path',
  'global-housekeeping-interval',
  'lock-file',
  'log-cadvisor-usage',
  'max-housekeeping-interval',
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
  'authentication.anonymous.enabled',
  'authentication.webhook.cacheTTL',
  'authentication.webhook.enabled',
  'authentication.x509.clientCAFile',
  'authorization.mode',
  'authorization.webhook.cacheAuthorizedTTL',
  'authorization.webhook.cacheUnauthorizedTTL',
  'enableServer',
  'port',
  'tlsCertFile',
  'tlsCipherSuites',
  'tlsCurvePreferences',
  'tlsMinVersion',
  'tlsPrivateKeyFile',
  'enableDebuggingHandlers',
  'enableDebugFlagsHandler',
  'enableProfilingHandler',
  'enableSystemLogHandler',
  'enableSystemLogQuery',
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
  'containerLogMaxFiles',
  'containerLogMaxSize',
  'containerLogMaxWorkers',
  'containerLogMonitorInterval',
  'streamingConnectionIdleTimeout',
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
  'registryBurst',
  'registryPullQPS',
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
  'memoryThrottlingFactor',
  'memoryReservationPolicy',
  'reservedSystemCPUs',
  'localStorageCapacityIsolation',
  'volumeStatsAggPeriod',
  'configMapAndSecretChangeDetectionStrategy',
  'eventBurst',
  'eventRecordQPS',
  'kubeAPIBurst',
  'kubeAPIQPS',
  'nodeLeaseDurationSeconds',
  'nodeStatusMaxImages',
  'nodeStatusReportFrequency',
  'nodeStatusUpdateFrequency',
  'providerID',
  'registerNode',
  'registerWithTaints',
  'rotateCertificates',
  'serverTLSBootstrap',
  'podCIDR',
];

/**
 * Fields that are read and checked, and change nothing yet. `evictionHard` is among them while nothing is
 * evicted, although what it keeps free is already taken off what pods may ask for. `enableControllerAttachDetach`
 * is while there is no kind of volume that has to be attached: nodes say that the controller may. `systemCgroups`
 * is while no process is moved there, although statistics tell of that cgroup as `misc`.
 */
export const PENDING_FIELDS: readonly string[] = [
  'contentType',
  'cpuManagerPolicy',
  'cpuManagerPolicyOptions',
  'cpuManagerReconcilePeriod',
  'enableContentionProfiling',
  'enableControllerAttachDetach',
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
  'kubeReservedCgroup',
  'kubeletCgroups',
  'logging.flushFrequency',
  'logging.options.json.infoBufferSize',
  'logging.options.json.splitStream',
  'logging.options.text.infoBufferSize',
  'logging.options.text.splitStream',
  'makeIPTablesUtilChains',
  'maxOpenFiles',
  'memoryManagerPolicy',
  'mergeDefaultEvictionSettings',
  'oomScoreAdj',
  'protectKernelDefaults',
  'qosReserved',
  'reservedMemory',
  'showHiddenMetricsForVersion',
  'shutdownGracePeriod',
  'shutdownGracePeriodByPodPriority',
  'shutdownGracePeriodCriticalPods',
  'systemCgroups',
  'systemReservedCgroup',
  'topologyManagerPolicy',
  'topologyManagerPolicyOptions',
  'topologyManagerScope',
  'tracing.endpoint',
  'tracing.samplingRatePerMillion',
  'volumePluginDir',
];

/**
 * Gates that somebody asks for: by name in the code, or in the description of an effective field. Gates that
 * are locked cannot be switched and are left out.
 */
export const EFFECTIVE_GATES: readonly GateName[] = [
  'AllAlpha',
  'AllBeta',
  'ClusterTrustBundleProjection',
  'ComponentFlagz',
  'ComponentStatusz',
  'ContainerCheckpoint',
  'ContainerStopSignals',
  'CPUManagerPolicyAlphaOptions',
  'CPUManagerPolicyBetaOptions',
  'CustomCPUCFSQuotaPeriod',
  'ExtendWebSocketsToKubelet',
  'KubeletCrashLoopBackOffMax',
  'KubeletEnsureSecretPulledImages',
  'KubeletServiceAccountTokenForCredentialProviders',
  'MemoryQoS',
  'NodeDeclaredFeatures',
  'PodCertificateRequest',
  'PodLevelResources',
  'PodLogsQuerySplitStreams',
  'PreventStaticPodAPIReferences',
  'ReduceDefaultCrashLoopBackOffDecay',
  'ReloadKubeletClientCAFile',
  'ReloadKubeletServerCertificateFile',
  'RestartAllContainersOnContainerExits',
  'RotateKubeletServerCertificate',
  'TaintTolerationComparisonOperators',
  'UserNamespacesHostNetworkSupport',
];

/** Gates that can be switched, and change nothing yet: the behaviour is that of one of their values. */
export const PENDING_GATES: readonly GateName[] = GATE_NAMES.filter(
  (name) => !FEATURE_GATES[name].locked && !EFFECTIVE_GATES.includes(name),
);

/**
 * Values of pending fields beside their defaults that name what is done anyway: who sets them gets what they
 * ask for. Every request to the API server is in JSON.
 */
const doneAnyway: Readonly<Record<string, JsonValue>> = { contentType: 'application/json' };

/** What a user has set. */
export interface GivenSettings {
  readonly given: GivenFlags;
  /** The values of each configuration file. */
  readonly files: readonly JsonObject[];
  readonly gates: FeatureGates;
}

/**
 * What the user set away from its default although it changes nothing yet: `--flag` names, field paths, and
 * `featureGates.<gate>`, also for gates that `AllAlpha` or `AllBeta` switched.
 */
export function ineffective({ given, files, gates }: GivenSettings): string[] {
  const pendingFlags = new Set<string>(PENDING_FLAGS);
  const pendingFields = new Set<string>(PENDING_FIELDS);
  const fields = listFields();
  const named = new Set<string>();
  for (const name of FLAG_NAMES) {
    const { field, default: byDefault } = FLAGS[name];
    const value = given[name];
    if (value === undefined) continue;
    const isPending = field === undefined ? pendingFlags.has(name) : pendingFields.has(field);
    if (!isPending || (field !== undefined && doneAnyway[field] === value)) continue;
    if (JSON.stringify(value) !== JSON.stringify(byDefault)) named.add(`--${name}`);
  }
  for (const values of files) {
    for (const path of PENDING_FIELDS) {
      const value = valueAt(values, path.split('.'));
      const described = fields.get(path);
      if (value === undefined || value === null || !described || isDefault(described, value)) continue;
      if (doneAnyway[path] === value) continue;
      named.add(path);
    }
  }
  for (const name of PENDING_GATES) {
    if (gates.enabled(name) !== FEATURE_GATES[name].default) named.add(`featureGates.${name}`);
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
