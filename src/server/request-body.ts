/**
 * What clients send with a request: read by who wants it, up to a limit, and never for nothing. A body that
 * nobody reads is not taken from the wire, and does not hold the connection once the answer is given.
 */
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import { BodyTooLargeError } from './route.ts';

export type AnyRequest = IncomingMessage | Http2ServerRequest;

/** More than any endpoint of a node needs, bytes. */
const defaultLimit = 64 * 1024;

/** Whether more than headers may come. */
export function hasBody(request: AnyRequest): boolean {
  if ('stream' in request) return !request.stream.endAfterHeaders;
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  return encoding !== undefined || (length !== undefined && length !== '0');
}

/** The whole body. Rejects with {@link BodyTooLargeError} beyond `limit` bytes, and reads no further. */
export function limitedBody(request: AnyRequest, limit = defaultLimit): Promise<Buffer> {
  // What has no body has been read to its end already.
  if (!hasBody(request)) return Promise.resolve(Buffer.alloc(0));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const refuse = () => {
      request.pause();
      reject(new BodyTooLargeError(`at most ${limit} bytes are taken here`));
    };
    if (Number(request.headers['content-length'] ?? 0) > limit) return refuse();
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) refuse();
      else chunks.push(chunk);
    });
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', reject);
    request.once('close', () => reject(new Error('the client has gone away')));
  });
}

/** The answer is complete: whatever the client still sends is not waited for. */
export function stopReading(request: AnyRequest): void {
  if (request.complete || !hasBody(request)) return;
  if ('stream' in request) request.stream.close(0);
  else request.socket.end(() => request.socket.destroy());
}
