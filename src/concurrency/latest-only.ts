/**
 * Work that brings something up to date: while it runs, any number of requests make one more run, so that
 * the last state is always worked in and never two runs overlap.
 */
export class LatestOnly {
  readonly #work: () => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #state: 'idle' | 'running' | 'running-again' = 'idle';

  constructor(work: () => Promise<void>, onError: (error: unknown) => void) {
    this.#work = work;
    this.#onError = onError;
  }

  refresh(): void {
    if (this.#state === 'idle') void this.#run();
    else this.#state = 'running-again';
  }

  async #run(): Promise<void> {
    do {
      this.#state = 'running';
      try {
        await this.#work();
      } catch (error) {
        this.#onError(error);
      }
      // `refresh` may have changed it meanwhile, which the compiler cannot see.
    } while ((this.#state as string) === 'running-again');
    this.#state = 'idle';
  }
}
