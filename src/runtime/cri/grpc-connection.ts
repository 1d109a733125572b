/**
 * One gRPC connection to a unix socket. It connects on first use, connects again by itself with a back-off of
 * 100 ms to 3 s, and tells when the other side went away and came back. The gRPC library is loaded with the
 * first call. Failures are {@link RuntimeCallError}; a call never outlives its limit or its signal.
 */
import type { Client, ClientUnaryCall, Metadata, ServiceError } from '@grpc/grpc-js';
import type { Clock } from '../../concurrency/clock.ts';
import { RuntimeCallError, RuntimeErrorCode } from '../runtime-call-error.ts';
import { socketPath } from './endpoint.ts';
import { plainDetail, remedyFor } from './remedy.ts';

/** Answers with many containers and images are large; 16 MiB is what runtimes themselves accept. */
const maxMessageBytes = 16 * 1024 * 1024;

/** How a message goes on the wire, as the generated code gives it. */
interface Codec<Message> {
  encode(message: Message): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Message;
}

/** A method of a generated service definition. */
export interface GrpcMethod<Request, Response> {
  readonly name: string;
  readonly requestType: Codec<Request>;
  readonly responseType: Codec<Response>;
}

/** What is asked of which method. */
export interface GrpcCall<Request, Response> {
  /** Full service name, such as `runtime.v1.RuntimeService`. */
  readonly service: string;
  readonly method: GrpcMethod<Request, Response>;
  readonly request: Request;
  /** What the call is about, for errors. */
  readonly subject?: string;
  /** Headers of the call, such as containerd's namespace. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface GrpcConnectionOptions {
  /** `unix:///path` or a path. */
  readonly endpoint: string;
  /** The flag that names the endpoint, for messages: `--container-runtime-endpoint`. */
  readonly flag: string;
  readonly clock: Clock;
}

/** One connection, used by any number of calls and streams side by side. */
export class GrpcConnection {
  readonly path: string;
  readonly #flag: string;
  readonly #clock: Clock;
  readonly #disconnectListeners = new Set<() => void>();
  readonly #reconnectListeners = new Set<() => void>();
  readonly #stateListeners = new Set<() => void>();
  /** Ends each call and stream that is under way. */
  readonly #running = new Set<() => void>();
  #client: Promise<Client> | undefined;
  #newMetadata: (() => Metadata) | undefined;
  #state: 'never' | 'up' | 'down' | 'closed' = 'never';

  constructor({ endpoint, flag, clock }: GrpcConnectionOptions) {
    this.path = socketPath(endpoint, flag);
    this.#flag = flag;
    this.#clock = clock;
  }

  /** Whether the other side is connected now. */
  get connected(): boolean {
    return this.#state === 'up';
  }

