/**
 * At most `limit` tasks run at once; among the waiting ones the highest priority goes first, and equal
 * priorities keep their order of arrival. A task that is aborted while waiting never starts.
 */
export class Limiter {
  readonly #limit: number;
  #running = 0;
  #arrivals = 0;
  #waiting: { priority: number; arrival: number; start: () => void }[] = [];

  constructor(limit: number) {
    this.#limit = Math.max(1, limit);
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs `task` when a place is free. Rejects with the signal's reason if aborted before it started. */
  async run<T>(task: () => Promise<T>, options: { priority?: number; signal?: AbortSignal } = {}): Promise<T> {
    if (this.#running >= this.#limit) await this.#turn(options.priority ?? 0, options.signal);
    else {
      options.signal?.throwIfAborted();
      this.#running++;
    }
    try {
      return await task();
    } finally {
      this.#running--;
      this.#next();
    }
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
    if (this.#running >= this.#limit || this.#waiting.length === 0) return;
    let best = 0;
    for (let i = 1; i < this.#waiting.length; i++) {
      const a = this.#waiting[i]!;
      const b = this.#waiting[best]!;
      if (a.priority > b.priority || (a.priority === b.priority && a.arrival < b.arrival)) best = i;
    }
    this.#waiting.splice(best, 1)[0]!.start();
  }
}
