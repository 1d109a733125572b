/**
 * How a pod is told apart: the labels and annotations the kubelet leaves on what it makes, and what they say
 * about where a pod came from and how much the node needs it.
 */
import type { ObjectMeta, PodSpec } from './types.ts';

/** Labels on sandboxes and containers in the runtime. */
export const runtimeLabels = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
} as const;

/** Annotations on containers in the runtime. */
export const containerAnnotations = {
  hash: 'io.kubernetes.container.hash',
  ports: 'io.kubernetes.container.ports',
  preStopHandler: 'io.kubernetes.container.preStopHandler',
  restartCount: 'io.kubernetes.container.restartCount',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  podDeletionGracePeriod: 'io.kubernetes.pod.deletionGracePeriod',
  podTerminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
} as const;

/** Annotations on pods that say where they came from. */
export const podAnnotations = {
  /** `file`, `http` or `api`. */
  configSource: 'kubernetes.io/config.source',
  /** RFC 3339 time at which the node first saw the pod. */
  configSeen: 'kubernetes.io/config.seen',
  /** What identifies this version of a static pod; its uid unless the manifest has one. */
  configHash: 'kubernetes.io/config.hash',
  /** On the API server's copy of a static pod; holds the static pod's config hash. */
  configMirror: 'kubernetes.io/config.mirror',
} as const;

/** Pods from this priority on are kept when others make room. */
export const systemCriticalPriority = 2_000_000_000;

interface Described {
  readonly metadata?: ObjectMeta;
  readonly spec?: Pick<PodSpec, 'priority' | 'priorityClassName'>;
}

/** `file`, `http` or `api`; `undefined` for a pod no source has handed in. */
export function podSource(pod: Described): string | undefined {
  return pod.metadata?.annotations?.[podAnnotations.configSource];
}

/** True for pods from manifests, which the API server does not own. */
export function isStaticPod(pod: Described): boolean {
  const source = podSource(pod);
  return source !== undefined && source !== 'api';
}

/** True for the API server's copy of a static pod. */
export function isMirrorPod(pod: Described): boolean {
  return pod.metadata?.annotations?.[podAnnotations.configMirror] !== undefined;
}

/** True for static pods, their mirrors, and priorities from {@link systemCriticalPriority} on. */
export function isCriticalPod(pod: Described): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec?.priority ?? 0) >= systemCriticalPriority;
}

/** True for critical pods of the class `system-node-critical`. */
export function isNodeCriticalPod(pod: Described): boolean {
  return isCriticalPod(pod) && pod.spec?.priorityClassName === 'system-node-critical';
}

/** `namespace/name`, the way logs and messages name a pod. */
export function podKey(pod: { metadata: { name: string; namespace: string } }): string {
  return `${pod.metadata.namespace}/${pod.metadata.name}`;
}

/**
 * The uid part of a pod's log directory: the config hash for static pods (so that the mirror finds the same
 * logs), the uid for all others.
 */
export function podLogUid(pod: { metadata: ObjectMeta & { uid: string } }): string {
  return pod.metadata.annotations?.[podAnnotations.configHash] ?? pod.metadata.uid;
}

/** The name of a pod's directory below the pod logs directory: `namespace_name_uid`. */
export function podLogDirectoryName(pod: {
  metadata: ObjectMeta & { name: string; namespace: string; uid: string };
}): string {
  return `${pod.metadata.namespace}_${pod.metadata.name}_${podLogUid(pod)}`;
}
