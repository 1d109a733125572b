/** A wait that can be cut short. A ring while nobody waits ends the next wait at once: none is lost. */
import type { Clock } from '../concurrency/clock.ts';

export class Alarm {
  readonly #clock: Clock;
  #rung = false;
  #wakeUp: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#rung = true;
    this.#wakeUp?.();
  }

  /** Resolves after `ms`, at the next ring, or when `signal` aborts. One waiter at a time. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.after(ms, () => this.#wakeUp?.());
        const onAbort = () => this.#wakeUp?.();
        signal.addEventListener('abort', onAbort, { once: true });
        this.#wakeUp = () => {
          this.#wakeUp = undefined;
          cancel();
          signal.removeEventListener('abort', onAbort);
          resolve();
        };
      });
    }
    this.#rung = false;
  }
}
