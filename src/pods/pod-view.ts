/**
 * Everything deciding may look at: plain data, gathered by the worker before each decision. Nothing in
 * here calls anything, and nothing outside of it may influence a decision.
 */
import type { Pod } from '../kubernetes/types.ts';
import type { ContainerHealth } from '../probes/container-verdict.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';

/** What is wanted of the pod as a whole. */
export type PodIntent =
  | { readonly kind: 'run' }
  | {
      readonly kind: 'terminate';
      readonly cause: TerminationCause;
      /** When the grace period began, epoch milliseconds. */
      readonly since: number;
      /** Whole seconds the containers get between TERM and KILL. */
      readonly graceSeconds: number;
      /**
       * The API server has marked the pod's object for deletion and keeps it until the node has told the
       * pod's end and deletes it. Absent for static pods, and when the object is gone already.
       */
      readonly releasesObject?: boolean;
    };

/** Why a pod is to end. */
export type TerminationCause =
  /** The pod left its source: afterwards nothing of it remains. */
  | 'deleted'
  /** A new pod with the same uid takes its place: as `deleted`, then the new one starts. */
  | 'replaced';

/** Why a pod has come to its end although it is still wanted. */
export interface TerminalVerdict {
  readonly phase: 'Succeeded' | 'Failed';
  readonly reason?: string;
  readonly message?: string;
  /** Whole seconds the containers get between TERM and KILL; absent for what the pod's spec says. */
  readonly graceSeconds?: number;
  /**
   * The node has ended the pod for the sake of others: message of its condition `DisruptionTarget` (reason
   * `TerminationByKubelet`), which is told together with the end.
   */
  readonly disruption?: string;
  /**
   * The node has not let the pod in. Nothing of it has run, and nothing is written down: a restarted agent
   * asks anew, since the reason may be gone.
   */
  readonly refused?: true;
}

/** The pod is not admitted yet: what is in its way is expected to pass. */
export interface Holding {
  /** `WaitCause.kind` of admission. */
  readonly cause: string;
  /** For the pod's status and events. */
  readonly message: string;
  /** Epoch milliseconds. */
  readonly since: number;
  /** When it is decided for good, epoch milliseconds; infinity for never. */
  readonly until: number;
  /** Others have ended for it: what they leave is kept for it. */
  readonly madeRoom?: true;
}

/** An attempt that went wrong and when the next one may be made. */
export interface Failure {
  /** The waiting reason or event reason: `CreateContainerError`, `ImagePullBackOff`, … */
  readonly reason: string;
  readonly message: string;
  /** Failures in a row. */
  readonly count: number;
  /** Epoch milliseconds. */
  readonly retryAt: number;
}

/**
 * What the agent knows of a pod beyond what the runtime shows. It starts empty after every start of the
 * agent; each part either comes back by running an idempotent action again or is in the pod's record.
 */
export interface PodMemory {
  /** `status.startTime`, epoch milliseconds. */
  readonly startTime?: number;
  /** Directories and cgroup are there. */
  readonly prepared: boolean;
  /** All volumes are set up. */
  readonly volumesReady: boolean;
  /** The pod's record on disk holds the pod as it is wanted now. */
  readonly recorded: boolean;
  /** By container name: the image that was ensured, and for which attempt. */
  readonly images: Readonly<Record<string, { readonly ref: string; readonly attempt: number }>>;
  /** By container name: the attempt the next instance takes when the runtime shows none any more. */
  readonly nextAttempts: Readonly<Record<string, number>>;
  /** By container name: the back-off the next instance carries when its predecessor is gone, milliseconds. */
  readonly nextBackoffs: Readonly<Record<string, number>>;
  /** By failure key: the last failure, gone after a success. */
  readonly failures: Readonly<Record<string, Failure>>;
  /** Ids of containers whose postStart hook has run, or that were found running. */
  readonly hooksDone: Readonly<Record<string, true>>;
  /** Ids of containers that were stopped because a liveness or startup probe had failed. */
  readonly endedByProbe: Readonly<Record<string, true>>;
  /** Ids of containers whose preStop hook was run, with the time it began, epoch milliseconds. */
  readonly preStopBegan: Readonly<Record<string, number>>;
  /** Ids of sandboxes that StopPodSandbox has succeeded for. */
  readonly stoppedSandboxes: Readonly<Record<string, true>>;
  /** Volumes and cgroup are torn down after the end of the pod. */
  readonly tornDown: boolean;
  /** The API server knows the pod's end and has let its object go. */
  readonly released: boolean;
  /** Directories, logs and record are gone: nothing of the pod is left. */
  readonly erased: boolean;
  readonly terminal?: TerminalVerdict;
  /** Set while the pod waits to be admitted; nothing is done for it meanwhile, not even a record written. */
  readonly held?: Holding;
}

/** The memory of a pod that nothing has been done for. */
export const emptyMemory: PodMemory = {
  prepared: false,
  volumesReady: false,
  recorded: false,
  images: {},
  nextAttempts: {},
  nextBackoffs: {},
  failures: {},
  hooksDone: {},
  endedByProbe: {},
  preStopBegan: {},
  stoppedSandboxes: {},
  tornDown: false,
  released: false,
  erased: false,
};

/** Rules of this node that decisions depend on. */
export interface NodeRules {
  /** The first delay of a container's restart back-off; 10 s when absent. */
  readonly initialRestartBackoffMs?: number;
  readonly maxRestartBackoffMs: number;
  /** The runtime's network condition; absent when it is ready. */
  readonly networkNotReady?: string;
  /** Rules with `RestartAllContainers` are followed (gate RestartAllContainersOnContainerExits). */
  readonly restartAllContainers: boolean;
  /** Pods are brought back from their records without the API server: a record has to tell of a deletion. */
  readonly recordsDeletion?: boolean;
  /** Dead instances kept for each container. */
  readonly deadContainersKept: number;
}

/** One pod at one moment: the whole input of {@link decide}. */
export interface PodView {
  readonly pod: Pod;
  readonly intent: PodIntent;
  readonly observed: ObservedPod;
  readonly memory: PodMemory;
  /** Keys of the actions being carried out right now. */
  readonly inFlight: ReadonlySet<string>;
  /** What the probes say of container instances, by container id. */
  readonly health: Readonly<Record<string, ContainerHealth>>;
  /** Termination messages that were read, by container id. */
  readonly messages: Readonly<Record<string, string>>;
  readonly node: NodeRules;
  /** Waiting messages of containers whose image is being pulled right now. */
  readonly pulling?: Readonly<Record<string, string>>;
  /** Epoch milliseconds. */
  readonly now: number;
}
