/** What measuring has to know of the pods of the node; the agent joins it from its rooms. */

export interface MeasuredContainer {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

export interface MeasuredPod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** Epoch milliseconds; pods that have not been seen to start yet are left out of summaries. */
  readonly startedAt: number | undefined;
  /** The pod's own cgroup; `undefined` where pods have none (`cgroupsPerQOS: false`). */
  readonly cgroup: string | undefined;
  /** The cgroup that the containers' cgroups lie in; the pod's own where it has one. */
  readonly parentCgroup: string;
  readonly sandbox:
    | { readonly id: string; readonly createdAt: number; readonly hostNetwork: boolean }
    | undefined;
  /** Those that run. */
  readonly containers: readonly MeasuredContainer[];
}
