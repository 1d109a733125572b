/**
 * HTTP/1.1 for servers (or proxies before them) that speak nothing newer: a set of kept-alive sockets behind
 * the face of one connection. There is no ping; TCP keep-alive notices a dead peer within 15 s.
 */
import { Agent, request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../concurrency/clock.ts';
import {
  ConnectionLostError,
  type ExchangeHandlers,
  type ServerConnection,
  type WireRequest,
} from './server-connection.ts';

const idleSockets = 4;

export class Http1Connection implements ServerConnection {
  readonly maxStreams = Number.POSITIVE_INFINITY;
  readonly #agent: Agent;
  readonly #server: URL;
  readonly #clock: Clock;
  readonly #onClosed: () => void;
  readonly #cancels = new Set<(error: Error) => void>();
  #open = true;
  #closed = false;
  #first: Socket | undefined;
  #cancelGrace = () => {};

  /** `socket` serves the first request; `connect` opens what else is needed. `onClosed` is called once. */
  constructor(options: {
    socket: Socket;
    server: URL;
    clock: Clock;
    connect: () => Promise<Socket>;
    onClosed: () => void;
  }) {
    this.#server = options.server;
    this.#clock = options.clock;
    this.#onClosed = options.onClosed;
    this.#first = options.socket;
    this.#agent = new SocketAgent(async () => {
      const first = this.#first;
      this.#first = undefined;
      return first && !first.destroyed ? first : options.connect();
    });
  }

  get open(): boolean {
    return this.#open;
  }

  get streams(): number {
    return this.#cancels.size;
  }

  send(wire: WireRequest, handlers: ExchangeHandlers): () => void {
    const { method, path, headers, body } = wire;
    let done = false;
    let closing: Error | undefined;
    const request = httpRequest({
      agent: this.#agent,
      host: this.#server.hostname,
      method,
      path,
      headers: {
        host: this.#server.host,
        ...(headers as Record<string, string | string[]>),
        ...(body && { 'content-length': body.length }),
      },
    });
    const finish = (): boolean => {
      if (done) return false;
      done = true;
      this.#cancels.delete(cancel);
      if (!this.#open && this.#cancels.size === 0) this.close();
      return true;
    };
    const lost = (error: Error) => {
      const cause = closing ?? error;
      if (finish())
        handlers.onLost(new ConnectionLostError(`connection lost: ${cause.message}`, { cause }), false);
    };
    const cancel = (error: Error) => {
      closing = error;
      request.destroy(error);
    };
    this.#cancels.add(cancel);
    request.on('error', lost);
    request.on('response', (response) => {
      if (!done) handlers.onHead(response.statusCode ?? 0, response.headers);
      response.on('data', (chunk: Buffer) => {
        if (!done) handlers.onData(chunk);
      });
      response.on('error', lost);
      response.on('close', () => {
        if (!response.complete) lost(new Error('the answer was cut off'));
        else if (finish()) handlers.onEnd();
      });
    });
    request.end(body);
    return () => {
      finish();
      request.destroy();
    };
  }

  retire(graceMs: number): void {
    this.#open = false;
    if (this.#cancels.size === 0) return this.close();
    this.#cancelGrace = this.#clock.after(graceMs, () => this.close());
  }

  close(error?: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#open = false;
    this.#cancelGrace();
    for (const cancel of this.#cancels) cancel(error ?? new Error('the connection was closed'));
    this.#first?.destroy();
    this.#agent.destroy();
    this.#onClosed();
  }
}

/** Sockets come from us, TLS and proxy included. */
class SocketAgent extends Agent {
  readonly #connect: () => Promise<Socket>;

  constructor(connect: () => Promise<Socket>) {
    super({ keepAlive: true, maxFreeSockets: idleSockets });
    this.#connect = connect;
  }

  override createConnection(
    _options: unknown,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    this.#connect().then(
      (socket) => callback?.(null, socket),
      (error: unknown) => callback?.(error as Error, undefined as unknown as Duplex),
    );
    return undefined;
  }
}
