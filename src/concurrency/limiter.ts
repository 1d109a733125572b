import type { Clock } from './clock.ts';

export interface LimiterOptions {
  /** How many tasks may hold a place at once. */
  readonly limit: number;
  /**
   * A task that takes longer than this many milliseconds gives its place to the next one and runs on
   * without it, so that nothing that hangs keeps others waiting.
   */
  readonly holdMs?: number;
  /**
   * Where tasks of the same priority take their time and succeed, a task keeps its place for a few times as
   * long as they do, up to this many milliseconds. Without it `holdMs` is the same for all.
   */
  readonly longestHoldMs?: number;
  /** Needed for `holdMs`. */
  readonly clock?: Clock;
}

/** A task that takes so many times as long as others do counts as slow. */
const slowFactor = 4;

/**
 * At most `limit` tasks hold a place at once; among the waiting ones the highest priority goes first, and
 * equal priorities keep their order of arrival. A task that is aborted while waiting never starts.
 */
export class Limiter {
  readonly #options: LimiterOptions;
  #running = 0;
  #arrivals = 0;
  /** Milliseconds that tasks which succeeded took of late, by priority; each new one counts for a quarter. */
  readonly #usual = new Map<number, number>();
  #waiting: { priority: number; arrival: number; start: () => void }[] = [];

  constructor(options: LimiterOptions | number) {
    this.#options = typeof options === 'number' ? { limit: options } : options;
  }

  /** How many places are taken. */
  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs `task` when a place is free. Rejects with the signal's reason if aborted before it started. */
  async run<T>(
    task: () => Promise<T>,
    options: { priority?: number; signal?: AbortSignal } = {},
  ): Promise<T> {
    const { priority = 0 } = options;
    if (this.#running >= this.#options.limit) await this.#turn(priority, options.signal);
    else {
      options.signal?.throwIfAborted();
      this.#running++;
    }
    const release = this.#releaseOnce();
    const { holdMs, clock } = this.#options;
    const cancelHold = holdMs === undefined ? undefined : clock?.after(this.#hold(holdMs, priority), release);
    const began = clock?.now() ?? 0;
    try {
      const result = await task();
      if (clock) this.#learn(priority, clock.now() - began);
      return result;
    } finally {
      cancelHold?.();
      release();
    }
  }

  #hold(holdMs: number, priority: number): number {
    const { longestHoldMs = holdMs } = this.#options;
    return Math.min(Math.max(holdMs, slowFactor * (this.#usual.get(priority) ?? 0)), longestHoldMs);
  }

  #learn(priority: number, tookMs: number): void {
    const usual = this.#usual.get(priority);
    this.#usual.set(priority, usual === undefined ? tookMs : usual + (tookMs - usual) / 4);
  }

  #releaseOnce(): () => void {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#running--;
      this.#next();
    };
  }

  #turn(priority: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        this.#waiting = this.#waiting.filter((other) => other !== entry);
        reject(signal?.reason);
      };
      const entry = {
        priority,
        arrival: this.#arrivals++,
        start: () => {
          signal?.removeEventListener('abort', onAbort);
          this.#running++;
          resolve();
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(entry);
    });
  }

  #next(): void {
    if (this.#running >= this.#options.limit || this.#waiting.length === 0) return;
    let best = 0;
    for (let i = 1; i < this.#waiting.length; i++) {
      const a = this.#waiting[i]!;
      const b = this.#waiting[best]!;
      if (a.priority > b.priority || (a.priority === b.priority && a.arrival < b.arrival)) best = i;
    }
    this.#waiting.splice(best, 1)[0]!.start();
  }
}
