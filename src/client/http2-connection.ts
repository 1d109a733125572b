/**
 * An HTTP/2 connection. A peer that has died without a word is noticed by PING: sent every ten seconds, to
 * be answered within five. After GOAWAY nothing new is sent, and what is under way may end.
 */

import type { OutgoingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '../concurrency/clock.ts';
import {
  ConnectionLostError,
  type ExchangeHandlers,
  type ServerConnection,
  type WireRequest,
} from './server-connection.ts';

export const pingEveryMs = 10_000;
export const pingAnswerMs = 5000;
/** What a server that does not say may be asked at once. */
const assumedStreams = 100;
const streamWindow = 1024 * 1024;
const connectionWindow = 8 * 1024 * 1024;

export class Http2Connection implements ServerConnection {
  readonly #session: ClientHttp2Session;
  readonly #authority: string;
  readonly #clock: Clock;
  #retired = false;
  #closed = false;
  #streams = 0;
  #lastSeenStream: number | undefined;
  #failure: Error | undefined;
  #cancelTimer: () => void;

  /** Takes over a connected socket. `onClosed` is called once. */
  constructor(options: { socket: Socket; server: URL; clock: Clock; onClosed: () => void }) {
    const { socket, server, clock, onClosed } = options;
    this.#clock = clock;
    this.#authority = server.host;
    this.#session = connect(server.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: streamWindow },
      maxSessionMemory: 64,
    });
    this.#session.once('connect', () => {
      if (!this.#session.destroyed) this.#session.setLocalWindowSize(connectionWindow);
    });
    this.#session.on('goaway', (_code, lastStream) => {
      this.#retired = true;
      this.#lastSeenStream = lastStream;
      if (this.#streams === 0) this.close();
    });
    this.#session.on('error', (error) => {
      this.#failure ??= error;
    });
    this.#cancelTimer = clock.after(pingEveryMs, () => this.#ping());
    this.#session.once('close', () => {
      this.#closed = true;
      this.#cancelTimer();
      onClosed();
    });
  }

  get open(): boolean {
    return !this.#retired && !this.#closed && !this.#session.closed && !this.#session.destroyed;
  }

  get streams(): number {
    return this.#streams;
  }

  get maxStreams(): number {
    return this.#session.remoteSettings?.maxConcurrentStreams ?? assumedStreams;
  }

  send(request: WireRequest, handlers: ExchangeHandlers): () => void {
    let stream: ClientHttp2Stream;
    try {
      stream = this.#session.request(
        {
          [constants.HTTP2_HEADER_METHOD]: request.method,
          [constants.HTTP2_HEADER_PATH]: request.path,
          [constants.HTTP2_HEADER_AUTHORITY]: this.#authority,
          ...(request.headers as OutgoingHttpHeaders),
        },
        { endStream: request.body === undefined },
      );
    } catch (error) {
      queueMicrotask(() => handlers.onLost(error as Error, true));
      return () => {};
    }
    this.#streams++;
    let cancelled = false;
    let begun = false;
    let failure: Error | undefined;
    stream.on('response', (headers) => {
      begun = true;
      if (!cancelled) handlers.onHead(headers[':status'] ?? 0, headers);
    });
    stream.on('data', (chunk: Buffer) => {
      if (!cancelled) handlers.onData(chunk);
    });
    stream.on('error', (error) => {
      failure = error;
    });
    stream.on('close', () => {
      this.#streams--;
      if (!cancelled) this.#ended(stream, begun, failure, handlers);
      if (this.#retired && this.#streams === 0) this.close();
    });
    if (request.body !== undefined) stream.end(request.body);
    return () => {
      cancelled = true;
      stream.close(constants.NGHTTP2_CANCEL);
    };
  }

  #ended(
    stream: ClientHttp2Stream,
    begun: boolean,
    failure: Error | undefined,
    handlers: ExchangeHandlers,
  ): void {
    const code = stream.rstCode;
    if (begun && !failure && !this.#failure && code === constants.NGHTTP2_NO_ERROR) return handlers.onEnd();
    const id = stream.id;
    const untouched =
      code === constants.NGHTTP2_REFUSED_STREAM ||
      id === undefined ||
      (this.#lastSeenStream !== undefined && id > this.#lastSeenStream);
    const cause = this.#failure ?? failure;
    const why = cause ? cause.message : `the stream was reset with code ${code}`;
    handlers.onLost(new ConnectionLostError(`connection lost: ${why}`, cause && { cause }), untouched);
  }

  retire(graceMs: number): void {
    this.#retired = true;
    if (this.#streams === 0) return this.close();
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(graceMs, () => this.close());
  }

  close(error?: Error): void {
    this.#failure ??= error;
    this.#closed = true;
    this.#cancelTimer();
    this.#session.destroy(error);
  }

  #ping(): void {
    if (this.#closed || this.#session.destroyed) return;
    const cancel = this.#clock.after(pingAnswerMs, () => {
      this.close(
        new ConnectionLostError(`the API server did not answer a ping within ${pingAnswerMs / 1000} s`),
      );
    });
    this.#cancelTimer = cancel;
    this.#session.ping((error) => {
      cancel();
      if (error || this.#retired || this.#closed) return;
      this.#cancelTimer = this.#clock.after(pingEveryMs, () => this.#ping());
    });
  }
}
