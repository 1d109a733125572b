/**
 * Finds who answers a request: a short list of routes by method and path, exact or below a prefix. Unknown
 * paths get 404, known ones with another method 405, as from a kubelet. An answer that fails becomes a 500
 * and a log line, never an unhandled error.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../telemetry/logger.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Aborted when the client goes away before the answer is complete. */
  readonly signal: AbortSignal;
}

export interface Route {
  /** `GET` answers HEAD as well; absent means any method. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Ends with a slash when it stands for everything below it. */
  readonly path: string;
  readonly answer: (exchange: Exchange) => void | Promise<void>;
}

/** Answers one request from `routes`; of several that match the longest path counts. */
export function createRouter(routes: readonly Route[], log: Logger) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const { path, query } = splitTarget(request.url ?? '/');
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? 'GET');
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the client has gone away')));
    const exchange: Exchange = { request, response, path, query, signal: gone.signal };

    const matching = routesFor(routes, path);
    const route = matching.find((candidate) => candidate.method === undefined || candidate.method === method);
    // What the client sends is not wanted; unread it would hold the connection.
    request.resume();
    if (route !== undefined) return void answer(route, exchange, log);
    if (matching.length === 0) return sendText(response, 404, '404: Page Not Found');
    const allowed = matching.map((candidate) => candidate.method);
    response.setHeader('allow', [...new Set(allowed)].join(', '));
    sendText(response, 405, '405: Method Not Allowed');
  };
}

/** A whole answer in plain text. */
export function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

async function answer(route: Route, exchange: Exchange, log: Logger): Promise<void> {
  const { response, path, signal } = exchange;
  try {
    await route.answer(exchange);
  } catch (error) {
    if (signal.aborted) return;
    log.error('Cannot answer a request', error, { path });
    // Half an answer cannot be taken back; a cut connection tells the client that it is not whole.
    if (response.headersSent) response.destroy();
    else sendText(response, 500, 'Internal Error: see the log of the kubelet');
  }
}

function routesFor(routes: readonly Route[], path: string): Route[] {
  const matching = routes.filter((route) =>
    route.path.endsWith('/') && route.path !== '/' ? path.startsWith(route.path) : path === route.path,
  );
  const longest = Math.max(0, ...matching.map((route) => route.path.length));
  return matching.filter((route) => route.path.length === longest);
}

/** Path and query of a request target, also of one in absolute form. */
function splitTarget(target: string): { path: string; query: URLSearchParams } {
  const local = target.replace(/^https?:\/\/[^/?]*/i, '');
  const at = local.indexOf('?');
  const path = at < 0 ? local : local.slice(0, at);
  return { path: path === '' ? '/' : path, query: new URLSearchParams(at < 0 ? '' : local.slice(at)) };
}
