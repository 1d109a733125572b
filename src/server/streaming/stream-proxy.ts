/**
 * Joins a client that asked for an upgrade with the runtime's streaming server. The request's head goes there
 * as it came, but for its target, its host and what would tell the runtime the client's secrets; from then on
 * bytes pass both ways unread, no faster than the other side takes them, the runtime's answer included. So
 * whatever the two speak (SPDY, WebSocket of any version) is between them, and a runtime's refusal reaches the
 * client as it is.
 *
 * The WebSockets that an API server of 1.36 passes on are translated for the runtime instead.
 *
 * When one side ends or vanishes, what it sent is delivered and the other side is let go of: nothing stays.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../concurrency/clock.ts';
import { StreamRefusal } from './stream-request.ts';
import type { Translation } from './stream-translation.ts';
import { acceptance } from './websocket-frames.ts';

export interface ProxiedStream {
  /** Owned from here on. */
  readonly client: Duplex;
  /** What the client has sent after its head. */
  readonly head: Buffer;
  readonly method: string;
  readonly rawHeaders: readonly string[];
  /** Where the runtime waits for it: `http://127.0.0.1:39871/exec/…`. */
  readonly url: URL;
  /** Both sides are let go of when nothing has passed for this long; 0: never. Milliseconds. */
  readonly idleMs: number;
  readonly clock: Clock;
}

/** The runtime's streaming server cannot be reached; nothing has been written to the client yet. */
export class StreamUnreachableError extends Error {
  override readonly name = 'StreamUnreachableError';
}

const connectMs = 10_000;
/** A side that is being let go of has this long to take what is left for it. */
const lingerMs = 10_000;
const longestRefusal = 64 * 1024;

/** Secrets of the client, and what belongs to the former connection alone. */
const notForwarded = new Set(['host', 'authorization', 'cookie', 'proxy-authorization']);

/**
 * Resolves when both sides are gone. Rejects with {@link StreamUnreachableError} and leaves the client alone
 * when there is nobody to join it with.
 */
export async function proxyStream(stream: ProxiedStream): Promise<void> {
  const { head, url } = stream;
  const runtime = await reach(stream);
  // As it came: Node reads and writes the bytes of headers one to one in this encoding.
  runtime.write(requestHead(stream, url), 'latin1');
  if (head.length > 0) runtime.write(head);
  await join(runtime, stream);
}

/** How a WebSocket is granted, and what the runtime is asked for in its place. */
export interface TranslatedStream extends ProxiedStream {
  /** `Sec-WebSocket-Key` of the client. */
  readonly key: string;
  /** The protocol that is spoken with the client. */
  readonly protocol: string;
  /** The protocol that is spoken with the runtime, over SPDY. */
  readonly runtimeProtocol: string;
  readonly translation: Translation;
}

/** As {@link proxyStream}; what the runtime refuses rejects with a {@link StreamRefusal}. */
export async function translateStream(stream: TranslatedStream): Promise<void> {
  const { client, head, key, protocol, translation } = stream;
  const runtime = await upgraded(stream);
  if (client.destroyed) return void runtime.destroy();
  client.write(acceptance(key, protocol));
  runtime.write(translation.opening);
  if (head.length > 0) translation.toRuntime.write(head);
  await join(runtime, stream, translation);
}

/** A connection with the runtime that speaks SPDY. */
function upgraded({ client, url, runtimeProtocol, clock }: TranslatedStream): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    if (url.protocol !== 'http:') throw unknownProtocol(url);
    const headers = {
      connection: 'Upgrade',
      upgrade: 'SPDY/3.1',
      'x-stream-protocol-version': runtimeProtocol,
    };
    const request = httpRequest(url, { method: 'POST', headers, agent: false });
    const fail = (cause: Error): void => reject(unreachable(url, cause));
    const onGone = (): void => void request.destroy(new Error('the client has gone away'));
    const cancel = clock.after(connectMs, () => {
      request.destroy(new Error(`no answer within ${connectMs / 1000} s`));
    });
    const settle = (): void => {
      cancel();
      client.off('close', onGone);
    };
    request.on('close', settle).on('error', fail);
    request.on('upgrade', (_response, socket, head) => {
      settle();
      socket.on('error', () => {});
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.on('response', (response) => {
      refusal(response).then(reject, fail);
    });
    client.once('close', onGone);
    if (client.destroyed) onGone();
    request.end();
  });
}

