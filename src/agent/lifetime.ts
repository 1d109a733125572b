/** What was started and has to be let go of, last first, also when starting fails half-way. */
export class Lifetime {
  readonly #abort = new AbortController();
  readonly #steps: (() => unknown)[] = [];

  /** Aborts when the end begins. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  onEnd(step: () => unknown): void {
    this.#steps.push(step);
  }

  async end(): Promise<void> {
    this.#abort.abort(new Error('the agent stops'));
    for (const step of this.#steps.splice(0).toReversed()) await step();
  }
}
