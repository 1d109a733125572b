/**
 * The configuration as the rooms use it: durations are milliseconds, quantities numbers, "not set" is
 * undefined. Only settings that have an effect are here; `effects.ts` lists the others.
 */
import path from 'node:path';
import { parseDuration } from '../kubernetes/duration.ts';
import { parseQuantity, quantityValue } from '../kubernetes/quantity.ts';
import { parseCpuSet } from './cpu-set.ts';
import type { FeatureGates } from './feature-gates.ts';
import type { FlagValues } from './flags/flags.ts';
import type { KubeletConfiguration } from './kubelet-configuration.ts';

interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

/** Resources kept from pods (`cpu`, `memory`, `ephemeral-storage`, `pid`), as quantities in text. */
type Reservation = Readonly<Record<string, string>>;

export interface NodeServerSettings extends ListenAddress {
  /** `--cert-dir`. */
  readonly certificateDirectory: string;
  /** The serving certificate: signed by the cluster, from files, or self-signed. */
  readonly serving:
    | { readonly kind: 'cluster' }
    | { readonly kind: 'files'; readonly certificateFile: string; readonly keyFile: string }
    | { readonly kind: 'self-signed' };
  readonly tls: {
    readonly minVersion: string;
    readonly cipherSuites: readonly string[];
    readonly curves: readonly number[];
  };
  readonly access: {
    readonly clientCaFile: string | undefined;
    readonly anonymous: boolean;
    readonly tokens: { readonly enabled: boolean; readonly cacheTtlMs: number };
    readonly authorization:
      | { readonly mode: 'AlwaysAllow' }
      | { readonly mode: 'Webhook'; readonly allowedTtlMs: number; readonly deniedTtlMs: number };
  };
  readonly debuggingHandlers: boolean;
  /** Endpoints that can be switched off one by one. */
  readonly handlers: {
    readonly flags: boolean;
    readonly status: boolean;
    readonly verbosity: boolean;
    readonly profiling: boolean;
    readonly systemLogs: boolean;
    readonly systemLogQueries: boolean;
  };
  /** Which files are read again when they change. */
  readonly reloads: { readonly clientCa: boolean; readonly serving: boolean };
}

/** What the rooms are told; every path is absolute. */
export interface NodeAgentSettings {
  /** Absolute, as every path here. */
  readonly rootDirectory: string;
  /** `--hostname-override`, trimmed and in lower case; undefined: the host's own name. */
  readonly hostnameOverride: string | undefined;
  readonly runOnce: boolean;
  /** Undefined without `--kubeconfig` and `--bootstrap-kubeconfig`: the node stands alone. */
  readonly cluster: ClusterSettings | undefined;
  /** Ranges of pod addresses of a node that stands alone; a cluster gives them out itself. */
  readonly podCidrs: readonly string[];

  readonly staticPods: {
    readonly path: string | undefined;
    readonly url: string | undefined;
    readonly urlHeaders: Readonly<Record<string, readonly string[]>>;
    readonly fileCheckMs: number;
    readonly httpCheckMs: number;
  };
  /** Longest time between two looks at a pod, even when nothing happened. */
  readonly resyncMs: number;
  readonly maxPods: number;
  /** 0: the number of CPUs limits no pods. */
  readonly podsPerCore: number;
  readonly restartBackOff: { readonly initialMs: number; readonly maxMs: number };

  readonly runtime: {
    /** As configured: `unix:///…` or a bare path. */
    readonly endpoint: string;
    readonly imageEndpoint: string;
    readonly requestTimeoutMs: number;
    /** Infinity: no limit. */
    readonly maxParallelImagePulls: number;
    /** How many pulls may start, on the whole and at once; undefined for any number. */
    readonly pullRate: { readonly perSecond: number; readonly burst: number } | undefined;
  };

