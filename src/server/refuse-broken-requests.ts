/**
 * Answers what is no HTTP, is too large or comes too slowly, so that the client gets to read why.
 *
 * Closing a socket with unread bytes resets the connection, and a reset throws away what the client has not
 * read yet: the answer to headers without end would be lost whenever the client is still sending. So the
 * server ends its own side, then takes in and forgets what is sent for a while.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../concurrency/clock.ts';

/** How long, and how much of it, is taken in after a refusal. */
const linger = { ms: 2000, bytes: 16 * 1024 * 1024 };

const statusOf: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Makes `server` refuse broken requests with an answer that arrives. */
export function refuseBrokenRequests(server: Pick<Server, 'on'>, clock: Clock): void {
  const answering = new WeakMap<Duplex, ServerResponse>();
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    answering.set(socket, response);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const response = answering.get(socket);
    const isAnswering = response !== undefined && response.headersSent && !response.writableFinished;
    // Nobody is there any more, or a refusal would stand in the middle of another answer.
    if (!socket.writable || isAnswering) socket.destroy();
    else refuse(socket, statusOf[error.code ?? ''] ?? '400 Bad Request', clock);
  });
}

function refuse(socket: Duplex, status: string, clock: Clock): void {
  const cancel = clock.after(linger.ms, () => socket.destroy());
  socket.once('close', cancel);
  let left = linger.bytes;
  // The parser lets go of the socket when somebody else reads from it.
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) socket.destroy();
  });
  socket.once('end', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
