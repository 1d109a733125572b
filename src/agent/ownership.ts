/**
 * Whose a pod in the runtime is. Several agents may share a runtime, and what belongs to another one, or to
 * a source this agent does not have, is never touched.
 */
import { containerAnnotations, podAnnotations } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';

/** On every sandbox: the root directory of the agent that made it. */
export const rootAnnotation = 'io.kubelet-ts.root-directory';

/** What tells the pods of this agent from those of another on the same runtime. */
export interface Owner {
  readonly rootDirectory: string;
  /** Sources this agent has, as in annotation `kubernetes.io/config.source`. */
  readonly sources: ReadonlySet<string>;
}

/** True for sandboxes of this agent, and for those another kubelet left from a source that is ours now. */
export function isOurs(annotations: Readonly<Record<string, string>>, owner: Owner): boolean {
  const root = annotations[rootAnnotation];
  if (root !== undefined && root !== owner.rootDirectory) return false;
  return owner.sources.has(annotations[podAnnotations.configSource] ?? '');
}

/**
 * A pod of which only the runtime's objects are left, good enough to be ended by the rules: its names and
 * the grace period its containers were made with.
 */
export function podFromRuntime(
  observed: ObservedPod,
  identity: { labels: Readonly<Record<string, string>>; annotations: Readonly<Record<string, string>> },
): Pod {
  const names = [...new Set(observed.containers.map(({ name }) => name))];
  const { [rootAnnotation]: _, ...annotations } = identity.annotations;
  return {
    metadata: {
      name: observed.name,
      namespace: observed.namespace,
      uid: observed.uid,
      labels: { ...identity.labels },
      annotations,
    },
    spec: {
      restartPolicy: 'Never',
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: gracePeriodOf(observed),
      containers: names.map((name) => ({ name })),
    },
  };
}

function gracePeriodOf({ containers }: ObservedPod): number {
  const periods = containers.flatMap(({ annotations }) => {
    const text =
      annotations[containerAnnotations.podDeletionGracePeriod] ??
      annotations[containerAnnotations.podTerminationGracePeriod];
    const seconds = Number(text);
    return text !== undefined && Number.isFinite(seconds) ? [Math.trunc(seconds)] : [];
  });
  return periods.length > 0 ? Math.max(...periods) : 30;
}
