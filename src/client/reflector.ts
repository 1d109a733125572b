/**
 * Follows a collection of the API server: gets all of it, then watches, and starts over when it has to.
 *
 * ```
 *   list ──▶ watch ──▶ watch again from the last resource version (server's time limit, lost connection)
 *    ▲                   │
 *    └───────────────────┘ 410, or an event that cannot be understood
 * ```
 *
 * Guarantees: `run` ends only when its signal aborts, whatever the server sends; every list is a consistent
 * one (never older than what was already seen); changes are reported in order, removed before set; a caller
 * whose `onChange` throws is logged and not followed.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import {
  type ApiClient,
  ApiError,
  type Reflector,
  type ReflectorOptions,
  type WatchEvent,
} from './api-client.ts';
import { type CacheChange, identify, metadataOf, ReflectorCache } from './reflector-cache.ts';

export interface ReflectorSurroundings {
  readonly client: ApiClient;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly logger: Logger;
}

/** Makes reflectors that share what one of them has learned about the server. */
export type ReflectorFactory = <T>(
  options: ReflectorOptions<T> & {
    /** The shortest time limit to ask a watch for, seconds; up to twice as long is asked for. 300 when absent. */
    readonly minWatchSeconds?: number;
  },
) => Reflector<T>;

/** What is known about the server. */
interface Server {
  /** It sends the list as the beginning of a watch (`sendInitialEvents`). */
  streamsLists: boolean;
}

const firstPauseMs = 500;
const longestPauseMs = 30_000;
/** While the server cannot be reached, the client paces attempts by itself. */
const longestAwayPauseMs = 5000;
/** A watch that ends sooner, with nothing said, counts as a failure. */
const shortWatchMs = 1000;
const pageSize = 500;
/** A server that starts a streaming list must go on with it. */
const streamStallMs = 10_000;
const initialEventsEnd = 'k8s.io/initial-events-end';

export function createReflectors(surroundings: ReflectorSurroundings): ReflectorFactory {
  const server: Server = { streamsLists: true };
  return (options) => new FollowingReflector(options, surroundings, server);
}

/** The server does not do streaming lists. */
class NoStreamingListError extends Error {
  override readonly name = 'NoStreamingListError';
}

/** The watch cannot be gone on with; a new list is needed. */
class StartOverError extends Error {
  override readonly name = 'StartOverError';
}

class FollowingReflector<T> implements Reflector<T> {
  readonly #options: ReflectorOptions<T> & { readonly minWatchSeconds?: number };
  readonly #surroundings: ReflectorSurroundings;
  readonly #server: Server;
  readonly #logger: Logger;
  readonly #cache = new ReflectorCache<T>();
  #synced = false;
  /** From where to watch; undefined when a list is needed. */
  #version: string | undefined;
  #failures = 0;
  #lastComplaint = '';

  constructor(
    options: ReflectorOptions<T> & { readonly minWatchSeconds?: number },
    surroundings: ReflectorSurroundings,
    server: Server,
  ) {
    this.#options = options;
    this.#surroundings = surroundings;
    this.#server = server;
    this.#logger = surroundings.logger.with({ path: options.path });
  }

  get synced(): boolean {
    return this.#synced;
  }

  get(key: string): T | undefined {
    return this.#cache.get(key);
  }

