/**
 * Keeps the pods of a test file few at a time: those of the next tests are started ahead, so that tests
 * hardly wait, and those that tests are done with go. All pods at once, each probed once a second, are more
 * than a small machine can do, and they would run into deadlines that are not theirs.
 *
 * Tests run in the order in which their pods were declared. A pod stays until a test asks for one that was
 * declared more than a few later.
 */

/** Pods that are on their way behind the one that is asked for. */
const ahead = 7;
/** Pods that stay before the one that is asked for, since a test may be about several. */
const behind = 4;

export interface WindowPod {
  readonly start: () => void;
  /** Does nothing when a test has removed it already. */
  readonly end: () => void;
}

export class PodWindow {
  readonly #pods: { readonly name: string; readonly pod: WindowPod }[] = [];
  readonly #places = new Map<string, number>();
  #started = 0;
  #ended = 0;

  declare(name: string, pod: WindowPod): void {
    if (this.#places.has(name)) throw new Error(`there are two pods ${name}`);
    this.#places.set(name, this.#pods.length);
    this.#pods.push({ name, pod });
  }

  /** Starts the first pods. */
  open(): void {
    this.#startUpTo(ahead);
  }

  /** A test is about this pod now; names that were not declared are left to whoever writes them. */
  reach(name: string): void {
    const place = this.#places.get(name);
    if (place === undefined) return;
    this.#startUpTo(place + ahead);
    for (; this.#ended < place - behind; this.#ended++) this.#pods[this.#ended]?.pod.end();
  }

  #startUpTo(last: number): void {
    for (; this.#started <= Math.min(last, this.#pods.length - 1); this.#started++)
      this.#pods[this.#started]?.pod.start();
  }
}