  /** Calls `listener` whenever an established connection is lost; the returned function stops that. */
  onDisconnect(listener: () => void): () => void {
    return enlist(this.#disconnectListeners, listener);
  }

  /** Calls `listener` whenever a lost connection is back. */
  onReconnect(listener: () => void): () => void {
    return enlist(this.#reconnectListeners, listener);
  }

  /** Resolves when connected; keeps trying until `signal` aborts or the connection is closed. */
  async ready(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#connect();
    await new Promise<void>((resolve, reject) => {
      const settle = () => {
        if (this.#state !== 'up' && this.#state !== 'closed' && !signal.aborted) return;
        stop();
        signal.removeEventListener('abort', settle);
        if (this.#state === 'up') resolve();
        else reject(signal.aborted ? signal.reason : this.#closedError('connect', undefined));
      };
      const stop = enlist(this.#stateListeners, settle);
      signal.addEventListener('abort', settle, { once: true });
      settle();
    });
  }

  /** One request, one answer, within `timeoutMs` (`Infinity`: no limit). */
  async unary<Request, Response>(
    call: GrpcCall<Request, Response> & { readonly timeoutMs: number },
  ): Promise<Response> {
    const { service, method, request, subject, signal, timeoutMs } = call;
    signal?.throwIfAborted();
    const client = await this.#connect();
    // Connecting takes its time: whoever asked may have given up, and would not be heard any more.
    signal?.throwIfAborted();
    if (this.#state === 'closed') throw this.#closedError(method.name, subject);
    return new Promise((resolve, reject) => {
      let running: ClientUnaryCall | undefined;
      const end = (settle: () => void) => {
        this.#running.delete(onClose);
        cancelTimer?.();
        signal?.removeEventListener('abort', onAbort);
        settle();
      };
      // Cancelling tells the runtime as well, so that it stops working for nobody.
      const giveUp = (error: unknown) => end(() => (reject(error), cancelCall(running)));
      const onAbort = () => giveUp(signal?.reason);
      const onClose = () => giveUp(this.#closedError(method.name, subject));
      this.#running.add(onClose);
      const cancelTimer = Number.isFinite(timeoutMs)
        ? this.#clock.after(timeoutMs, () => giveUp(lateError(method.name, subject, timeoutMs)))
        : undefined;
      signal?.addEventListener('abort', onAbort, { once: true });
      running = client.makeUnaryRequest(
        `/${service}/${method.name}`,
        serializer(method.requestType),
        (bytes: Buffer) => method.responseType.decode(bytes),
        request,
        this.#metadata(call.metadata),
        (error: ServiceError | null, response?: Response) =>
          end(() =>
            error || response === undefined
              ? reject(this.#callError(method.name, subject, error))
              : resolve(response),
          ),
      );
    });
  }

  /**
   * A stream of answers until the other side ends it (resolves), it breaks (rejects), or `signal` aborts
   * (resolves).
   */
  async stream<Request, Response>(
    call: GrpcCall<Request, Response> & { readonly signal: AbortSignal },
    onMessage: (message: Response) => void,
  ): Promise<void> {
    const { service, method, request, subject, signal } = call;
    if (signal.aborted) return;
    const client = await this.#connect();
    if (signal.aborted) return;
    if (this.#state === 'closed') throw this.#closedError(method.name, subject);
    await new Promise<void>((resolve, reject) => {
      const stream = client.makeServerStreamRequest(
        `/${service}/${method.name}`,
        serializer(method.requestType),
        (bytes: Buffer) => method.responseType.decode(bytes),
        request,
        this.#metadata(call.metadata),
      );
      const cancel = () => cancelCall(stream);
      const end = (settle: () => void) => {
        this.#running.delete(cancel);
        signal.removeEventListener('abort', cancel);
        settle();
      };
      this.#running.add(cancel);
      signal.addEventListener('abort', cancel, { once: true });
      stream.on('data', onMessage);
      stream.on('error', (error: ServiceError) =>
        end(() => (signal.aborted ? resolve() : reject(this.#callError(method.name, subject, error)))),
      );
      stream.on('end', () => end(resolve));
    });
  }

  /** Closes for good; calls in flight fail. */
  async close(): Promise<void> {
    const client = this.#client;
    this.#state = 'closed';
    for (const listener of this.#stateListeners) listener();
    for (const end of this.#running) end();
    (await client)?.close();
  }

  #connect(): Promise<Client> {
    this.#client ??= this.#open();
    return this.#client;
  }

  async #open(): Promise<Client> {
    const grpc = await import('@grpc/grpc-js');
    this.#newMetadata = () => new grpc.Metadata();
    const client = new grpc.Client(`unix://${this.path}`, grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': maxMessageBytes,
      'grpc.max_send_message_length': maxMessageBytes,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 3000,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_channelz': 0,
      'grpc.enable_http_proxy': 0,
      'grpc.enable_retries': 0,
    });
    const channel = client.getChannel();
    const watch = () => {
      // Asking with `true` makes an idle channel connect again, so that a restart is noticed without a call.
      const state = channel.getConnectivityState(this.#state !== 'closed');
      this.#setUp(state === grpc.connectivityState.READY);
      if (this.#state === 'closed') return;
      channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, watch);
    };
    watch();
    return client;
  }

  #metadata(headers: Readonly<Record<string, string>> = {}): Metadata {
    // There is a client by now, and with it the library.
    const metadata = this.#newMetadata!();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return metadata;
  }

  #setUp(up: boolean): void {
    const before = this.#state;
    if (before === 'closed' || (before === 'up') === up) return;
    if (up) {
      this.#state = 'up';
      if (before === 'down') for (const listener of this.#reconnectListeners) listener();
    } else if (before === 'up') {
      this.#state = 'down';
      for (const listener of this.#disconnectListeners) listener();
    }
    for (const listener of this.#stateListeners) listener();
  }

  #callError(call: string, subject: string | undefined, error: ServiceError | null): RuntimeCallError {
    const code = (error?.code ?? RuntimeErrorCode.Internal) as RuntimeErrorCode;
    const detail = plainDetail(error?.details ?? 'the answer is empty');
    const remedy = remedyFor({ code, detail, path: this.path, flag: this.#flag });
    // The library's error says nothing more and prints a page of its internals; it is not kept as a cause.
    return new RuntimeCallError({
      call,
      object: subject ?? '',
      code,
      detail,
      ...(remedy !== undefined && { remedy }),
    });
  }

  #closedError(call: string, subject: string | undefined): RuntimeCallError {
    const detail = `the connection to ${this.path} has been closed`;
    return new RuntimeCallError({ call, object: subject ?? '', code: RuntimeErrorCode.Cancelled, detail });
  }
}

/**
 * Ends a call. The library opens its stream some promises after the call was made and does not look whether
 * it was cancelled in between: such a stream would stay open and keep the process alive. So it is told twice.
 */
function cancelCall(call: { cancel(): void } | undefined): void {
  if (call === undefined) return;
  call.cancel();
  setImmediate(() => call.cancel());
}

function lateError(call: string, subject: string | undefined, timeoutMs: number): RuntimeCallError {
  return new RuntimeCallError({
    call,
    object: subject ?? '',
    code: RuntimeErrorCode.DeadlineExceeded,
    detail: `no answer within ${timeoutMs / 1000} s`,
    remedy: 'The runtime may still finish it; its own log tells what it waits for',
  });
}

function serializer<Message>(codec: Codec<Message>): (message: Message) => Buffer {
  return (message) => {
    const bytes = codec.encode(message).finish();
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

function enlist(listeners: Set<() => void>, listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
