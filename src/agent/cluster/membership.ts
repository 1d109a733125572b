/**
 * What it means to the agent's rooms that the node is a member of a cluster, or stands alone: the one
 * interface both have, so that no room has to ask which it is.
 */
import type { ApiClient } from '../../client/api-client.ts';
import type { ImageKeyringOptions } from '../../credentials/image-keyring.ts';
import type { PullSecret } from '../../credentials/pull-secrets.ts';
import type { ServingPair } from '../../credentials/serving-certificate.ts';
import type { Pod } from '../../kubernetes/types.ts';
import type { NodeState } from '../../pods/admission/admission.ts';
import type { ClusterKnowledge } from '../../pods/cluster-knowledge.ts';
import type { PodServices } from '../../pods/executors/pod-services.ts';
import type { PodRecord } from '../../pods/pod-records.ts';
import type { PodReport } from '../../pods/pod-worker-ports.ts';
import type { PodWorkers } from '../../pods/pod-workers.ts';
import type { ContainerRuntime } from '../../runtime/container-runtime.ts';
import type { RuntimeFacts } from '../../runtime/cri/runtime-check.ts';
import type { ObservedPod } from '../../runtime/observed-pod.ts';
import type { DesiredChange } from '../../sources/desired-pods.ts';
import type { PodSource } from '../../sources/pod-source.ts';
import type { EventRecorder } from '../../telemetry/events.ts';
import type { PodVolumes } from '../../volumes/pod-volumes.ts';
import type { VolumeContents } from '../../volumes/volume-contents.ts';
import type { RuntimeLook } from '../runtime-link.ts';

export interface Membership {
  /** For questions about users (TokenReview, SubjectAccessReview); absent on a node that stands alone. */
  readonly api: ApiClient | undefined;
  /** The certificate the cluster signs for serving (`serverTLSBootstrap`); absent when nobody asks it to. */
  readonly servingCertificate: SignedServingCertificate | undefined;
  /** Takes everything that happens on the node: for its own log, and for the cluster. */
  readonly events: EventRecorder;
  readonly node: NodeMembership;
  readonly objects: ObjectMembership;
  readonly pods: PodMembership;
  /** The cluster's pods that go on while the API server has not spoken. */
  remembered(records: readonly PodRecord[], observe: (uid: string) => ObservedPod): Promise<readonly Pod[]>;
  /** Tells what changes in the cluster to these rooms, once they are there. */
  attach(rooms: AttachedRooms): void;
  /** Takes part in the cluster until `signal` aborts. Waits for no runtime; nothing waits for it. */
  run(signal: AbortSignal): Promise<void>;
  close(): void;
}

/** A certificate that the cluster has signed for this node's addresses. */
export interface SignedServingCertificate {
  /** Undefined until the cluster has signed one for the first time. */
  current(): ServingPair | undefined;
  /** Calls `listener` for every new one. */
  onChange(listener: (pair: ServingPair) => void): void;
}

export interface AttachedRooms {
  readonly workers: Pick<PodWorkers, 'get' | 'all' | 'named' | 'ready' | 'reconsider' | 'wakeAll'>;
  readonly volumes: Pick<PodVolumes, 'refresh'>;
}

/** The node as the cluster sees it. */
export interface NodeMembership {
  /** `status.hostIPs` of pods. */
  hostIps(): readonly string[];
  /** What admission knows of the node's object; undefined on a node that stands alone. */
  placement(): NodeState['placement'] | undefined;
  runtimeFound(
    facts: RuntimeFacts,
    runtime: Pick<ContainerRuntime, 'listImages' | 'updateRuntimeConfig'>,
  ): void;
  runtimeLooked(look: RuntimeLook): void;
  /** All containers have been listed. */
  relisted(): void;
  /** A container is made from this image, or undefined: the images of the node have been looked through. */
  imageUsed(imageId: string | undefined): void;
}

/** What the cluster knows beside pods. */
export interface ObjectMembership extends ClusterKnowledge {
  readonly volumeContents: VolumeContents | undefined;
  readonly serviceAccounts: ImageKeyringOptions['serviceAccounts'];
  /** The secrets the pod's images are pulled with; those that are missing are told in an event. */
  pullSecrets(pod: Pod, signal: AbortSignal): Promise<readonly PullSecret[]>;
}

/** Pods between node and cluster. */
export interface PodMembership {
  /** The source of the cluster's pods; `remembered` are wanted until the API server has spoken. */
  sources(remembered: readonly Pod[]): PodSource[];
  readonly objects: PodServices['objects'];
  /** What is wanted has changed; called before the workers are told. */
  wanted(change: DesiredChange): void;
  /** The workers have been told of the change. */
  handedOver(change: DesiredChange): void;
  report(report: PodReport): void;
  /** Nothing is left of the pod. */
  gone(pod: Pod): void;
}
