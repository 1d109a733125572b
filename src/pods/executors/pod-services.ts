/** What executors work with: the narrow faces of the rooms below. */
import type { Clock } from '../../concurrency/clock.ts';
import type { Limiter } from '../../concurrency/limiter.ts';
import type { ContainerPlace } from '../../kubernetes/init-containers.ts';
import type { Pod } from '../../kubernetes/types.ts';
import type { ContainerRuntime } from '../../runtime/container-runtime.ts';
import type { ContainerConfig, PodSandboxConfig } from '../../runtime/generated/cri.ts';
import type { ObservedContainer, ObservedPod, ObservedSandbox } from '../../runtime/observed-pod.ts';
import type { EventRecorder } from '../../telemetry/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { HookMetrics } from '../hooks/hook-metrics.ts';
import type { PodRecord } from '../pod-records.ts';

/** Everything executors may call. */
export interface PodServices {
  readonly runtime: Pick<
    ContainerRuntime,
    | 'runPodSandbox'
    | 'stopPodSandbox'
    | 'removePodSandbox'
    | 'createContainer'
    | 'startContainer'
    | 'stopContainer'
    | 'removeContainer'
    | 'execSync'
  >;
  readonly observer: RuntimeKnowledge;
  readonly images: ImageSupply;
  readonly configs: PodConfigs;
  readonly volumes: {
    setUp(pod: Pod, signal: AbortSignal): Promise<unknown>;
    tearDown(podUid: string, signal: AbortSignal): Promise<void>;
    /** Names of the volumes that a set-up under way has not finished. */
    unfinished(podUid: string): readonly string[];
  };
  readonly cgroups: {
    ensurePod(pod: Pod, signal: AbortSignal): Promise<void>;
    removePod(uid: string, options: { signal: AbortSignal }): Promise<void>;
  };
  readonly files: PodFiles;
  /** The pods' objects in the API server; absent on a node that stands alone. */
  readonly objects?: {
    /** Resolves when the API server has taken the pod's end and has let its object go, or never had it. */
    release(pod: Pod, signal: AbortSignal): Promise<void>;
  };
  readonly records: { write(record: PodRecord): Promise<void>; remove(uid: string): Promise<void> };
  /** Bounds the calls that cost the runtime work; see {@link callPriority}. */
  readonly calls: Limiter;
  readonly hookMetrics: HookMetrics;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What is known of the runtime; executors tell it what they did. */
export interface RuntimeKnowledge {
  pod(uid: string): ObservedPod;
  refreshContainer(id: string, options?: { sandboxId?: string; signal?: AbortSignal }): Promise<void>;
  refreshSandbox(id: string, signal?: AbortSignal): Promise<void>;
  refreshPod(uid: string, signal?: AbortSignal): Promise<void>;
  learnContainer(podUid: string, container: ObservedContainer): void;
  removedContainer(id: string): void;
  removedSandbox(id: string): void;
}

/** Makes sure that images are there: pulls, pull policies and back-off are behind it. */
export interface ImageSupply {
  /** Makes sure the image is there; expected failures are answers. */
  ensure(request: {
    pod: Pod;
    place: ContainerPlace;
    signal: AbortSignal;
  }): Promise<
    | { readonly ok: true; readonly imageRef: string }
    | { readonly ok: false; readonly reason: string; readonly message: string; readonly retryAt?: number }
  >;
}

/** From specs to the runtime's configurations, with everything that is particular to this node. */
export interface PodConfigs {
  /** Rejects while the pod's RuntimeClass is not known. */
  runtimeHandler(pod: Pod): Promise<string>;
  sandbox(pod: Pod, attempt: number): Promise<PodSandboxConfig>;
  /** Rejects with {@link ContainerConfigError} when the spec cannot be met. */
  container(request: ContainerConfigRequest): Promise<ContainerConfig>;
}

/** What the configuration of a container instance is made from. */
export interface ContainerConfigRequest {
  readonly pod: Pod;
  readonly place: ContainerPlace;
  readonly attempt: number;
  readonly sandbox: ObservedSandbox;
  readonly imageRef: string;
  readonly nextBackoffMs: number;
  /** Runtime id of the container whose processes an ephemeral container joins. */
  readonly targetId?: string | undefined;
  readonly signal: AbortSignal;
}

/** Directories and files of a pod on the node's disk. */
export interface PodFiles {
  /**
   * Makes the pod's directories. Answers, for containers that have left logs, the attempt the next
   * instance takes.
   */
  prepare(pod: Pod): Promise<Readonly<Record<string, number>>>;
  /** Links the container's log where log collectors look for it. */
  linkLog(pod: Pod, container: string, containerId: string, attempt: number): Promise<void>;
  /** Removes what belongs to one instance: its log with rotated parts, and the link. */
  removeInstance(pod: Pod, container: string, containerId: string, attempt: number): Promise<void>;
  /** Removes the pod's directories, logs and links. */
  erase(pod: Pod): Promise<void>;
}

/** What unblocks most goes first: a start ends a wait, a sandbox begins one. */
export const callPriority = { start: 3, create: 2, stop: 2, sandbox: 1, remove: 0 } as const;
