/**
 * The actions under way for one pod, by their keys.
 *
 * Guarantees: each that was started ends exactly once, with an outcome, even when its executor breaks; one
 * that takes long is named in the log.
 */
import { podKey } from '../kubernetes/pod-identity.ts';
import { type Action, actionKey } from './action.ts';
import type { ActionContext, PodWorkerPorts } from './pod-worker-ports.ts';
import type { Outcome } from './remember.ts';

/** An action that takes longer than this, beside the time a container is given to end, is named in the log. */
const slowActionMs = 30_000;

interface InFlight {
  readonly action: Action;
  readonly abort: AbortController;
  readonly pod: string;
  overtaken: boolean;
}

/** What an action came to. */
export interface EndedAction {
  readonly action: Action;
  readonly outcome: Outcome;
  /** As it was when the action began; its signal tells whether the action was cut off. */
  readonly context: ActionContext;
  /** Objects the pod refers to have changed since it began. */
  readonly overtaken: boolean;
}

export class ActionsInFlight {
  readonly #ports: Pick<PodWorkerPorts, 'clock' | 'logger' | 'execute'>;
  readonly #onEnded: (ended: EndedAction) => void;
  readonly #entries = new Map<string, InFlight>();

  constructor(
    ports: Pick<PodWorkerPorts, 'clock' | 'logger' | 'execute'>,
    onEnded: (ended: EndedAction) => void,
  ) {
    this.#ports = ports;
    this.#onEnded = onEnded;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Keys that are taken: what has one of them waits. */
  keys(): ReadonlySet<string> {
    return new Set(this.#entries.keys());
  }

  actions(): readonly Action[] {
    return [...this.#entries.values()].map(({ action }) => action);
  }

  /** Carries an action out; who plans sees to it that its key is free. */
  start(action: Action, given: Omit<ActionContext, 'signal'>): void {
    const key = actionKey(action);
    const { clock, logger } = this.#ports;
    const pod = podKey(given.pod);
    const entry: InFlight = { action, abort: new AbortController(), pod, overtaken: false };
    this.#entries.set(key, entry);
    const { kind, reason, ...fields } = action;
    logger.v(2, 'Acting for pod', { pod, action: kind, reason, ...fields });
    const startedAt = clock.now();
    const slowMs = slowActionMs + ('graceSeconds' in action ? action.graceSeconds * 1000 : 0);
    const cancelSlow = clock.after(slowMs, () => {
      const seconds = slowMs / 1000;
      logger.warn('An action for a pod takes long', { pod, action: kind, ...fields, seconds });
    });
    const context: ActionContext = { ...given, signal: entry.abort.signal };
    void this.#ports
      .execute(action, context)
      .catch((error: unknown): Outcome => {
        // What the worker itself cut off is no fault of anything.
        if (context.signal.aborted)
          logger.v(3, 'An action for a pod was cut off', { pod, action: kind, ...fields });
        else logger.error('An action for a pod broke', error, { pod, action: kind, ...fields });
        return { ok: false, reason: 'InternalError', message: String(error) };
      })
      .then((outcome) => {
        cancelSlow();
        this.#entries.delete(key);
        logger.v(4, 'Acted for pod', { pod, action: kind, ok: outcome.ok, ms: clock.now() - startedAt });
        this.#onEnded({ action, outcome, context, overtaken: entry.overtaken });
      });
  }

  /** Says of all that is under way that it may have seen the pod's objects as they were before. */
  overtake(): void {
    for (const entry of this.#entries.values()) entry.overtaken = true;
  }

  /** Cuts off what makes no sense any more. It still ends, and says with what. */
  abort(which: (action: Action) => boolean): void {
    for (const { action, abort, pod } of this.#entries.values()) {
      if (which(action)) abort.abort(new Error(`pod ${pod} is to end`));
    }
  }
}
