/**
 * The API client of a node whose credentials may still be under way: whoever asks meanwhile waits, within
 * the time limit of the request, and is answered as by a server that is away.
 */
import { type ApiClient, ApiError, type ApiRequest, type WatchEvent } from '../../client/api-client.ts';
import type { Clock } from '../../concurrency/clock.ts';
import { unlessAborted, waitAtMost } from '../../objects/waiting.ts';

const defaultTimeoutMs = 30_000;

export class DeferredApiClient implements ApiClient {
  readonly #clock: Clock;
  readonly #ready = Promise.withResolvers<ApiClient>();
  #client: ApiClient | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From now on `client` answers. */
  use(client: ApiClient): void {
    this.#client ??= client;
    this.#ready.resolve(this.#client);
  }

  async request<T>(request: ApiRequest): Promise<T> {
    const client = this.#client ?? (await this.#await(request.signal, request.timeoutMs ?? defaultTimeoutMs));
    return await client.request<T>(request);
  }

  async watch<T>(
    request: ApiRequest & { readonly signal: AbortSignal },
    onEvent: (event: WatchEvent<T>) => void,
  ): Promise<void> {
    const client = this.#client ?? (await this.#await(request.signal));
    await client.watch<T>(request, onEvent);
  }

  /** Without `ms` it waits until `signal` aborts. */
  async #await(signal: AbortSignal = neverAborted, ms?: number): Promise<ApiClient> {
    const { promise } = this.#ready;
    if (ms === undefined) return await unlessAborted(promise, signal);
    await waitAtMost(
      promise.then(() => {}),
      { ms, clock: this.#clock, signal },
    );
    if (this.#client) return this.#client;
    throw new ApiError({
      status: 0,
      reason: 'NoCredentials',
      message: 'this node has no credentials for the API server yet',
    });
  }
}

const neverAborted = new AbortController().signal;