/** What the runtime answers in place of a stream, its text cut off where it becomes a book. */
async function refusal(response: IncomingMessage): Promise<StreamRefusal> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    pieces.push(piece);
    size += piece.length;
    if (size > longestRefusal) break;
  }
  const text = Buffer.concat(pieces).subarray(0, longestRefusal).toString();
  const status = response.statusCode ?? 500;
  return new StreamRefusal(status >= 400 ? status : 500, text);
}

function reach({ client, url, clock }: ProxiedStream): Promise<Duplex> {
  if (url.protocol !== 'http:') {
    throw unknownProtocol(url);
  }
  const { hostname, port } = url;
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || 80),
      noDelay: true,
      allowHalfOpen: true,
    });
    const settle = (error?: Error): void => {
      cancel();
      client.off('close', onGone);
      socket.off('error', settle);
      if (!error) return resolve(socket);
      socket.on('error', () => {}).destroy();
      reject(unreachable(url, error));
    };
    const onGone = (): void => settle(new Error('the client has gone away'));
    const cancel = clock.after(connectMs, () => settle(new Error(`no answer within ${connectMs / 1000} s`)));
    socket.once('connect', () => settle()).once('error', settle);
    client.once('close', onGone);
    if (client.destroyed) onGone();
  });
}

const unknownProtocol = (url: URL): Error =>
  new StreamUnreachableError(`the runtime's streaming server speaks ${url.protocol}, only http: is known`);

const unreachable = (url: URL, cause: Error): Error =>
  new StreamUnreachableError(`cannot reach the runtime's streaming server at ${url.host}: ${cause.message}`, {
    cause,
  });

function requestHead({ method, rawHeaders }: ProxiedStream, url: URL): string {
  const lines = [`${method} ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (!notForwarded.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[index + 1]}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function join(
  runtime: Duplex,
  { client, idleMs, clock }: ProxiedStream,
  translation?: Translation,
): Promise<void> {
  return new Promise((resolve) => {
    let lastMoved = clock.now();
    let cancelTimer = (): void => {};
    const moved = (): void => {
      lastMoved = clock.now();
    };
    const destroy = (): void => {
      client.destroy();
      runtime.destroy();
    };
    const watchIdle = (): void => {
      const left = lastMoved + idleMs - clock.now();
      if (left <= 0) return destroy();
      cancelTimer = clock.after(left, watchIdle);
    };
    // The first side that ends, ends the whole; the other gets what is still on its way to it.
    let isEnding = false;
    let isDelivering = false;
    const begin = (): void => {
      if (isEnding) return;
      isEnding = true;
      cancelTimer();
      cancelTimer = clock.after(lingerMs, destroy);
    };
    const onEnd = (other: Duplex) => (): void => {
      begin();
      if (isDelivering) return;
      isDelivering = true;
      const onDelivered = (): void => (other === client ? leave() : destroy());
      other.once('finish', onDelivered);
      if (other.destroyed) destroy();
      else if (other.writableFinished) onDelivered();
    };
    // A connection that is closed while its other side still sends is reset, and may lose what it was sent last.
    const leave = (): void => {
      runtime.destroy();
      if (client.readableEnded) return destroy();
      client.unpipe().once('end', destroy).resume();
    };
    const onClose = (): void => {
      // Neither side is of use without the other.
      if (!isEnding) destroy();
      if (!client.closed || !runtime.closed) return;
      cancelTimer();
      resolve();
    };
    for (const [from, to, through] of [
      [client, runtime, translation?.toRuntime],
      [runtime, client, translation?.toClient],
    ] as const) {
      from.on('data', moved);
      // Who has said all may be deaf to what it is still told.
      from.on('error', () => void (from.readableEnded || destroy()));
      from.once('end', begin);
      from.once('close', onClose);
      const last = through ? from.pipe(through) : from;
      through?.on('error', destroy);
      last.once('end', onEnd(to));
      last.pipe(to);
    }
    if (idleMs > 0) watchIdle();
    if (client.destroyed || runtime.destroyed) destroy();
    if (client.closed && runtime.closed) resolve();
  });
}
