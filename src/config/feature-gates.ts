/**
 * Feature gates of Kubernetes 1.36 that touch the node agent, and the set of them that is on.
 *
 * Unknown gates and locked gates set to the other value are refused: a misspelt gate must not pass
 * unnoticed. `AllAlpha` and `AllBeta` switch every gate of their stage that is not named itself.
 */
import { nearestName } from '../kubernetes/nearest-name.ts';

/** What Kubernetes 1.36 says of a gate. */
export interface GateDefinition {
  readonly default: boolean;
  readonly stage: 'Alpha' | 'Beta' | 'GA' | 'Deprecated';
  /** The value is fixed. */
  readonly locked?: true;
}

const gates = {
  AllAlpha: { default: false, stage: 'Alpha' },
  AllBeta: { default: false, stage: 'Beta' },
  AllowDNSOnlyNodeCSR: { default: false, stage: 'Deprecated' },
  APIServingWithRoutine: { default: false, stage: 'Alpha' },
  AtomicFIFO: { default: true, stage: 'Beta' },
  ChangeContainerStatusOnKubeletRestart: { default: false, stage: 'Deprecated' },
  ClientsAllowCARotation: { default: true, stage: 'Beta' },
  ClientsAllowCBOR: { default: false, stage: 'Alpha' },
  ClientsAllowTLSCacheGC: { default: true, stage: 'Beta' },
  ClientsPreferCBOR: { default: false, stage: 'Alpha' },
  ClusterTrustBundle: { default: false, stage: 'Beta' },
  ClusterTrustBundleProjection: { default: false, stage: 'Beta' },
  ComponentFlagz: { default: true, stage: 'Beta' },
  ComponentStatusz: { default: true, stage: 'Beta' },
  ContainerCheckpoint: { default: true, stage: 'Beta' },
  ContainerRestartRules: { default: true, stage: 'Beta' },
  ContainerStopSignals: { default: false, stage: 'Alpha' },
  ContextualLogging: { default: true, stage: 'Beta' },
  CPUManagerPolicyAlphaOptions: { default: false, stage: 'Alpha' },
  CPUManagerPolicyBetaOptions: { default: true, stage: 'Beta' },
  CPUManagerPolicyOptions: { default: true, stage: 'GA', locked: true },
  CRIListStreaming: { default: false, stage: 'Alpha' },
  CSIVolumeHealth: { default: false, stage: 'Alpha' },
  CustomCPUCFSQuotaPeriod: { default: false, stage: 'Alpha' },
  DisableCPUQuotaWithExclusiveCPUs: { default: true, stage: 'Deprecated' },
  DisableNodeKubeProxyVersion: { default: true, stage: 'Deprecated', locked: true },
  DRAConsumableCapacity: { default: true, stage: 'Beta' },
  DRAExtendedResource: { default: true, stage: 'Beta' },
  DRAWorkloadResourceClaims: { default: false, stage: 'Alpha' },
  DynamicResourceAllocation: { default: true, stage: 'GA', locked: true },
  EnvFiles: { default: true, stage: 'Beta' },
  EventedPLEG: { default: false, stage: 'Alpha' },
  ExtendWebSocketsToKubelet: { default: true, stage: 'Beta' },
  GitRepoVolumeDriver: { default: false, stage: 'Deprecated', locked: true },
  GracefulNodeShutdown: { default: true, stage: 'Beta' },
  GracefulNodeShutdownBasedOnPodPriority: { default: true, stage: 'Beta' },
  HostnameOverride: { default: true, stage: 'Beta' },
  ImageMaximumGCAge: { default: true, stage: 'GA', locked: true },
  ImageVolume: { default: true, stage: 'GA', locked: true },
  ImageVolumeWithDigest: { default: false, stage: 'Alpha' },
  InformerResourceVersion: { default: true, stage: 'GA' },
  InOrderInformers: { default: true, stage: 'GA', locked: true },
  InOrderInformersBatchProcess: { default: true, stage: 'Beta' },
  InPlacePodLevelResourcesVerticalScaling: { default: true, stage: 'Beta' },
  InPlacePodVerticalScaling: { default: true, stage: 'GA', locked: true },
  InPlacePodVerticalScalingExclusiveCPUs: { default: false, stage: 'Alpha' },
  InPlacePodVerticalScalingExclusiveMemory: { default: false, stage: 'Alpha' },
  InPlacePodVerticalScalingInitContainers: { default: true, stage: 'Beta' },
  KubeletCrashLoopBackOffMax: { default: true, stage: 'Beta' },
  KubeletEnsureSecretPulledImages: { default: true, stage: 'Beta' },
  KubeletFineGrainedAuthz: { default: true, stage: 'GA', locked: true },
  KubeletInUserNamespace: { default: false, stage: 'Alpha' },
  KubeletPodResourcesGet: { default: true, stage: 'GA', locked: true },
  KubeletPodResourcesListUseActivePods: { default: true, stage: 'Deprecated' },
  KubeletPSI: { default: true, stage: 'GA', locked: true },
  KubeletRegistrationGetOnExistsOnly: { default: false, stage: 'Deprecated' },
  KubeletSeparateDiskGC: { default: true, stage: 'Beta' },
  KubeletServiceAccountTokenForCredentialProviders: { default: true, stage: 'Beta' },
  LocalStorageCapacityIsolationFSQuotaMonitoring: { default: false, stage: 'Beta' },
  LoggingAlphaOptions: { default: false, stage: 'Alpha' },
  LoggingBetaOptions: { default: true, stage: 'Beta' },
  MemoryQoS: { default: false, stage: 'Alpha' },
  MutableCSINodeAllocatableCount: { default: true, stage: 'GA', locked: true },
  NativeHistograms: { default: false, stage: 'Alpha' },
  NodeDeclaredFeatures: { default: true, stage: 'Beta' },
  NodeLogQuery: { default: true, stage: 'GA', locked: true },
  NodeSwap: { default: true, stage: 'GA', locked: true },
  PLEGOnDemandRelist: { default: true, stage: 'Beta' },
  PodAndContainerStatsFromCRI: { default: false, stage: 'Alpha' },
  PodCertificateRequest: { default: false, stage: 'Beta' },
  PodLevelResourceManagers: { default: false, stage: 'Alpha' },
  PodLevelResources: { default: true, stage: 'Beta' },
  PodLifecycleSleepAction: { default: true, stage: 'GA', locked: true },
  PodLogsQuerySplitStreams: { default: false, stage: 'Alpha' },
  PodObservedGenerationTracking: { default: true, stage: 'GA', locked: true },
  PodReadyToStartContainersCondition: { default: true, stage: 'Beta' },
  PodsAPI: { default: false, stage: 'Alpha' },
  PreventStaticPodAPIReferences: { default: true, stage: 'Beta' },
  ProcMountType: { default: true, stage: 'GA', locked: true },
  QOSReserved: { default: false, stage: 'Alpha' },
  RecoverVolumeExpansionFailure: { default: true, stage: 'GA', locked: true },
  RecursiveReadOnlyMounts: { default: true, stage: 'GA', locked: true },
  ReduceDefaultCrashLoopBackOffDecay: { default: false, stage: 'Alpha' },
  ReloadKubeletClientCAFile: { default: true, stage: 'Beta' },
  ReloadKubeletServerCertificateFile: { default: true, stage: 'Beta' },
  ResourceHealthStatus: { default: true, stage: 'Beta' },
  ResourceHealthStatusMessage: { default: true, stage: 'Beta' },
  RestartAllContainersOnContainerExits: { default: true, stage: 'Beta' },
  RotateKubeletServerCertificate: { default: true, stage: 'Beta' },
  RuntimeClassInImageCriApi: { default: false, stage: 'Alpha' },
  SELinuxChangePolicy: { default: true, stage: 'GA', locked: true },
  SELinuxMount: { default: false, stage: 'Beta' },
  SELinuxMountReadWriteOncePod: { default: true, stage: 'GA', locked: true },
  ServiceAccountNodeAudienceRestriction: { default: true, stage: 'Beta' },
  ServiceAccountTokenNodeBinding: { default: true, stage: 'GA', locked: true },
  SupplementalGroupsPolicy: { default: true, stage: 'GA', locked: true },
  TaintTolerationComparisonOperators: { default: false, stage: 'Alpha' },
  TopologyManagerPolicyAlphaOptions: { default: false, stage: 'Alpha' },
  TopologyManagerPolicyBetaOptions: { default: true, stage: 'Beta' },
  TopologyManagerPolicyOptions: { default: true, stage: 'GA', locked: true },
  UnlockWhileProcessingFIFO: { default: true, stage: 'Beta' },
  UserNamespacesHostNetworkSupport: { default: false, stage: 'Alpha' },
  UserNamespacesSupport: { default: true, stage: 'GA', locked: true },
  WatchListClient: { default: true, stage: 'Beta' },
  WindowsCPUAndMemoryAffinity: { default: false, stage: 'Alpha' },
  WindowsGracefulNodeShutdown: { default: true, stage: 'Beta' },
} as const satisfies Record<string, GateDefinition>;

