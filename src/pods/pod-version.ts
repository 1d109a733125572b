/** Telling whether two objects describe the same pod in the same way. */

import { contentHash } from '../kubernetes/hash.ts';
import { podFullName } from '../kubernetes/names.ts';
import { podAnnotations } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';

/** Equal for two objects exactly when nothing has to be done to turn the one pod into the other. */
export function podVersion(pod: Pod): string {
  const { labels, annotations = {} } = pod.metadata;
  const { [podAnnotations.configSeen]: _, ...told } = annotations;
  return contentHash({ spec: pod.spec, labels: labels ?? {}, annotations: told });
}

/** Pods with one full name exclude each other: the later waits until nothing is left of the earlier. */
export function fullNameOf(pod: Pod): string {
  return podFullName(pod.metadata.name, pod.metadata.namespace);
}