  readonly images: {
    /** Programs that know registry credentials; undefined when there are none. */
    readonly credentialProviders:
      | { readonly path: string; readonly binDirectory: string; readonly tokensEnabled: boolean }
      | undefined;
    /** Who may use images that are there already; undefined: everybody. */
    readonly verification:
      | {
          readonly policy: NonNullable<KubeletConfiguration['imagePullCredentialsVerificationPolicy']>;
          readonly allowlist: readonly string[];
        }
      | undefined;
    /** When images that nobody uses are removed; `maxAgeMs` 0: not for their age. */
    readonly collection: {
      readonly highPercent: number;
      readonly lowPercent: number;
      readonly minAgeMs: number;
      readonly maxAgeMs: number;
    };
  };
  /** What pods have on the node's disk. */
  readonly localStorage: {
    /** Limits of emptyDir volumes and of ephemeral-storage are kept. */
    readonly isolation: boolean;
    /** Longest age of the statistics of volumes; negative: none are made. */
    readonly statsPeriodMs: number;
  };
  /** How many dead containers are kept; negative: any number. */
  readonly deadContainers: {
    readonly perContainer: number;
    readonly total: number;
    readonly minAgeMs: number;
  };

  readonly cgroups: {
    readonly driver: 'cgroupfs' | 'systemd';
    /** Always absolute, as cgroupfs spells it; `/` when pods stand below the root. */
    readonly root: string;
    readonly perQos: boolean;
    /** True when the limit of `kubepods` is enforced. */
    readonly enforcePods: boolean;
    readonly kubeReserved: Reservation;
    readonly systemReserved: Reservation;
    /** `reservedSystemCPUs`: CPU numbers; undefined when the reservations count CPUs instead. */
    readonly reservedCpus: readonly number[] | undefined;
    /** `evictionHard` as far as it is kept from pods: signal to quantity or percentage. */
    readonly evictionHard: Readonly<Record<string, string>>;
    /** Undefined while the MemoryQoS feature is off. */
    readonly memoryQos:
      | { readonly throttlingFactor: number; readonly reservation: 'TieredReservation' | 'None' }
      | undefined;
    readonly podPidsLimit: number | undefined;
    readonly cpuCfsQuota: boolean;
    /** Whole microseconds, as the kernel takes them. */
    readonly cpuCfsPeriodUs: number;
    readonly swap: 'NoSwap' | 'LimitedSwap';
    /** Undefined: true on cgroup v1, false on v2. */
    readonly singleProcessOomKill: boolean | undefined;
    readonly failOnSwap: boolean;
    readonly failOnCgroupV1: boolean;
  };

  readonly dns: {
    /** Undefined: pods get nothing from the host. */
    readonly resolvConf: string | undefined;
    readonly clusterDns: readonly string[];
    readonly clusterDomain: string | undefined;
  };
  readonly podLogsDirectory: string;
  /** When logs of containers are rotated; `maxBytes` below 0: never. */
  readonly logRotation: {
    readonly maxBytes: number;
    /** The one that is written to included. */
    readonly maxFiles: number;
    readonly workers: number;
    readonly everyMs: number;
  };
  /** Streams into containers end when nothing has passed for this long; 0: never. */
  readonly streamIdleMs: number;
  readonly seccompDefault: boolean;
  /** Names, and prefixes that end in `*`, that pods may set beside the safe ones. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** How many ids a pod with a user namespace of its own gets; a multiple of 65536. */
  readonly userIdsPerPod: number;

  readonly stats: {
    /** How old figures of disks may be that are handed out; those of cgroups at most a second as well. */
    readonly housekeepingMs: number;
    /** The cgroup that is told of as the runtime's; undefined: the one it is found in. */
    readonly runtimeCgroup: string | undefined;
    /** The cgroup of other processes of the system (`systemCgroups`). */
    readonly systemCgroup: string | undefined;
  };

  /** Undefined: switched off. */
  readonly healthz: ListenAddress | undefined;
  readonly readOnlyServer: ListenAddress | undefined;
  /** The node's API; undefined: switched off. */
  readonly nodeServer: NodeServerSettings | undefined;

  readonly log: {
    readonly format: 'text' | 'json';
    readonly verbosity: number;
    readonly vmodule: readonly { readonly filePattern: string; readonly verbosity: number }[];
  };
}

