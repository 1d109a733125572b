/** What a pod's worker needs of the world, and what it tells the world in turn. */
import type { Clock } from '../concurrency/clock.ts';
import type { Pod, PodStatus } from '../kubernetes/types.ts';
import type { ContainerHealth } from '../probes/container-verdict.ts';
import type { ProberUpdate } from '../probes/prober.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Action } from './action.ts';
import type { Plan } from './plan.ts';
import type { NodeRules, PodMemory, PodView } from './pod-view.ts';
import type { Outcome } from './remember.ts';

/** What a worker needs of the world. */
export interface PodWorkerPorts {
  readonly clock: Clock;
  readonly logger: Logger;
  observe(uid: string): ObservedPod;
  /** Tells the probes what is, and takes what they say of the pod's containers. */
  health(update: ProberUpdate): Readonly<Record<string, ContainerHealth>>;
  nodeRules(): NodeRules;
  /** Carries an action out. Never rejects; the signal aborts when the pod's intent turns against it. */
  execute(action: Action, context: ActionContext): Promise<Outcome>;
  /** How far the pulls for a pod's containers are, as their waiting messages. */
  pulling?(uid: string): Readonly<Record<string, string>>;
  /** Whether the pod's runtime handler makes a mount and all below it read-only. */
  recursiveReadOnly?(pod: Pod): boolean;
  /** The termination messages of containers that have ended, by container id. */
  readMessages(pod: Pod, containerIds: readonly string[]): Promise<Readonly<Record<string, string>>>;
  /** Takes the pod's status whenever it has changed. */
  report(report: PodReport): void;
  readonly runtimeName: string;
  readonly hostIps: readonly string[];
}

/** What executors are told of the pod beside the action: everything as it was when the action began. */
export interface ActionContext {
  readonly pod: Pod;
  readonly memory: PodMemory;
  readonly observed: ObservedPod;
  /** The status reported last. */
  readonly status: PodStatus | undefined;
  readonly signal: AbortSignal;
}

/** What a look at a pod came to, for whoever tells others of it. */
export interface PodReport {
  readonly pod: Pod;
  readonly status: PodStatus;
  readonly view: PodView;
  readonly plan: Plan;
  readonly previousPlan: Plan | undefined;
}
