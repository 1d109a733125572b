/**
 * Joins a client that asked for an upgrade with the runtime's streaming server. The request's head goes there
 * as it came, but for its target, its host and what would tell the runtime the client's secrets; from then on
 * bytes pass both ways unread, no faster than the other side takes them, the runtime's answer included. So
 * whatever the two speak (SPDY, WebSocket of any version) is between them, and a runtime's refusal reaches the
 * client as it is.
 *
 * When one side ends or vanishes, what it sent is delivered and the other side is let go of: nothing stays.
 */
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../concurrency/clock.ts';

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

/** Secrets of the client, and what belongs to the former connection alone. */
const notForwarded = new Set(['host', 'authorization', 'cookie', 'proxy-authorization']);

/**
 * Resolves when both sides are gone. Rejects with {@link StreamUnreachableError} and leaves the client alone
 * when there is nobody to join it with.
 */
export async function proxyStream(stream: ProxiedStream): Promise<void> {
  const { client, head, url } = stream;
  const runtime = await reach(stream);
  // As it came: Node reads and writes the bytes of headers one to one in this encoding.
  runtime.write(requestHead(stream, url), 'latin1');
  if (head.length > 0) runtime.write(head);
  await join(runtime, stream, client);
}

function reach({ client, url, clock }: ProxiedStream): Promise<Duplex> {
  if (url.protocol !== 'http:') {
    throw new StreamUnreachableError(
      `the runtime's streaming server speaks ${url.protocol}, only http: is known`,
    );
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
      reject(
        new StreamUnreachableError(
          `cannot reach the runtime's streaming server at ${url.host}: ${error.message}`,
          {
            cause: error,
          },
        ),
      );
    };
    const onGone = (): void => settle(new Error('the client has gone away'));
    const cancel = clock.after(connectMs, () => settle(new Error(`no answer within ${connectMs / 1000} s`)));
    socket.once('connect', () => settle()).once('error', settle);
    client.once('close', onGone);
    if (client.destroyed) onGone();
  });
}

function requestHead({ method, rawHeaders }: ProxiedStream, url: URL): string {
  const lines = [`${method} ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (!notForwarded.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[index + 1]}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function join(runtime: Duplex, { idleMs, clock }: ProxiedStream, client: Duplex): Promise<void> {
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
    const onEnd = (other: Duplex) => (): void => {
      if (isEnding) return;
      isEnding = true;
      cancelTimer();
      cancelTimer = clock.after(lingerMs, destroy);
      other.once('finish', destroy);
      if (other.writableFinished || other.destroyed) destroy();
    };
    const onClose = (): void => {
      // Neither side is of use without the other.
      if (!isEnding) destroy();
      if (!client.closed || !runtime.closed) return;
      cancelTimer();
      resolve();
    };
    for (const [from, to] of [
      [client, runtime],
      [runtime, client],
    ] as const) {
      from.on('data', moved);
      from.on('error', destroy);
      from.once('end', onEnd(to));
      from.once('close', onClose);
      from.pipe(to);
    }
    if (idleMs > 0) watchIdle();
    if (client.destroyed || runtime.destroyed) destroy();
    if (client.closed && runtime.closed) resolve();
  });
}