/** How this node is a member of a cluster. */
export interface ClusterSettings {
  /** Path; where a bootstrap kubeconfig is given, the file is made. */
  readonly kubeconfig: string;
  /** Empty when not given. */
  readonly bootstrapKubeconfig: string;
  /** `--cert-dir` */
  readonly certificateDirectory: string;
  readonly rotateCertificates: boolean;
  /** `serverTLSBootstrap`: the cluster signs the certificate that the agent serves with. */
  readonly serverTlsBootstrap: boolean;
  /** `--restore-pods-offline` */
  readonly restorePodsOffline: boolean;
  /** Limits of requests a second; 0 means what Kubernetes' clients mean by it. */
  readonly api: { readonly qps: number; readonly burst: number };
  /** Limits of events a second; `qps` 0 for none. */
  readonly events: { readonly qps: number; readonly burst: number };
  readonly node: NodeSettings;
  readonly changeDetection: KubeletConfiguration['configMapAndSecretChangeDetectionStrategy'];
}

/** What the Node object says of this node. */
export interface NodeSettings {
  /** False: somebody else creates the Node object. */
  readonly register: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: KubeletConfiguration['registerWithTaints'];
  /** Undefined: none. */
  readonly providerId: string | undefined;
  /** `--cloud-provider=external` */
  readonly externalCloud: boolean;
  /** `--node-ip` as given: empty, an address, or an IPv4 and an IPv6 address with a comma. */
  readonly ip: string;
  /** Files that may hold the machine's id and the id of its boot; the first one that can be read counts. */
  readonly machineIdFiles: readonly string[];
  readonly bootIdFiles: readonly string[];
  /** Port of the HTTPS server. */
  readonly port: number;
  readonly updateFrequencyMs: number;
  readonly reportFrequencyMs: number;
  readonly leaseDurationSeconds: number;
  /** Images in the status; -1 for all. */
  readonly maxImages: number;
}

interface Loaded {
  readonly configuration: KubeletConfiguration;
  readonly flags: FlagValues;
  readonly gates: FeatureGates;
}

/** Relative paths start at `cwd`, where the agent was started. */
export function resolveSettings(loaded: Loaded, cwd = process.cwd()): NodeAgentSettings {
  const { configuration, flags, gates } = loaded;
  return {
    rootDirectory: path.resolve(cwd, flags['root-dir']),
    hostnameOverride: given(flags['hostname-override'].trim().toLowerCase()),
    runOnce: configuration.runOnce,
    cluster: clusterSettings(loaded, cwd),
    podCidrs: configuration.podCIDR.split(',').filter(Boolean),
    staticPods: {
      path: absolute(configuration.staticPodPath, cwd),
      url: given(configuration.staticPodURL),
      urlHeaders: configuration.staticPodURLHeader ?? {},
      fileCheckMs: parseDuration(configuration.fileCheckFrequency),
      httpCheckMs: parseDuration(configuration.httpCheckFrequency),
    },
    resyncMs: parseDuration(configuration.syncFrequency),
    maxPods: configuration.maxPods,
    podsPerCore: configuration.podsPerCore,
    restartBackOff: restartBackOff(configuration, gates),
    runtime: {
      endpoint: configuration.containerRuntimeEndpoint,
      imageEndpoint: given(configuration.imageServiceEndpoint) ?? configuration.containerRuntimeEndpoint,
      requestTimeoutMs: parseDuration(configuration.runtimeRequestTimeout),
      maxParallelImagePulls: configuration.serializeImagePulls
        ? 1
        : (configuration.maxParallelImagePulls ?? Infinity),
      pullRate:
        configuration.registryPullQPS > 0
          ? { perSecond: configuration.registryPullQPS, burst: configuration.registryBurst }
          : undefined,
    },
    images: imageSettings(loaded, cwd),
    localStorage: {
      isolation: configuration.localStorageCapacityIsolation,
      statsPeriodMs: parseDuration(configuration.volumeStatsAggPeriod),
    },
    deadContainers: {
      perContainer: flags['maximum-dead-containers-per-container'],
      total: flags['maximum-dead-containers'],
      minAgeMs: parseDuration(flags['minimum-container-ttl-duration']),
    },
    cgroups: cgroupSettings(loaded),
    dns: {
      resolvConf: absolute(configuration.resolvConf, cwd),
      clusterDns: configuration.clusterDNS ?? [],
      clusterDomain: given(configuration.clusterDomain),
    },
    podLogsDirectory: configuration.podLogsDir,
    logRotation: {
      maxBytes: quantityValue(parseQuantity(configuration.containerLogMaxSize)),
      maxFiles: configuration.containerLogMaxFiles,
      workers: configuration.containerLogMaxWorkers,
      everyMs: parseDuration(configuration.containerLogMonitorInterval),
    },
    streamIdleMs: parseDuration(configuration.streamingConnectionIdleTimeout),
    seccompDefault: configuration.seccompDefault,
    allowedUnsafeSysctls: configuration.allowedUnsafeSysctls,
    userIdsPerPod: configuration.userNamespaces?.idsPerPod ?? 65_536,
    stats: {
      housekeepingMs: parseDuration(flags['housekeeping-interval']),
      runtimeCgroup: given(flags['runtime-cgroups']),
      systemCgroup: given(configuration.systemCgroups),
    },
    healthz: listenAddress(configuration.healthzBindAddress, configuration.healthzPort),
    readOnlyServer: listenAddress(configuration.address, configuration.readOnlyPort),
    nodeServer: nodeServerSettings(loaded),
    log: {
      format: configuration.logging.format,
      verbosity: configuration.logging.verbosity,
      vmodule: configuration.logging.vmodule ?? [],
    },
  };
}

