/**
 * A source that is asked before anybody can take its answers, so that reading manifests and finding the
 * runtime go on side by side. What it tells meanwhile is kept, the latest only: each update is the whole
 * truth of its source.
 */
import type { PodSource, SourceUpdate } from './pod-source.ts';

/** Begins at once to run `source`, until `signal` aborts; its first `run` takes over what was told. */
export class EarlySource implements PodSource {
  readonly name: PodSource['name'];
  readonly #running: Promise<void>;
  #listener: ((update: SourceUpdate) => void) | undefined;
  #latest: SourceUpdate | undefined;

  constructor(source: PodSource, signal: AbortSignal) {
    this.name = source.name;
    this.#running = source.run((update) => {
      if (this.#listener) this.#listener(update);
      else this.#latest = update;
    }, signal);
    // Whoever runs it is told; until then a failure is nobody's.
    this.#running.catch(() => {});
  }

  async run(listener: (update: SourceUpdate) => void): Promise<void> {
    this.#listener = listener;
    if (this.#latest) listener(this.#latest);
    this.#latest = undefined;
    await this.#running;
  }
}
