/**
 * Pods that wait to be admitted, in the order they came. They are asked about again when something has
 * happened that may help (a pod has gone, the node has changed, a device plugin has registered) and once more
 * when their time is up; nothing is done on a period.
 */
import type { Clock } from '../../concurrency/clock.ts';
import type { Pod } from '../../kubernetes/types.ts';
import type { Holding } from '../pod-view.ts';
import type { PodWorker } from '../pod-worker.ts';
import type { AdmissionDecision } from './pod-admission.ts';

export interface HeldPodsOptions {
  readonly clock: Clock;
  readonly worker: (uid: string) => HeldWorker | undefined;
  readonly decide: (pod: Pod, held: Holding) => AdmissionDecision;
}

type HeldWorker = Pick<PodWorker, 'pod' | 'memory' | 'intent' | 'hold' | 'evict'>;

export class HeldPods {
  readonly #options: HeldPodsOptions;
  /** By uid: takes the timer back that ends the wait. */
  readonly #waiting = new Map<string, () => void>();
  #asked = false;

  constructor(options: HeldPodsOptions) {
    this.#options = options;
  }

  /** The pod's worker has been started with this. */
  add(uid: string, { until }: Holding): void {
    const { clock } = this.#options;
    this.#waiting.get(uid)?.();
    const cancel = Number.isFinite(until)
      ? clock.after(Math.max(0, until - clock.now()), () => this.#ask(uid))
      : () => {};
    this.#waiting.set(uid, cancel);
  }

  /** Asks again soon; any number of calls before that make one round. */
  reconsider(): void {
    if (this.#waiting.size === 0 || this.#asked) return;
    this.#asked = true;
    setImmediate(() => {
      this.#asked = false;
      for (const uid of this.#waiting.keys()) this.#ask(uid);
    });
  }

  close(): void {
    for (const cancel of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }

  #ask(uid: string): void {
    const worker = this.#options.worker(uid);
    const held = worker?.memory.held;
    // Deleted, or come to its end by its deadline: there is nothing to admit any more.
    if (!worker || !held || worker.intent.kind === 'terminate') return this.#forget(uid);
    const decision = this.#options.decide(worker.pod, held);
    if (decision.kind === 'waits') {
      if (decision.holding.until !== held.until) this.add(uid, decision.holding);
      if (decision.holding.message !== held.message || decision.holding.until !== held.until)
        worker.hold(decision.holding);
      return;
    }
    this.#forget(uid);
    if (decision.kind === 'admitted') worker.hold(undefined);
    else worker.evict({ ...decision.verdict, graceSeconds: 0 });
  }

  #forget(uid: string): void {
    this.#waiting.get(uid)?.();
    this.#waiting.delete(uid);
  }
}
