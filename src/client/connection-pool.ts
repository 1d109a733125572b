/**
 * Keeps as many connections to one server as its limit of streams asks for, usually one.
 *
 * Guarantees: one attempt to connect at a time, with growing pauses between failures, so that hundreds of
 * callers put no more load on a server that is away than one would; watches never take the last streams of a
 * connection; when the identity changes (rotated certificate, other authority), new requests use a new
 * connection at once and old ones are closed within `retireMs`.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { ServerConnection } from './server-connection.ts';
import type { TlsIdentity } from './server-socket.ts';

export interface ConnectionPoolOptions {
  readonly connect: (identity: TlsIdentity, onClosed: () => void) => Promise<ServerConnection>;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Told of each outcome of connecting. */
  readonly onOutcome?: (error: unknown) => void;
}

const firstPauseMs = 100;
const longestPauseMs = 7000;
const retireMs = 10_000;
/** An additional connection without streams is closed after so long. */
const idleMs = 30_000;
/** Streams of each connection that watches leave free. */
const spareStreams = 8;

export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  #identity: TlsIdentity | undefined;
  #connections: ServerConnection[] = [];
  #attempt: Promise<void> | undefined;
  #failures = 0;
  #notBefore = 0;
  #closed = false;
  #cancelSweep: (() => void) | undefined;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
  }

  /** A connection with a free stream. Rejects with what kept it from connecting, or the signal's reason. */
  async acquire(
    kind: 'request' | 'watch',
    identity: TlsIdentity,
    signal: AbortSignal,
  ): Promise<ServerConnection> {
    if (identity !== this.#identity) {
      this.#identity = identity;
      for (const connection of this.#connections) connection.retire(retireMs);
    }
    for (;;) {
      signal.throwIfAborted();
      if (this.#closed) throw new Error('the API client has been closed');
      const free = this.#connections.find((connection) => hasRoom(connection, kind));
      if (free) return free;
      this.#attempt ??= this.#connect().finally(() => {
        this.#attempt = undefined;
      });
      await abortable(this.#attempt, signal);
    }
  }

  /** Ends everything under way. */
  close(): void {
    this.#closed = true;
    this.#cancelSweep?.();
    for (const connection of this.#connections) connection.close();
  }

  async #connect(): Promise<void> {
    const { clock, random, onOutcome } = this.#options;
    const pause = Math.min(this.#notBefore - clock.now(), longestPauseMs);
    if (pause > 0) await sleep(clock, pause);
    const identity = this.#identity!;
    try {
      let connection: ServerConnection | undefined;
      let ended = false;
      connection = await this.#options.connect(identity, () => {
        ended = true;
        this.#connections = this.#connections.filter((other) => other !== connection);
      });
      this.#failures = 0;
      this.#notBefore = 0;
      onOutcome?.(undefined);
      if (this.#closed || identity !== this.#identity) return connection.close();
      if (!ended) this.#connections.push(connection);
      if (this.#connections.length > 1) this.#cancelSweep ??= clock.after(idleMs, () => this.#sweep());
    } catch (error) {
      const full = Math.min(firstPauseMs * 2 ** this.#failures++, longestPauseMs);
      this.#notBefore = clock.now() + full * (0.5 + random() / 2);
      onOutcome?.(error);
      throw error;
    }
  }

  /** Closes additional connections that nothing uses. */
  #sweep(): void {
    this.#cancelSweep = undefined;
    for (const connection of this.#connections.slice(1))
      if (connection.streams === 0) connection.retire(retireMs);
    if (this.#connections.length > 1)
      this.#cancelSweep = this.#options.clock.after(idleMs, () => this.#sweep());
  }
}

function hasRoom(connection: ServerConnection, kind: 'request' | 'watch'): boolean {
  const { maxStreams, streams, open } = connection;
  const spare = kind === 'watch' ? Math.min(spareStreams, Math.floor(maxStreams / 4)) : 0;
  return open && streams < Math.max(1, maxStreams - spare);
}

/** The promise's outcome, or the signal's reason as soon as it aborts. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
