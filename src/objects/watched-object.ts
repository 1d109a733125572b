/**
 * Follows one object by a watch of its own. What is known is answered at once, also while the server is
 * away. An immutable object is watched until it has been seen, and kept.
 */
import type { Reflector } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Followable, FollowedObject, KnownObject } from './followed-object.ts';
import type { CreateReflector } from './object-types.ts';
import { waitAtMost } from './waiting.ts';

export interface WatchedObjectOptions<T> {
  readonly createReflector: CreateReflector;
  /** `/api/v1/namespaces/<namespace>/configmaps`. */
  readonly path: string;
  readonly namespace: string;
  readonly name: string;
  /** Asks for the object once, for when the watch does not come up; `undefined` for one not there. */
  readonly read: (signal: AbortSignal) => Promise<T | undefined>;
  /** Told when the object has changed or gone, and of its first state when that comes late. */
  readonly onChange: () => void;
  /** Told when the server refuses to go on telling. */
  readonly onRefused: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A watch usually has told the state after a few milliseconds; later the object is asked for directly. */
const firstWordMs = 1000;

export class WatchedObject<T extends Followable> implements FollowedObject<T> {
  readonly #options: WatchedObjectOptions<T>;
  readonly #reflector: Reflector<T>;
  readonly #stopped = new AbortController();
  readonly #firstWord = Promise.withResolvers<void>();
  /** Absent while nothing has been heard. */
  #known: KnownObject<T> | undefined;
  /** Somebody was answered in another way, or not at all, before the watch came up. */
  #answeredWithout = false;

  /** Begins to watch at once; the answer comes later, so construction itself waits for nothing. */
  static start<T extends Followable>(options: WatchedObjectOptions<T>): WatchedObject<T> {
    const watched = new WatchedObject(options);
    watched.#run();
    return watched;
  }

  private constructor(options: WatchedObjectOptions<T>) {
    this.#options = options;
    this.#reflector = options.createReflector<T>({
      path: options.path,
      query: { fieldSelector: `metadata.name=${options.name}` },
      onChange: () => this.#changed(),
      onRefused: options.onRefused,
    });
  }

  async get(signal: AbortSignal): Promise<T | undefined> {
    if (!this.#known) await this.#untilKnown(signal);
    if (this.#known) return this.#known.object;
    this.#answeredWithout = true;
    return await this.#options.read(signal);
  }

  used(): void {}

  stop(): void {
    this.#stopped.abort(new Error('nobody refers to the object any more'));
  }

  #run(): void {
    const { signal } = this.#stopped;
    this.#reflector.run(signal).catch((error: unknown) => {
      if (signal.aborted) return;
      const { path, name } = this.#options;
      this.#options.logger.error('Watching an object has ended', error, { path, name });
    });
  }

  #changed(): void {
    if (this.#stopped.signal.aborted || !this.#reflector.synced) return;
    const { namespace, name } = this.#options;
    const object = this.#reflector.get(`${namespace}/${name}`);
    const before = this.#known;
    this.#known = { object };
    this.#firstWord.resolve();
    if (object?.immutable) this.stop();
    // Whoever waited for the first word has it already.
    if (before ? before.object !== object : this.#answeredWithout) this.#options.onChange();
  }

  async #untilKnown(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await waitAtMost(this.#firstWord.promise, { ms: firstWordMs, clock, signal });
  }
}