function clusterSettings({ configuration, flags }: Loaded, cwd: string): ClusterSettings | undefined {
  const kubeconfig = absolute(flags.kubeconfig, cwd);
  if (kubeconfig === undefined) return undefined;
  return {
    kubeconfig,
    bootstrapKubeconfig: absolute(flags['bootstrap-kubeconfig'], cwd) ?? '',
    certificateDirectory: path.resolve(cwd, flags['cert-dir']),
    rotateCertificates: configuration.rotateCertificates,
    serverTlsBootstrap: configuration.serverTLSBootstrap,
    restorePodsOffline: flags['restore-pods-offline'],
    api: { qps: configuration.kubeAPIQPS, burst: configuration.kubeAPIBurst },
    events: { qps: configuration.eventRecordQPS, burst: configuration.eventBurst },
    node: nodeSettings({ configuration, flags }),
    changeDetection: configuration.configMapAndSecretChangeDetectionStrategy,
  };
}

function nodeSettings({ configuration, flags }: Pick<Loaded, 'configuration' | 'flags'>): NodeSettings {
  return {
    register: configuration.registerNode,
    labels: flags['node-labels'],
    taints: configuration.registerWithTaints ?? [],
    providerId: given(configuration.providerID),
    externalCloud: flags['cloud-provider'] === 'external',
    ip: flags['node-ip'],
    machineIdFiles: fileList(flags['machine-id-file']),
    bootIdFiles: fileList(flags['boot-id-file']),
    port: configuration.port,
    updateFrequencyMs: parseDuration(configuration.nodeStatusUpdateFrequency),
    reportFrequencyMs: parseDuration(configuration.nodeStatusReportFrequency),
    leaseDurationSeconds: configuration.nodeLeaseDurationSeconds,
    maxImages: configuration.nodeStatusMaxImages,
  };
}

function fileList(text: string): string[] {
  return text.split(',').filter((file) => file !== '');
}

function imageSettings({ configuration, flags, gates }: Loaded, cwd: string): NodeAgentSettings['images'] {
  const file = absolute(flags['image-credential-provider-config'], cwd);
  const binDirectory = absolute(flags['image-credential-provider-bin-dir'], cwd) ?? '';
  const tokensEnabled = gates.enabled('KubeletServiceAccountTokenForCredentialProviders');
  const policy = configuration.imagePullCredentialsVerificationPolicy;
  return {
    credentialProviders: file === undefined ? undefined : { path: file, binDirectory, tokensEnabled },
    verification: policy && {
      policy,
      allowlist: configuration.preloadedImagesVerificationAllowlist ?? [],
    },
    collection: {
      highPercent: configuration.imageGCHighThresholdPercent,
      lowPercent: configuration.imageGCLowThresholdPercent,
      minAgeMs: parseDuration(configuration.imageMinimumGCAge),
      maxAgeMs: parseDuration(configuration.imageMaximumGCAge),
    },
  };
}