/** The name of a gate that touches the node agent. */
export type GateName = keyof typeof gates;

/** Every gate by name. */
export const FEATURE_GATES: Readonly<Record<GateName, GateDefinition>> = gates;

/** Every gate, in order of names. */
export const GATE_NAMES = Object.keys(gates) as GateName[];

/** The gates as they are set. */
export interface FeatureGates {
  enabled(name: GateName): boolean;
  /** Every gate with its value, for the log and for `/flagz`-like pages. */
  entries(): [GateName, boolean][];
}

/** `problems` are `[gate name, message]`; the wrong entries are left out of `gates`. */
export function resolveFeatureGates(overrides: Readonly<Record<string, boolean>>): {
  gates: FeatureGates;
  problems: [string, string][];
  warnings: string[];
} {
  const problems: [string, string][] = [];
  const warnings: string[] = [];
  const named = new Map<GateName, boolean>();
  for (const [name, value] of Object.entries(overrides)) {
    const definition = Object.hasOwn(FEATURE_GATES, name) ? FEATURE_GATES[name as GateName] : undefined;
    if (!definition) {
      const nearest = nearestName(name, GATE_NAMES);
      problems.push([name, `unknown feature gate${nearest ? `; did you mean ${nearest}?` : ''}`]);
    } else if (definition.locked && definition.default !== value) {
      problems.push([name, `cannot be set to ${value}: the gate is locked to ${definition.default}`]);
    } else {
      named.set(name as GateName, value);
      if (definition.stage === 'GA' || definition.stage === 'Deprecated') {
        warnings.push(`feature gate ${name} is ${definition.stage}: it will be removed in a future release`);
      }
    }
  }
  const values = new Map(GATE_NAMES.map((name) => [name, valueOf(name, named)]));
  return {
    gates: { enabled: (name) => values.get(name) ?? false, entries: () => [...values] },
    problems,
    warnings,
  };
}

function valueOf(name: GateName, named: ReadonlyMap<GateName, boolean>): boolean {
  const own = named.get(name);
  if (own !== undefined) return own;
  const { stage, default: byDefault, locked } = FEATURE_GATES[name];
  if (locked || name === 'AllAlpha' || name === 'AllBeta') return byDefault;
  const ofStage =
    stage === 'Alpha' ? named.get('AllAlpha') : stage === 'Beta' ? named.get('AllBeta') : undefined;
  return ofStage ?? byDefault;
}
