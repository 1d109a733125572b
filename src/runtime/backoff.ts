/**
 * Exponential back-off by key: each failure doubles the wait up to a maximum, and a key that has been quiet
 * for twice the maximum starts anew. Entries are plain values; the pure functions say how they change.
 */
import type { Clock } from '../concurrency/clock.ts';

/** How waits grow, in milliseconds. */
export interface BackoffRules {
  readonly initialMs: number;
  readonly maxMs: number;
  /** What the wait is multiplied by at each failure; 2 when absent. */
  readonly factor?: number;
}

/** How far one key has come. */
export interface BackoffEntry {
  /** The wait that began at `since`. */
  readonly delayMs: number;
  /** When the last failure was, epoch milliseconds. */
  readonly since: number;
}

/** The entry after one more failure at `now`. */
export function nextBackoff(entry: BackoffEntry | undefined, now: number, rules: BackoffRules): BackoffEntry {
  const { initialMs, maxMs, factor = 2 } = rules;
  const grown = entry && !isForgotten(entry, now, rules) ? entry.delayMs * factor : initialMs;
  return { delayMs: Math.min(grown, maxMs), since: now };
}

/** True when the key has been quiet so long that its next failure counts as the first. */
export function isForgotten(entry: BackoffEntry, now: number, rules: BackoffRules): boolean {
  return now - entry.since > 2 * rules.maxMs;
}

/** When the wait is over, epoch milliseconds; `undefined` when it is. */
export function backoffEnd(entry: BackoffEntry | undefined, now: number): number | undefined {
  if (!entry) return undefined;
  const end = entry.since + entry.delayMs;
  // A wall clock that was set back must not stretch the wait.
  return now < end && now >= entry.since ? end : undefined;
}

/** Keyed entries on one clock, each with the words of its last failure. */
export class Backoff {
  readonly #rules: BackoffRules;
  readonly #clock: Clock;
  readonly #failures = new Map<string, { readonly entry: BackoffEntry; readonly cause: string }>();

  constructor(rules: BackoffRules, clock: Clock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.#failures.size;
  }

  /** Counts a failure of `key`; answers when its wait ends, epoch milliseconds. */
  fail(key: string, cause: string): number {
    const now = this.#clock.now();
    const entry = nextBackoff(this.#failures.get(key)?.entry, now, this.#rules);
    this.#failures.set(key, { entry, cause });
    return now + entry.delayMs;
  }

  /** Until when `key` waits (epoch milliseconds) and for what; `undefined` when it need not wait. */
  waiting(key: string): { readonly until: number; readonly cause: string } | undefined {
    const failure = this.#failures.get(key);
    const until = backoffEnd(failure?.entry, this.#clock.now());
    return failure && until !== undefined ? { until, cause: failure.cause } : undefined;
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Drops keys that have been quiet long enough to start anew. */
  collect(): void {
    const now = this.#clock.now();
    for (const [key, { entry }] of this.#failures) {
      if (isForgotten(entry, now, this.#rules)) this.#failures.delete(key);
    }
  }
}
