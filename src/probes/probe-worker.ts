/**
 * One probe of one container instance: waits in the queue, runs, applies the result, waits again.
 *
 * Guarantees: at most one run at a time; a run that is stopped has no effect, whatever comes of it; no timer
 * of its own while it waits.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { DueItem, DueQueue } from './due-queue.ts';
import type { ProbeOutcome } from './probe-outcome.ts';
import { firstRun, nextRun, type Rhythm, type Run } from './probe-schedule.ts';
import { afterResult, type ProbeState, type Verdict } from './probe-state.ts';
import { type ProbeTiming, sameTiming } from './probe-timing.ts';

/** The probe, and whom it tells. */
export interface ProbeWorkerOptions {
  readonly clock: Clock;
  readonly queue: DueQueue;
  readonly initial: ProbeState;
  readonly timing: ProbeTiming;
  rhythm(openAt: number, timing: ProbeTiming): Rhythm;
  /** Never rejects. */
  run(timing: ProbeTiming, signal: AbortSignal): Promise<ProbeOutcome>;
  /** Called with every outcome that counts, before the verdict changes; `look`: a run off the grid. */
  onOutcome(outcome: ProbeOutcome, run: { readonly look: boolean; readonly durationMs: number }): void;
  onVerdict(): void;
}

/** One probe of one container instance: runs it in its rhythm and counts what comes of it. */
export class ProbeWorker implements DueItem {
  due = 0;
  slot = -1;
  readonly #options: ProbeWorkerOptions;
  #timing: ProbeTiming;
  #state: ProbeState;
  /** Set while the probe is open. */
  #rhythm: Rhythm | undefined;
  #next: Run | undefined;
  #inFlight: AbortController | undefined;

  constructor(options: ProbeWorkerOptions) {
    this.#options = options;
    this.#timing = options.timing;
    this.#state = options.initial;
  }

  get verdict(): Verdict {
    return this.#state.verdict;
  }

  /** Opens the probe, unless it is open already. `openAt`: not before then, epoch milliseconds. */
  start(openAt: number): void {
    if (this.#rhythm) return;
    this.#rhythm = this.#options.rhythm(openAt, this.#timing);
    this.#plan(firstRun(this.#rhythm, this.#options.clock.now(), this.#wanting));
  }

  /** Closes the probe and drops the run in flight. The verdict stays. */
  stop(): void {
    if (!this.#rhythm) return;
    this.#rhythm = undefined;
    this.#options.queue.remove(this);
    this.#inFlight?.abort(new Error('the probe was stopped'));
    this.#inFlight = undefined;
  }

  /** Takes other times; a probe that is open goes on with them after the run in flight. */
  retime(timing: ProbeTiming): void {
    if (sameTiming(timing, this.#timing)) return;
    const { initialDelayMs } = this.#timing;
    this.#timing = timing;
    if (!this.#rhythm) return;
    const openAt = this.#rhythm.openAt + timing.initialDelayMs - initialDelayMs;
    this.#rhythm = this.#options.rhythm(openAt, timing);
    if (!this.#inFlight) this.#plan(firstRun(this.#rhythm, this.#options.clock.now(), this.#wanting));
  }

  fire(): void {
    const { clock } = this.#options;
    const { look } = this.#next!;
    const timing = this.#timing;
    const abort = new AbortController();
    this.#inFlight = abort;
    const startedAt = clock.now();
    const dueAt = this.due;
    void this.#options.run(timing, abort.signal).then((outcome) => {
      if (abort.signal.aborted) return;
      this.#inFlight = undefined;
      this.#options.onOutcome(outcome, { look, durationMs: clock.now() - startedAt });
      this.#learn(outcome, look);
      // Learning may have closed the probe.
      if (!this.#rhythm) return;
      const after = Math.max(clock.now(), dueAt);
      const next = nextRun(this.#rhythm, after, this.#wanting);
      // Only a clock that was set back puts the next run further away than that.
      this.#plan({ ...next, at: Math.min(next.at, after + timing.periodMs) });
    });
  }

  #learn(outcome: ProbeOutcome, look: boolean): void {
    if (outcome.result === 'unknown' || (look && outcome.result === 'failure')) return;
    const before = this.#state.verdict;
    const result = outcome.result === 'failure' ? 'failure' : 'success';
    this.#state = afterResult(this.#state, result, this.#timing);
    if (this.#state.verdict !== before) this.#options.onVerdict();
  }

  /** Nothing has succeeded yet, and somebody waits for it. */
  get #wanting(): boolean {
    return this.#state.verdict !== 'success' && this.#state.last === undefined;
  }

  #plan(run: Run): void {
    this.#next = run;
    this.#options.queue.add(this, run.at);
  }
}
