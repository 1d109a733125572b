import type { Clock } from './clock.ts';

/**
 * A clock that stands still until a test moves it. `advance` fires due timers in time order and lets
 * promise chains run between them, so what a timer starts has settled before the next one fires.
 */
export class VirtualClock implements Clock {
  #now: number;
  #timers: { at: number; order: number; callback: () => void }[] = [];
  #order = 0;

  constructor(startAt = Date.UTC(2026, 0, 1)) {
    this.#now = startAt;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), order: this.#order++, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** When the next timer is due (epoch ms), if any waits. */
  nextTimer(): number | undefined {
    return this.#earliest()?.at;
  }

  /** Moves time forward by `ms`, firing every timer that becomes due on the way. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await settle();
    for (let timer = this.#earliest(); timer && timer.at <= until; timer = this.#earliest()) {
      const due = timer;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.#now = Math.max(this.#now, due.at);
      due.callback();
      await settle();
    }
    this.#now = until;
    await settle();
  }

  #earliest() {
    let first: { at: number; order: number; callback: () => void } | undefined;
    for (const timer of this.#timers) {
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}

/** Lets pending promise callbacks and immediate I/O run. */
export async function settle(turns = 8): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
