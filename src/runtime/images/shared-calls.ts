/**
 * Calls with the same key share one running call, for as long as anybody waits for it. When the last one
 * that waits gives up, the call itself is aborted; whoever comes after that starts a new one.
 */
export class SharedCalls<T> {
  readonly #running = new Map<string, { result: Promise<T>; waiting: number; controller: AbortController }>();

  /** Keys with a call under way. */
  get size(): number {
    return this.#running.size;
  }

  /** The result of the running call for `key`, or of `start` when there is none. */
  async run(key: string, start: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    let call = this.#running.get(key);
    if (!call) {
      const controller = new AbortController();
      call = { result: start(controller.signal), waiting: 0, controller };
      this.#running.set(key, call);
    }
    const joined = call;
    const forget = () => {
      if (this.#running.get(key) === joined) this.#running.delete(key);
    };
    joined.waiting++;
    try {
      return await unlessAborted(joined.result, signal);
    } finally {
      if (--joined.waiting === 0) {
        forget();
        joined.controller.abort(signal.reason);
      } else if (!signal.aborted) forget();
    }
  }
}

/** Settles with `promise`, or rejects with the signal's reason when that comes first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
