/**
 * Follows one object by reading it: an answer serves for a while (`Cache`) or for those who ask at the same
 * time (`Get`). While pods refer to it, it is read once in a while for all of them together, so that they
 * hear of changes; an immutable object only until it has been seen.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Followable, FollowedObject, KnownObject } from './followed-object.ts';
import { unlessAborted } from './waiting.ts';

export interface PolledObjectOptions<T> {
  /** Asks for the object once; `undefined` for one not there. */
  readonly read: (signal: AbortSignal) => Promise<T | undefined>;
  /** How long an answer serves, milliseconds; 0 asks every time. */
  readonly serveMs: () => number;
  /** Milliseconds between two looks for changes. */
  readonly pollMs: () => number;
  /** Told when the object has changed or gone, and of its first state when that comes late. */
  readonly onChange: () => void;
  readonly clock: Clock;
}

export class PolledObject<T extends Followable> implements FollowedObject<T> {
  readonly #options: PolledObjectOptions<T>;
  readonly #stopped = new AbortController();
  #known: KnownObject<T> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  /** The last read failed, so whoever asked has been told of no content. */
  #failed = false;
  #reading: Promise<T | undefined> | undefined;
  #cancelPoll: (() => void) | undefined;

  static start<T extends Followable>(options: PolledObjectOptions<T>): PolledObject<T> {
    const polled = new PolledObject(options);
    polled.#pollLater();
    return polled;
  }

  private constructor(options: PolledObjectOptions<T>) {
    this.#options = options;
  }

  async get(signal: AbortSignal): Promise<T | undefined> {
    signal.throwIfAborted();
    const known = this.#known;
    if (known?.object?.immutable) return known.object;
    const { clock, serveMs } = this.#options;
    if (known && clock.now() - this.#readAt < serveMs()) return known.object;
    try {
      return await this.#read(signal);
    } catch (error) {
      signal.throwIfAborted();
      // Differs from the kubelet in `Get` mode as well: old content keeps a pod going while the server is away.
      if (this.#known?.object) return this.#known.object;
      throw error;
    }
  }

  /** A pod that has just come may have been made together with a new content. */
  used(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  stop(): void {
    this.#cancelPoll?.();
    this.#stopped.abort(new Error('nobody refers to the object any more'));
  }

  /** Everybody who asks while a read is under way shares it; giving up waiting leaves it to the others. */
  async #read(signal: AbortSignal): Promise<T | undefined> {
    this.#reading ??= this.#options
      .read(this.#stopped.signal)
      .then((object) => {
        this.#learn(object);
        return object;
      })
      .catch((error: unknown) => {
        this.#failed = true;
        throw error;
      })
      .finally(() => {
        this.#reading = undefined;
      });
    return await unlessAborted(this.#reading, signal);
  }

  #learn(object: T | undefined): void {
    const before = this.#known;
    this.#known = { object };
    this.#readAt = this.#options.clock.now();
    if (object?.immutable) this.#cancelPoll?.();
    const isNews = before ? version(before.object) !== version(object) : this.#failed;
    this.#failed = false;
    if (isNews) this.#options.onChange();
  }

  #pollLater(): void {
    this.#cancelPoll = this.#options.clock.after(this.#options.pollMs(), () => void this.#poll());
  }

  async #poll(): Promise<void> {
    // A failure shows where somebody needs the object; here the next look is enough.
    await this.#read(this.#stopped.signal).catch(() => {});
    if (this.#stopped.signal.aborted || this.#known?.object?.immutable) return;
    this.#pollLater();
  }
}

function version(object: Followable | undefined): string | undefined {
  return object === undefined ? undefined : (object.metadata?.resourceVersion ?? '');
}
