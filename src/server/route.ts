/**
 * What an endpoint of the node's API is: a method, a path, and who answers. The servers are given a list of
 * routes; rooms that this one does not know (logs, statistics, streams) offer plain functions, and the agent
 * makes routes of them.
 *
 * **How to add an endpoint.** Write the handler in its own room against the part of {@link Exchange} that it
 * needs, add a {@link NodeRoute} where the agent lists them (`src/agent/node-routes.ts`), and a row to
 * `docs/node-api.md`. Who may use it follows from its path (`access.ts`): a path that is not named there needs
 * `nodes/proxy`, so a new endpoint is never open by mistake. Authentication, authorization, limits, HEAD,
 * the client's leaving and errors are taken care of before and around the handler.
 */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Who asks. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** A request that has been found to be allowed. */
export interface Question {
  /** As sent; `HEAD` reaches the handlers of GET. */
  readonly method: string;
  /** Decoded, without the query. Never holds `.`, `..`, empty segments or NUL. */
  readonly path: string;
  /** What stood at the `{name}` of the route's path, decoded. */
  readonly parameters: Readonly<Record<string, string>>;
  /** What followed a route's path that ends with a slash, decoded; else empty. */
  readonly rest: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Undefined on a port that asks nobody who they are. */
  readonly user: User | undefined;
  /** Aborts when the client goes away before the answer is complete. */
  readonly signal: AbortSignal;
}

/** A question that gets an HTTP answer; over HTTP/2 as well, where `response` behaves the same. */
export interface Exchange extends Question {
  readonly response: ServerResponse;
  /** What the client sends. Rejects with {@link BodyTooLargeError} beyond `limit` bytes (64 KiB by default). */
  readonly body: (limit?: number) => Promise<Buffer>;
}

/** A question that goes on as something else than HTTP: SPDY or a WebSocket. */
export interface Upgrade extends Question {
  /** As it came, with the case of its headers kept, for who passes it on byte for byte. */
  readonly rawHeaders: readonly string[];
  /** Target as sent, with query. */
  readonly target: string;
  /** Nothing has been written to it yet, and nobody listens to it. The handler owns it and ends it. */
  readonly socket: Duplex;
  /** What the client has sent already after its headers; belongs before what `socket` gives. */
  readonly head: Buffer;
  /** Answers in HTTP instead, and ends the connection. */
  readonly refuse: (status: number, text: string, headers?: Readonly<Record<string, string>>) => void;
}

export interface NodeRoute {
  /** `GET` answers HEAD as well; absent means any method. */
  readonly methods?: readonly Method[];
  /**
   * `/stats/summary`; `/exec/{podNamespace}/{podID}/{containerName}`, where `{…}` stands for one segment;
   * with a slash at its end for everything below as well: `/logs/`.
   */
  readonly path: string;
  /** Also served on the port without authentication. */
  readonly readOnly?: boolean;
  /** Gone, with 405, where `enableDebuggingHandlers` is off. */
  readonly debugging?: boolean;
  /** A rejection becomes a 500 and a line in the log; what an answer is half of is cut off. */
  handle(exchange: Exchange): void | Promise<void>;
  /** Without it, a wish for another protocol is passed over and `handle` answers. A rejection ends the socket. */
  upgrade?(upgrade: Upgrade): void | Promise<void>;
}

/** The client sent more than anybody wants to read. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
}