  values(): Iterable<T> {
    return this.#cache.values();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#version === undefined) await this.#list(signal);
        else await this.#watch(this.#version, signal);
      } catch (error) {
        if (signal.aborted) return;
        await this.#afterFailure(error, signal).catch(() => {});
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    if (this.#server.streamsLists) {
      try {
        return await this.#watch(undefined, signal);
      } catch (error) {
        if (!refusesStreaming(error)) throw error;
        this.#server.streamsLists = false;
        this.#logger.v(2, 'The API server streams no lists, asking for ordinary ones');
      }
    }
    let limit = String(pageSize);
    let objects = new Map<string, T>();
    let version: unknown;
    for (let next: unknown; ; ) {
      let page: { metadata?: unknown; items?: unknown };
      try {
        page = await this.#surroundings.client.request<typeof page>({
          method: 'GET',
          path: this.#options.path,
          query: {
            ...this.#options.query,
            ...(limit !== '' && { limit }),
            ...(typeof next === 'string' && { continue: next }),
          },
          signal,
        });
      } catch (error) {
        // The continuation has run out: all of it in one go, then.
        if (!(error instanceof ApiError && error.gone && next !== undefined)) throw error;
        limit = '';
        next = undefined;
        objects = new Map();
        continue;
      }
      if (!Array.isArray(page?.items)) throw new StartOverError('the list has no items');
      for (const item of page.items as unknown[]) {
        const key = identify(item);
        if (key === undefined) throw new StartOverError('the list holds an object without a name');
        objects.set(key, item as T);
      }
      const metadata = metadataOf(page) as { resourceVersion?: unknown; continue?: unknown };
      version = metadata.resourceVersion;
      next = metadata.continue === '' ? undefined : metadata.continue;
      if (typeof next !== 'string') break;
    }
    if (typeof version !== 'string' || version === '')
      throw new StartOverError('the list has no resource version');
    this.#replace(objects, version);
  }

  /** Watches from `from`, or, without it, has the whole list sent as the watch's beginning. */
  async #watch(from: string | undefined, signal: AbortSignal): Promise<void> {
    const { client, clock, random } = this.#surroundings;
    const { path, query, minWatchSeconds = 300 } = this.#options;
    const began = clock.now();
    const end = new AbortController();
    const onAbort = () => end.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    let initial = from === undefined ? new Map<string, T>() : undefined;
    let heard = false;
    let cancelStall = () => {};
    const watchStall = () => {
      cancelStall();
      if (initial) cancelStall = clock.after(streamStallMs, () => end.abort(new NoStreamingListError()));
    };
    try {
      await client.watch<unknown>(
        {
          method: 'GET',
          path,
          query: {
            ...query,
            allowWatchBookmarks: 'true',
            timeoutSeconds: String(Math.round(minWatchSeconds * (1 + random()))),
            ...(from === undefined
              ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
              : { resourceVersion: from }),
          },
          signal: end.signal,
        },
        (event) => {
          heard = true;
          if (!initial) {
            this.#failures = 0;
            return this.#take(event);
          }
          if (takeInitial(initial, event)) {
            const version = metadataOf(event.object).resourceVersion as string;
            const objects = initial;
            initial = undefined;
            cancelStall();
            this.#replace(objects, version);
          } else watchStall();
        },
      );
      if (initial) throw new StartOverError('the watch ended before the list was complete');
      if (!heard && clock.now() - began < shortWatchMs)
        throw new ApiError({ status: 0, reason: 'ShortWatch', message: 'the watch ended at once' });
      this.#failures = 0;
    } finally {
      cancelStall();
      signal.removeEventListener('abort', onAbort);
    }
  }

  #take(event: WatchEvent<unknown>): void {
    const { type, object } = event;
    if (type === 'ERROR') throw errorOf(object);
    const { resourceVersion } = metadataOf(object);
    if (typeof resourceVersion !== 'string' || resourceVersion === '')
      throw new StartOverError(`an event (${type}) has no resource version`);
    if (type !== 'BOOKMARK') {
      const key = identify(object);
      if (key === undefined) throw new StartOverError(`an event (${type}) has no object's name`);
      if (type === 'DELETED') this.#report(this.#cache.remove(key, object as T));
      else if (type === 'ADDED' || type === 'MODIFIED') this.#report(this.#cache.set(key, object as T));
      else throw new StartOverError(`an event is of the unknown type ${String(type)}`);
    }
    this.#version = resourceVersion;
  }

  #replace(objects: ReadonlyMap<string, T>, version: string): void {
    const change = this.#cache.replace(objects);
    this.#version = version;
    this.#failures = 0;
    this.#lastComplaint = '';
    const first = !this.#synced;
    this.#synced = true;
    this.#report(change, first);
  }

  #report({ set, removed }: CacheChange<T>, always = false): void {
    if (!always && set.length === 0 && removed.length === 0) return;
    try {
      this.#options.onChange({ set, removed, synced: this.#synced });
    } catch (error) {
      this.#logger.error('A change of the API server could not be taken in', error);
    }
  }

  async #afterFailure(error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#surroundings;
    const gone = error instanceof ApiError && error.gone;
    const startOver = error instanceof StartOverError;
    if (gone || startOver || (error instanceof ApiError && error.reason === 'BadEvent'))
      this.#version = undefined;
    if (error instanceof ApiError && error.status === 403) this.#options.onRefused?.();
    if (signal.aborted) return;
    this.#complain(error);
    // The first 410 in a row is the ordinary end of an old version: no reason to wait.
    if (gone && this.#failures++ === 0) return;
    if (!gone) this.#failures++;
    const away = error instanceof ApiError && error.unreachable;
    const longest = away ? longestAwayPauseMs : longestPauseMs;
    const pause = Math.min(firstPauseMs * 2 ** Math.min(this.#failures - 1, 16), longest);
    const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    await sleep(clock, Math.max(asked, pause * (0.5 + random() / 2)), signal);
  }

  /** What concerns all callers the client has said; the same trouble is told once. */
  #complain(error: unknown): void {
    const known = error instanceof ApiError && (error.unreachable || error.gone || error.status === 401);
    const text = error instanceof Error ? error.message : String(error);
    if (known || text === this.#lastComplaint) {
      this.#logger.v(4, 'Following the API server was interrupted', { err: text });
      return;
    }
    this.#lastComplaint = text;
    this.#logger.warn('Following the API server was interrupted, trying again', { err: text });
  }
}

/** True when the streamed list is complete with this event. */
function takeInitial<T>(initial: Map<string, T>, { type, object }: WatchEvent<unknown>): boolean {
  if (type === 'ERROR') throw errorOf(object);
  const { annotations, resourceVersion } = metadataOf(object);
  if (type === 'BOOKMARK') {
    const ends = (annotations as Record<string, unknown> | null | undefined)?.[initialEventsEnd] === 'true';
    // A bookmark in between: this server has never heard of streaming lists.
    if (!ends) throw new NoStreamingListError();
    if (typeof resourceVersion === 'string' && resourceVersion !== '') return true;
    throw new StartOverError('the streamed list has no resource version');
  }
  const key = identify(object);
  if (key === undefined) throw new StartOverError(`an event (${type}) has no object's name`);
  if (type === 'DELETED') initial.delete(key);
  else if (type === 'ADDED' || type === 'MODIFIED') initial.set(key, object as T);
  else throw new StartOverError(`an event is of the unknown type ${String(type)}`);
  return false;
}

/** The `Status` of an ERROR event as an error. */
function errorOf(object: unknown): ApiError {
  const { code, reason, message } = (object ?? {}) as Record<string, unknown>;
  return new ApiError({
    status: typeof code === 'number' ? code : 500,
    reason: typeof reason === 'string' ? reason : 'Unknown',
    message: typeof message === 'string' ? message : 'the watch reported an error',
  });
}

/** A server with the feature off answers 422 (or 400) to what it does not know. */
function refusesStreaming(error: unknown): boolean {
  if (error instanceof NoStreamingListError) return true;
  return error instanceof ApiError && (error.status === 422 || error.status === 400);
}
