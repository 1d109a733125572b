/**
 * What admission is asked and what it answers: may this pod run on this node? Pure; a handler sees a pod
 * and facts, and nothing else.
 */
import type { ResourceAmounts } from '../../kubernetes/pod-resources.ts';
import type { Pod } from '../../kubernetes/types.ts';

/** What of the node admission depends on. */
export interface AdmittingNode {
  readonly name: string;
  /** As `uname -r` tells it: `6.1.0-13-amd64`. */
  readonly kernelRelease: string;
  /** `status.allocatable`. */
  readonly allocatable: ResourceAmounts;
  /** `allowedUnsafeSysctls`: names, and prefixes that end in `*`. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** The runtime can keep an image's own groups out (CRI feature `supplemental_groups_policy`). */
  readonly strictGroups: boolean;
  /** The kernel enforces AppArmor profiles. */
  readonly appArmor: boolean;
  /** Feature gate PodLevelResources. */
  readonly podLevelResources: boolean;
}

/** Everything a handler may look at beside the pod itself. */
export interface AdmissionFacts {
  readonly node: AdmittingNode;
  /** The other pods that hold resources and ports of the node. */
  readonly others: readonly Pod[];
}

/** Why a pod may not run here, in Kubernetes' words. */
export interface Refusal {
  /** `status.reason` and reason of the event. */
  readonly reason: string;
  readonly message: string;
}

/** The answer of admission. */
export type Admission = { readonly admitted: true } | ({ readonly admitted: false } & Refusal);

/** One concern of admission; `undefined` when it has nothing against the pod. */
export type AdmissionHandler = (pod: Pod, facts: AdmissionFacts) => Refusal | undefined;
