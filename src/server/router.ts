/**
 * Takes a request from the wire to its route: reads the target, asks whether it is allowed, finds who answers,
 * and sees to it that every request gets exactly one answer. Unknown paths get 404, known ones with another
 * method 405, as from a kubelet. A handler that fails becomes a 500 and a line in the log.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Logger } from '../telemetry/logger.ts';
import { type AnyRequest, hasBody, limitedBody, stopReading } from './request-body.ts';
import { parseTarget, type RequestTarget } from './request-target.ts';
import { BodyTooLargeError, type Exchange, type NodeRoute, type Question, type User } from './route.ts';
import { type Finding, type FoundRoute, RouteTable } from './route-table.ts';

/** What stands before the routes: nobody gets past it unless they may. */
export interface Admission {
  /** Who asks, or the answer that turns them away. Never rejects. */
  admit(
    request: AnyRequest,
    target: RequestTarget,
    signal: AbortSignal,
  ): Promise<{ readonly user: User } | Refusal>;
}

export interface Refusal {
  readonly status: number;
  readonly text: string;
}

export interface Router {
  request(request: AnyRequest, response: ServerResponse | Http2ServerResponse): void;
  /** Whether the wish for another protocol is one that a route can grant. */
  upgrades(request: IncomingMessage): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

export interface RouterOptions {
  readonly routes: readonly NodeRoute[];
  /** Without it everybody may ask everything there is. */
  readonly admission?: Admission;
  /** Told of each request before it is looked at; its answer is called when the request is over. */
  readonly meter?: (request: AnyRequest) => () => void;
  readonly log: Logger;
}

const malformed: Refusal = {
  status: 400,
  text: '400 Bad Request: the path is not encoded as it should be\n',
};

export function createRouter({ routes, admission, meter, log }: RouterOptions): Router {
  const table = new RouteTable(routes);
  const admit = async (request: AnyRequest, target: RequestTarget, signal: AbortSignal) =>
    admission ? await admission.admit(request, target, signal) : { user: undefined };

  async function serve(request: AnyRequest, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the client has gone away')));
    // Clients leave in the middle of things; that is no trouble of ours.
    request.on('error', () => {});
    response.on('error', () => {});
    response.once('finish', () => stopReading(request));
    const target = parseTarget(request.url ?? '/');
    if (!target) return sendRefusal(response, malformed);
    if (!hasBody(request)) request.resume();
    const path = target.path;
    try {
      const admitted = await admit(request, target, gone.signal);
      if (gone.signal.aborted) return;
      if ('status' in admitted) return sendRefusal(response, admitted);
      const found = table.find(request.method ?? '', target);
      if (!isRoute(found)) return sendNotFound(response, found);
      const exchange: Exchange = {
        ...question(request, target, found),
        user: admitted.user,
        signal: gone.signal,
        response,
        body: (limit) => limitedBody(request, limit),
      };
      await found.route.handle(exchange);
    } catch (error) {
      if (gone.signal.aborted) return;
      if (error instanceof BodyTooLargeError && !response.headersSent) {
        return sendText(response, 413, `413 Content Too Large: ${error.message}\n`);
      }
      log.error('Cannot answer a request', error, { path });
      // Half an answer cannot be taken back; a cut connection tells the client that it is not whole.
      if (response.headersSent) response.destroy();
      else sendText(response, 500, 'Internal Error: see the log of the kubelet');
    }
  }

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const gone = new AbortController();
    socket.on('error', () => {});
    socket.once('close', () => gone.abort(new Error('the client has gone away')));
    const refuse = (status: number, text: string, headers: Readonly<Record<string, string>> = {}) =>
      refuseUpgrade(request, socket, (response) => {
        for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
        sendText(response, status, text);
      });
    const target = parseTarget(request.url ?? '/');
    if (!target) return refuse(malformed.status, malformed.text);
    const path = target.path;
    try {
      const admitted = await admit(request, target, gone.signal);
      if (gone.signal.aborted) return;
      if ('status' in admitted) return refuse(admitted.status, admitted.text);
      const found = table.find(request.method ?? '', target);
      if (!isRoute(found)) {
        refuseUpgrade(request, socket, (response) => sendNotFound(response, found));
        return;
      }
      await found.route.upgrade?.({
        ...question(request, target, found),
        user: admitted.user,
        signal: gone.signal,
        rawHeaders: request.rawHeaders,
        target: request.url ?? '/',
        socket,
        head,
        refuse,
      });
    } catch (error) {
      if (!gone.signal.aborted) log.error('Cannot go on with an upgraded request', error, { path });
      socket.destroy();
    }
  }

  return {
    request: (request, response) => {
      const end = meter?.(request);
      if (end) response.once('close', end);
      void serve(request, response as ServerResponse);
    },
    upgrades: (request) => {
      const target = parseTarget(request.url ?? '/');
      const found = target && table.find(request.method ?? '', target);
      return isRoute(found) && found.route.upgrade !== undefined;
    },
    upgrade: (request, socket, head) => {
      const end = meter?.(request);
      if (end) socket.once('close', end);
      void upgrade(request, socket, head);
    },
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

function question(
  request: AnyRequest,
  { path, query }: RequestTarget,
  { parameters, rest }: FoundRoute,
): Pick<Question, 'method' | 'path' | 'parameters' | 'rest' | 'query' | 'headers'> {
  return { method: request.method ?? '', path, parameters, rest, query, headers: request.headers };
}

const isRoute = (finding: Finding): finding is FoundRoute => finding !== undefined && 'route' in finding;

const sendRefusal = (response: ServerResponse, { status, text }: Refusal) => sendText(response, status, text);

function sendNotFound(response: ServerResponse, finding: Exclude<Finding, FoundRoute>): void {
  if (!finding) return sendText(response, 404, '404: Page Not Found');
  response.setHeader('allow', finding.allow.join(', '));
  sendText(response, 405, '405: Method Not Allowed');
}

/** An answer in HTTP on a socket that Node has let go of, after which the connection ends. */
function refuseUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  answer: (response: ServerResponse) => void,
): void {
  const { ServerResponse: Response } = process.getBuiltinModule('node:http');
  const response = new Response(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0]);
  response.on('error', () => {});
  response.once('finish', () => socket.end(() => socket.destroy()));
  answer(response);
}
