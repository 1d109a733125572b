/** What was started and has to be let go of, last first, also when starting fails half-way. */
export class Lifetime {
  readonly #abort = new AbortController();
  readonly #steps: (() => unknown)[] = [];

  /** `stop` begins the end as well: what is being started is given up. */
  constructor(stop?: AbortSignal) {
    const onStop = () => this.#abort.abort(stop?.reason);
    if (stop?.aborted) onStop();
    else stop?.addEventListener('abort', onStop, { once: true });
  }

  /** Aborts when the end begins. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  onEnd(step: () => unknown): void {
    this.#steps.push(step);
  }

  /** Takes every step, whatever becomes of the others; rejects with what went wrong in any. */
  async end(): Promise<void> {
    this.#abort.abort(new Error('the agent stops'));
    const errors: unknown[] = [];
    for (const step of this.#steps.splice(0).toReversed()) {
      try {
        await step();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0)
      throw errors.length === 1 ? errors[0] : new AggregateError(errors, 'stopping failed');
  }
}
