/** A rate with a burst: tokens come back evenly, and there are never more than fit the bucket. */
export class TokenBucket {
  readonly #capacity: number;
  readonly #perMs: number;
  #tokens: number;
  #at: number;

  /** `perSecond` tokens come back; the bucket is full at `now`, epoch milliseconds. */
  constructor({ capacity, perSecond, now }: { capacity: number; perSecond: number; now: number }) {
    this.#capacity = capacity;
    this.#perMs = perSecond / 1000;
    this.#tokens = capacity;
    this.#at = now;
  }

  /** Takes one token if there is one. */
  take(now: number): boolean {
    this.#fill(now);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Milliseconds until there is a token. */
  wait(now: number): number {
    this.#fill(now);
    return this.#tokens >= 1 ? 0 : Math.ceil((1 - this.#tokens) / this.#perMs);
  }

  #fill(now: number): void {
    const passed = Math.max(0, now - this.#at);
    this.#tokens = Math.min(this.#capacity, this.#tokens + passed * this.#perMs);
    this.#at = now;
  }
}
