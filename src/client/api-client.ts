/**
 * What rooms ask of the API server. One client serves them all; it knows the server, the credentials and
 * the limits, and sends what keeps the node alive before everything else.
 */

/** Heartbeats go first, then status reports, then everything else. */
export type RequestPriority = 'heartbeat' | 'status' | 'normal';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** For example `/api/v1/nodes/worker-1/status`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Of a PATCH; strategic merge by default. */
  readonly patch?: 'strategic' | 'merge' | 'json' | 'apply';
  readonly priority?: RequestPriority;
  /** Milliseconds for the whole call; 30 s by default. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** One line of a watch. */
export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: T;
}

export interface ApiClient {
  /** The decoded body of a 2xx answer. Rejects with {@link ApiError}, or with the signal's reason. */
  request<T>(request: ApiRequest): Promise<T>;
  /**
   * Streams a watch until the server ends it, the connection is lost, or `signal` aborts; a dead peer is
   * noticed within seconds. Rejects as `request` does.
   */
  watch<T>(
    request: ApiRequest & { readonly signal: AbortSignal },
    onEvent: (event: WatchEvent<T>) => void,
  ): Promise<void>;
}

/** The API server refused, or could not be asked. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** `Status.reason`: `NotFound`, `AlreadyExists`, `Conflict`, `Gone`, `Expired`, `Forbidden`, … */
  readonly reason: string;
  /** What the server asks to wait for, milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    failure: { status: number; reason: string; message: string; retryAfterMs?: number | undefined },
    options?: ErrorOptions,
  ) {
    super(failure.message, options);
    this.status = failure.status;
    this.reason = failure.reason;
    this.retryAfterMs = failure.retryAfterMs;
  }

  get notFound(): boolean {
    return this.status === 404;
  }

  /** The object exists already. */
  get alreadyExists(): boolean {
    return this.status === 409 && this.reason === 'AlreadyExists';
  }

  /** The object has changed, or another one has its name. */
  get conflict(): boolean {
    return this.status === 409 && this.reason === 'Conflict';
  }

  /** The resource version is too old to go on from. */
  get gone(): boolean {
    return this.status === 410;
  }

  /** There was no answer: the server may or may not have done it. */
  get unreachable(): boolean {
    return this.status === 0;
  }
}

/** A cache of objects that follows the server: lists, then watches, and starts over when it has to. */
export interface Reflector<T> {
  /** By `namespace/name`, or by name for cluster-wide objects. */
  get(key: string): T | undefined;
  values(): Iterable<T>;
  /** True once the server has told all there is, at least once. */
  readonly synced: boolean;
  /** Follows until `signal` aborts; errors are logged, and tried again with a back-off. */
  run(signal: AbortSignal): Promise<void>;
}

export interface ReflectorOptions<T> {
  /** `/api/v1/pods`, with `fieldSelector` or `labelSelector` in the query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Told of every change, and once more when the first list is complete. */
  readonly onChange: (change: {
    readonly set: readonly T[];
    readonly removed: readonly T[];
    readonly synced: boolean;
  }) => void;
  /** The server has refused (403): what is known gets older until it allows again, which is tried on. */
  readonly onRefused?: () => void;
}
