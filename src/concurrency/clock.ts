/**
 * Time as a dependency. Code that waits or stamps takes a {@link Clock}; tests hand in a virtual one and
 * move it by hand, so nothing under test ever sleeps.
 */
export interface Clock {
  /** Wall time, milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `callback` once after `ms` milliseconds; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** The longest delay a Node.js timer holds; longer waits are made of several. */
const longestTimer = 2 ** 31 - 1;

/** The machine's clock. Its timers keep no process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, callback) {
    let timer: NodeJS.Timeout;
    const arm = (left: number) => {
      const step = Math.min(Math.max(left, 0), longestTimer);
      timer = setTimeout(() => (left > step ? arm(left - step) : callback()), step);
      timer.unref();
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
