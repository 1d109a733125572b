/**
 * A bell for one waiter: what happened while nobody waited ends the next wait at once, however often it
 * happened, so that nothing is missed between looking and waiting.
 */
export class WakeUp {
  #rung = false;
  #end: (() => void) | undefined;

  wake(): void {
    this.#rung = true;
    this.#end?.();
  }

  /** Resolves after the next {@link wake}, or at once after one since the last wait; rejects on abort. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#end = undefined;
        reject(signal.reason);
      };
      const done = () => {
        this.#rung = false;
        this.#end = undefined;
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      if (signal.aborted) return onAbort();
      if (this.#rung) return done();
      signal.addEventListener('abort', onAbort, { once: true });
      this.#end = done;
    });
  }
}
