/**
 * Answers of the API server, kept for a while: each for its own time, never more than a number, what was not
 * asked for longest going first. Questions that are under way are shared by everybody who asks the same.
 *
 * A question is asked on behalf of all who wait for it, so it has a deadline of its own and does not end when one
 * of them leaves. What fails is not kept.
 */
import type { Clock } from '../concurrency/clock.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';

export interface AnswerCacheOptions<T> {
  readonly clock: Clock;
  /** How long an answer holds, milliseconds; 0: it is not kept. */
  readonly ttl: (answer: T) => number;
  readonly limit: number;
  /** How long a question may take, milliseconds. */
  readonly timeoutMs: number;
}

export class AnswerCache<T> {
  readonly #options: AnswerCacheOptions<T>;
  readonly #flights = new SingleFlight<T>();
  readonly #answers = new Map<string, { readonly answer: T; readonly until: number }>();

  constructor(options: AnswerCacheOptions<T>) {
    this.#options = options;
  }

  get size(): number {
    return this.#answers.size;
  }

  /** Whether {@link get} would ask nobody. */
  has(key: string): boolean {
    const kept = this.#answers.get(key);
    return kept !== undefined && this.#options.clock.now() < kept.until;
  }

  async get(key: string, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const kept = this.#answers.get(key);
    if (kept) {
      this.#answers.delete(key);
      if (clock.now() < kept.until) {
        this.#answers.set(key, kept);
        return kept.answer;
      }
    }
    return await this.#flights.run(key, async () => {
      const answer = await this.#inTime(ask);
      this.#keep(key, answer);
      return answer;
    });
  }

  #keep(key: string, answer: T): void {
    const { clock, ttl, limit } = this.#options;
    const life = ttl(answer);
    if (life <= 0) return;
    this.#answers.set(key, { answer, until: clock.now() + life });
    if (this.#answers.size <= limit) return;
    const oldest = this.#answers.keys().next();
    if (!oldest.done) this.#answers.delete(oldest.value);
  }

  #inTime(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    const deadline = new AbortController();
    return new Promise((resolve, reject) => {
      const cancel = clock.after(timeoutMs, () => {
        const error = new Error(`the API server gave no answer within ${timeoutMs / 1000} s`);
        reject(error);
        deadline.abort(error);
      });
      ask(deadline.signal).finally(cancel).then(resolve, reject);
    });
  }
}
