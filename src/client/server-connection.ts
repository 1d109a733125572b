/** One connection to the API server, whatever HTTP version it speaks. */
import type { IncomingHttpHeaders } from 'node:http';

export interface WireRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Buffer;
}

/** After `onEnd` or `onLost`, of which exactly one comes unless the exchange is cancelled, nothing follows. */
export interface ExchangeHandlers {
  onHead(status: number, headers: IncomingHttpHeaders): void;
  onData(chunk: Buffer): void;
  onEnd(): void;
  /** `untouched`: the server says it has not looked at the request, so it may be sent again. */
  onLost(error: Error, untouched: boolean): void;
}

export interface ServerConnection {
  /** New requests may be sent. */
  readonly open: boolean;
  /** Requests and watches under way. */
  readonly streams: number;
  /** How many the server allows at once. */
  readonly maxStreams: number;
  /** The returned function cancels. */
  send(request: WireRequest, handlers: ExchangeHandlers): () => void;
  /** Takes nothing new; closes when what is under way has ended, or after `graceMs`. */
  retire(graceMs: number): void;
  close(error?: Error): void;
}

/** The connection has ended; what was under way got no (whole) answer. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
}
