/**
 * The configuration as the rooms use it: durations are milliseconds, quantities numbers, "not set" is
 * undefined. Only settings that have an effect are here; `effects.ts` lists the others.
 */
import path from 'node:path';
import { parseDuration } from '../kubernetes/duration.ts';
import { parseQuantity, quantityValue } from '../kubernetes/quantity.ts';
import type { FeatureGates } from './feature-gates.ts';
import type { KubeletConfiguration } from './kubelet-configuration.ts';
import { type CgroupSettings, cgroupSettings } from './settings/cgroup-settings.ts';
import { type ClusterSettings, clusterSettings } from './settings/cluster-settings.ts';
import { type ImageSettings, imageSettings } from './settings/image-settings.ts';
import { absolute, given, type Loaded } from './settings/loaded.ts';
import {
  type ListenAddress,
  listenAddress,
  type NodeServerSettings,
  nodeServerSettings,
} from './settings/server-settings.ts';

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

  readonly images: ImageSettings;

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

  readonly cgroups: CgroupSettings;

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
