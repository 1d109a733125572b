/**
 * What admission is asked and what it answers: may this pod run on this node? Pure; a handler sees a pod
 * and facts, and nothing else.
 */
import type { ResourceAmounts } from '../../kubernetes/pod-resources.ts';
import type { NodeTaint } from '../../kubernetes/tolerations.ts';
import type { Pod } from '../../kubernetes/types.ts';

/** What of the node admission depends on and that stays the same while the agent runs. */
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
  /** Feature gate TaintTolerationComparisonOperators. */
  readonly comparedTaints: boolean;
  /** Features a pod may need that this node declares not to have (gate NodeDeclaredFeatures). */
  readonly undeclaredFeatures: readonly string[];
}

/** What of the node may change from one pod to the next. */
export interface NodeState {
  readonly placement: {
    readonly labels: Readonly<Record<string, string>>;
    readonly taints: readonly NodeTaint[];
    /** False until the API server has told the node's object: labels may be missing. */
    readonly known: boolean;
  };
  /** Resources of device plugins that the node had before and does not offer now. */
  readonly missingDevices: ReadonlySet<string>;
  /** Conditions of the node such as `MemoryPressure`. */
  readonly pressures: readonly string[];
  readonly shuttingDown: boolean;
}

/** Everything a handler may look at beside the pod itself. */
export interface AdmissionFacts {
  readonly node: AdmittingNode;
  readonly state: NodeState;
  /** The other pods that hold resources and ports of the node. */
  readonly others: readonly Pod[];
}

/** What may come yet, so that the pod is not refused but waits. */
export type WaitCause =
  /** Other pods hold what the pod asks for and are on their way out. */
  | { readonly kind: 'ending-pods'; readonly pods: readonly string[] }
  | { readonly kind: 'device-plugin' }
  | { readonly kind: 'node-object' };

/** Why a pod may not run here, in Kubernetes' words. */
export interface Refusal {
  /** `status.reason` and reason of the event. */
  readonly reason: string;
  readonly message: string;
  /** Set when the reason is expected to pass. */
  readonly waitsFor?: WaitCause;
  /** Other pods hold what it asks for: for a critical pod some of them may have to go. */
  readonly lacksResources?: true;
}

/** The answer of admission. */
export type Admission = { readonly admitted: true } | ({ readonly admitted: false } & Refusal);

/** One concern of admission; `undefined` when it has nothing against the pod. */
export type AdmissionHandler = (pod: Pod, facts: AdmissionFacts) => Refusal | undefined;
