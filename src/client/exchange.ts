/**
 * One request and its answer on one connection: collects the body up to a limit and unpacks it, or hands a
 * watch's bytes on as they come.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { createGunzip, gunzip } from 'node:zlib';
import type { ServerConnection, WireRequest } from './server-connection.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Unpacked; empty for a watch, whose bytes went to its sink. */
  readonly body: Buffer;
}

export interface ExchangeOptions {
  readonly signal: AbortSignal;
  /** Most bytes of a body, packed or not. */
  readonly limit: number;
  /** Takes the bytes of a 2xx answer; what it throws ends the exchange. */
  readonly sink?: { begin(): void; push(chunk: Buffer): void };
}

/** No whole answer came. */
export class LostExchangeError extends Error {
  override readonly name = 'LostExchangeError';
  /** The server has not looked at the request. */
  readonly untouched: boolean;
  constructor(cause: Error, untouched: boolean) {
    super(cause.message, { cause });
    this.untouched = untouched;
  }
}

/** The answer is larger than this client takes. */
export class AnswerTooLargeError extends Error {
  override readonly name = 'AnswerTooLargeError';
}

/**
 * Rejects with {@link LostExchangeError}, {@link AnswerTooLargeError}, the signal's reason, or what the sink
 * threw. A watch whose connection is lost after it began has ended, which is no error.
 */
export function exchange(
  connection: ServerConnection,
  request: WireRequest,
  { signal, limit, sink }: ExchangeOptions,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    let status = 0;
    let headers: IncomingHttpHeaders = {};
    let chunks: Buffer[] = [];
    let size = 0;
    let deliver: ((chunk: Buffer) => void) | undefined;
    const stop = (error: unknown) => {
      signal.removeEventListener('abort', onAbort);
      cancel();
      reject(error);
    };
    const onAbort = () => stop(signal.reason);
    const finish = () => {
      signal.removeEventListener('abort', onAbort);
      if (deliver) return resolve({ status, headers, body: Buffer.alloc(0) });
      const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
      chunks = [];
      unpack(body, headers, limit).then((plain) => resolve({ status, headers, body: plain }), reject);
    };
    const cancel = connection.send(request, {
      onHead(code, received) {
        status = code;
        headers = received;
        if (!sink || status < 200 || status > 299) return;
        const push = (chunk: Buffer) => {
          try {
            sink.push(chunk);
          } catch (error) {
            stop(error);
          }
        };
        deliver = isPacked(headers) ? unpacking(push, stop) : push;
        sink.begin();
      },
      onData(chunk) {
        if (deliver) return deliver(chunk);
        size += chunk.length;
        if (size > limit) stop(tooLarge(limit));
        else chunks.push(chunk);
      },
      onEnd: finish,
      onLost(error, untouched) {
        if (deliver) return finish();
        signal.removeEventListener('abort', onAbort);
        reject(new LostExchangeError(error, untouched));
      },
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

function isPacked(headers: IncomingHttpHeaders): boolean {
  return headers['content-encoding']?.toLowerCase() === 'gzip';
}

function unpacking(push: (chunk: Buffer) => void, fail: (error: unknown) => void): (chunk: Buffer) => void {
  const stream = createGunzip();
  stream.on('data', push);
  stream.on('error', fail);
  return (chunk) => stream.write(chunk);
}

function unpack(body: Buffer, headers: IncomingHttpHeaders, limit: number): Promise<Buffer> {
  if (!isPacked(headers) || body.length === 0) return Promise.resolve(body);
  return new Promise((resolve, reject) => {
    gunzip(body, { maxOutputLength: limit }, (error, plain) => {
      if (!error) resolve(plain);
      else if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') reject(tooLarge(limit));
      else reject(new LostExchangeError(error, false));
    });
  });
}

function tooLarge(limit: number): AnswerTooLargeError {
  return new AnswerTooLargeError(`the answer is larger than ${Math.round(limit / 1024 / 1024)} MiB`);
}
