/** Telling whether two objects describe the same pod in the same way. */

import { contentHash } from '../kubernetes/hash.ts';
import { podFullName } from '../kubernetes/names.ts';
import { podAnnotations } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';

/** Pods are never changed in place, so that each is looked through once. */
const versions = new WeakMap<Pod, string>();

/** Equal for two objects exactly when nothing has to be done to turn the one pod into the other. */
export function podVersion(pod: Pod): string {
  let version = versions.get(pod);
  if (version === undefined) {
    const { labels, annotations = {} } = pod.metadata;
    const { [podAnnotations.configSeen]: _, ...told } = annotations;
    version = contentHash({ spec: pod.spec, labels: labels ?? {}, annotations: told });
    versions.set(pod, version);
  }
  return version;
}

/** Pods with one full name exclude each other: the later waits until nothing is left of the earlier. */
export function fullNameOf(pod: Pod): string {
  return podFullName(pod.metadata.name, pod.metadata.namespace);
}
