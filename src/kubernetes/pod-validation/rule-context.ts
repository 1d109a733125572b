/** What every rule about a pod gets: the list for its findings, the pod, and the feature gates. */

import type { FieldErrors } from './field-error.ts';
import type { PodSpec, Volume } from './unvalidated-pod.ts';

export interface RuleContext {
  readonly errors: FieldErrors;
  readonly spec: PodSpec;
  /** Volumes by name; of several with one name, the first. */
  readonly volumes: ReadonlyMap<string, Volume>;
  /** Names of `spec.resourceClaims`. */
  readonly resourceClaims: ReadonlySet<string>;
  /** Whether a Kubernetes feature gate is on. */
  readonly featureEnabled: (gate: string) => boolean;
}

/** Go's type for most numbers of the API; several fields must fit in it. */
export const maxInt32 = 2 ** 31 - 1;

/** Absent and empty lists are the same thing to the API. */
export function isEmptyList(list: readonly unknown[] | undefined): boolean {
  return list === undefined || list.length === 0;
}

/** Absent and empty texts are the same thing in most fields of the API. */
export function isBlank(text: string | undefined): text is '' | undefined {
  return text === undefined || text === '';
}