function cgroupSettings({ configuration, flags, gates }: Loaded): NodeAgentSettings['cgroups'] {
  const reservedCpus = parseCpuSet(configuration.reservedSystemCPUs) ?? [];
  return {
    driver: configuration.cgroupDriver,
    root: given(configuration.cgroupRoot) ?? '/',
    perQos: configuration.cgroupsPerQOS,
    enforcePods: configuration.enforceNodeAllocatable.includes('pods'),
    kubeReserved: configuration.kubeReserved ?? {},
    systemReserved: configuration.systemReserved ?? {},
    reservedCpus: reservedCpus.length > 0 ? reservedCpus : undefined,
    evictionHard: flags['experimental-allocatable-ignore-eviction'] ? {} : configuration.evictionHard,
    memoryQos: gates.enabled('MemoryQoS')
      ? {
          throttlingFactor: configuration.memoryThrottlingFactor,
          reservation: configuration.memoryReservationPolicy,
        }
      : undefined,
    podPidsLimit: configuration.podPidsLimit > 0 ? configuration.podPidsLimit : undefined,
    cpuCfsQuota: configuration.cpuCFSQuota,
    cpuCfsPeriodUs: Math.round(parseDuration(configuration.cpuCFSQuotaPeriod) * 1000),
    swap: configuration.memorySwap.swapBehavior || 'NoSwap',
    singleProcessOomKill: configuration.singleProcessOOMKill,
    failOnSwap: configuration.failSwapOn,
    failOnCgroupV1: configuration.failCgroupV1,
  };
}

function nodeServerSettings({ configuration, flags, gates }: Loaded): NodeServerSettings | undefined {
  if (!configuration.enableServer) return undefined;
  const { authentication, authorization } = configuration;
  const { tlsCertFile: certificateFile, tlsPrivateKeyFile: keyFile } = configuration;
  const { cacheAuthorizedTTL, cacheUnauthorizedTTL } = authorization.webhook;
  return {
    address: configuration.address,
    port: configuration.port,
    certificateDirectory: flags['cert-dir'],
    serving: configuration.serverTLSBootstrap
      ? { kind: 'cluster' }
      : certificateFile !== '' || keyFile !== ''
        ? { kind: 'files', certificateFile, keyFile }
        : { kind: 'self-signed' },
    tls: {
      minVersion: configuration.tlsMinVersion,
      cipherSuites: configuration.tlsCipherSuites ?? [],
      curves: configuration.tlsCurvePreferences ?? [],
    },
    access: {
      clientCaFile: given(authentication.x509.clientCAFile),
      anonymous: authentication.anonymous.enabled,
      tokens: {
        enabled: authentication.webhook.enabled,
        cacheTtlMs: parseDuration(authentication.webhook.cacheTTL),
      },
      authorization:
        authorization.mode === 'AlwaysAllow'
          ? { mode: 'AlwaysAllow' }
          : {
              mode: 'Webhook',
              allowedTtlMs: parseDuration(cacheAuthorizedTTL),
              deniedTtlMs: parseDuration(cacheUnauthorizedTTL),
            },
    },
    debuggingHandlers: configuration.enableDebuggingHandlers,
    handlers: {
      flags: gates.enabled('ComponentFlagz'),
      status: gates.enabled('ComponentStatusz'),
      verbosity: configuration.enableDebugFlagsHandler,
      profiling: configuration.enableProfilingHandler,
      systemLogs: configuration.enableSystemLogHandler,
      systemLogQueries: configuration.enableSystemLogHandler && configuration.enableSystemLogQuery,
    },
    reloads: {
      clientCa: gates.enabled('ReloadKubeletClientCAFile'),
      serving: gates.enabled('ReloadKubeletServerCertificateFile'),
    },
  };
}

/** `KubeletCrashLoopBackOffMax` lets the node choose the ceiling; the other gate lowers the built-in one. */
function restartBackOff(
  configuration: KubeletConfiguration,
  gates: FeatureGates,
): NodeAgentSettings['restartBackOff'] {
  const isReduced = gates.enabled('ReduceDefaultCrashLoopBackOffDecay');
  const configured = configuration.crashLoopBackOff.maxContainerRestartPeriod;
  const maxMs = configured === undefined ? (isReduced ? 60_000 : 300_000) : parseDuration(configured);
  return { initialMs: Math.min(isReduced ? 1000 : 10_000, maxMs), maxMs };
}

function listenAddress(address: string, port: number): ListenAddress | undefined {
  return port === 0 ? undefined : { address, port };
}

function absolute(file: string, cwd: string): string | undefined {
  return file === '' ? undefined : path.resolve(cwd, file);
}

function given(text: string): string | undefined {
  return text === '' ? undefined : text;
}
