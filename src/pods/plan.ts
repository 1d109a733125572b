/**
 * The outcome of a decision: what to do now, what is waited for and until when. A plan is data; the worker
 * carries it out.
 */
import { type Action, actionKey } from './action.ts';
import type { Failure, PodView, TerminalVerdict } from './pod-view.ts';

/** Why a container does not run, in the words of its status. */
export interface Waiting {
  readonly reason: string;
  readonly message?: string;
}

/** What a decision comes to. */
export interface Plan {
  readonly actions: readonly Action[];
  /** By container name. */
  readonly waiting: Readonly<Record<string, Waiting>>;
  /** When to decide again even if nothing happens, epoch milliseconds. */
  readonly wakeAt?: number;
  /** Failure keys of all that is wanted: planned, under way already, or held back after a failure. */
  readonly wanted: ReadonlySet<string>;
  /** The pod has come to its end. */
  readonly terminal?: TerminalVerdict;
  /** Nothing is left of the pod and nothing is left to do. */
  readonly finished: boolean;
}

/** The name a failure of this action is remembered under. */
export const failureKey = (action: Action) => `${action.kind}:${actionKey(action)}`;

/** Gathers a plan; knows what is being done already and what failed too recently to try again. */
export class PlanDraft {
  readonly #view: PodView;
  readonly #actions: Action[] = [];
  readonly #waiting: Record<string, Waiting> = {};
  readonly #wanted = new Set<string>();
  #wakeAt: number | undefined;

  constructor(view: PodView) {
    this.#view = view;
  }

  get actions(): readonly Action[] {
    return this.#actions;
  }

  /** True while an action on `key` is carried out or planned. */
  busy(key: string): boolean {
    return this.#view.inFlight.has(key) || this.#actions.some((action) => actionKey(action) === key);
  }

  /** Plans the action unless its key is busy or its last failure is too recent; that failure is returned. */
  add(action: Action): Failure | undefined {
    const failure = this.lastFailure(failureKey(action));
    if (failure && this.holdsBack(failure)) return failure;
    if (!this.busy(actionKey(action))) this.#actions.push(action);
    return failure;
  }

  /** The last failure under this key, which the plan thereby still cares for. */
  lastFailure(key: string): Failure | undefined {
    this.#wanted.add(key);
    return this.#view.memory.failures[key];
  }

  /** True while it is too early to try again; the plan then wakes up in time. */
  holdsBack(failure: Failure): boolean {
    if (failure.retryAt <= this.#view.now) return false;
    this.wakeAt(failure.retryAt);
    return true;
  }

  wait(container: string, waiting: Waiting): void {
    this.#waiting[container] ??= waiting;
  }

  wakeAt(time: number): void {
    this.#wakeAt = Math.min(this.#wakeAt ?? time, time);
  }

  finish(end: { terminal?: TerminalVerdict; finished?: boolean } = {}): Plan {
    return {
      actions: this.#actions,
      waiting: this.#waiting,
      wanted: this.#wanted,
      finished: end.finished ?? false,
      ...(this.#wakeAt === undefined ? {} : { wakeAt: this.#wakeAt }),
      ...(end.terminal === undefined ? {} : { terminal: end.terminal }),
    };
  }
}

/**
 * The standard waiting reason of a container that has not been made yet; with what the volumes of the pod lack,
 * by name, when it is they that are waited for.
 */
export function beforeFirstStart(view: PodView): { reason: string; message?: string } {
  const hasInit = (view.pod.spec.initContainers ?? []).length > 0;
  const reason = hasInit ? 'PodInitializing' : 'ContainerCreating';
  const message = volumesFailure(view)?.message;
  return message === undefined ? { reason } : { reason, message };
}

/** Why the pod has not got its volumes; gone once they are there. */
export function volumesFailure({ memory }: Pick<PodView, 'memory'>): Failure | undefined {
  return memory.failures['set-up-volumes:volumes'];
}
