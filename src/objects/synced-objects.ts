/**
 * All objects of one kind in the cluster, followed from the first time somebody needs them. Until the server
 * has told all there is, whoever asks waits, for a bounded time.
 */
import type { Reflector } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { CreateReflector } from './object-types.ts';
import { waitAtMost } from './waiting.ts';

/** The API server has not told yet what there is of a kind. */
export class NotSyncedError extends Error {
  override readonly name = 'NotSyncedError';
  constructor(what: string) {
    super(`${what} have not been synced yet at least once, cannot go on; is the API server reachable?`);
  }
}

export interface SyncedObjectsOptions {
  readonly createReflector: CreateReflector;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A server that is there has answered long before. */
const syncWaitMs = 10_000;

export class SyncedObjects<T> {
  readonly #options: SyncedObjectsOptions;
  readonly #what: string;
  readonly #reflector: Reflector<T>;
  readonly #stopped = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  #started = false;

  /** `what` names the kind in texts, in the plural. */
  constructor(
    options: SyncedObjectsOptions & {
      readonly path: string;
      readonly query?: Readonly<Record<string, string>>;
      readonly what: string;
      /** Told of each change once all there is has been told. */
      readonly onObjects?: () => void;
    },
  ) {
    this.#options = options;
    this.#what = options.what;
    this.#reflector = options.createReflector<T>({
      path: options.path,
      ...(options.query && { query: options.query }),
      onChange: ({ synced }) => {
        if (!synced) return;
        this.#synced.resolve();
        options.onObjects?.();
      },
    });
  }

  /** Begins to follow; has no effect the second time. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    const { signal } = this.#stopped;
    this.#reflector.run(signal).catch((error: unknown) => {
      if (!signal.aborted) this.#options.logger.error(`Following ${this.#what} has ended`, error);
    });
  }

  stop(): void {
    this.#stopped.abort(new Error(`${this.#what} are not needed any more`));
  }

  /** The cache where it is complete already. */
  current(): Pick<Reflector<T>, 'get' | 'values'> | undefined {
    this.start();
    return this.#reflector.synced ? this.#reflector : undefined;
  }

  /** The cache, complete. Rejects with {@link NotSyncedError} when the server does not answer in time. */
  async objects(signal: AbortSignal): Promise<Pick<Reflector<T>, 'get' | 'values'>> {
    const current = this.current();
    if (current) return current;
    const { clock } = this.#options;
    await waitAtMost(this.#synced.promise, { ms: syncWaitMs, clock, signal });
    if (!this.#reflector.synced) throw new NotSyncedError(this.#what);
    return this.#reflector;
  }
}
