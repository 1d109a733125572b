/** WebSockets that are translated for the runtime: through a node of its own to a streaming server that speaks SPDY. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../../concurrency/clock.ts';
import { settle } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { maskedFrame } from '../fixtures/masked-frame.ts';
import { createRouter } from '../router.ts';
import { dataFrame, SpdyReader } from './spdy-frames.ts';
import { streamingRoutes } from './streaming-routes.ts';
import { Opcode } from './websocket-frames.ts';

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0)) await undo();
});

const goAway = Buffer.from('8003000700000008' + '00'.repeat(8), 'hex');
const ping = Buffer.from('800300060000000400000002', 'hex');

/** What came to the runtime on each stream, and a way to answer. */
class RuntimeStream {
  head = '';
  readonly data = new Map<number, Buffer[]>();
  readonly ended: number[] = [];
  opened = 0;
  isGone = false;
  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  text(stream: number): string {
    return Buffer.concat(this.data.get(stream) ?? []).toString();
  }
}

/** A node in front of a runtime that grants SPDY, or gives `refusal` instead. */
async function node({ refusal = '', tty = false } = {}) {
  const streams: RuntimeStream[] = [];
  const runtime = createTcpServer({ allowHalfOpen: true }, (socket) => {
    const stream = new RuntimeStream(socket);
    cleanUp.push(() => socket.destroy());
    socket.on('error', () => {}).on('close', () => void (stream.isGone = true));
    const reader = new SpdyReader({
      data: (id, piece) => void stream.data.set(id, [...(stream.data.get(id) ?? []), Buffer.from(piece)]),
      end: (id) => void stream.ended.push(id),
      pong: () => {},
      goAway: () => {},
    });
    socket.on('data', (chunk: Buffer) => {
      if (stream.head !== '') return reader.read(chunk);
      stream.head = chunk.toString('latin1');
      if (refusal !== '') return void socket.end(refusal);
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
      streams.push(stream);
    });
    socket.on('end', () => socket.end());
  });
  runtime.listen(0, '127.0.0.1');
  await once(runtime, 'listening');
  cleanUp.push(() => runtime.close());
  const url = `http://127.0.0.1:${(runtime.address() as AddressInfo).port}/exec/token`;
  const answer = async () => url;
  const routes = streamingRoutes({
    pod: () => ({ uid: 'u', running: () => 'c', hasTerminal: () => tty, sandbox: () => 's' }),
    runtime: { exec: answer, attach: answer, portForward: answer, run: async () => Buffer.alloc(0) },
    idleMs: 0,
    translates: true,
    clock: systemClock,
  });
  const router = createRouter({ routes, log: silentLogger });
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    cleanUp.push(() => socket.destroy());
    router.upgrade(request, socket, head);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp.push(() => server.close());
  return { streams, port: (server.address() as AddressInfo).port };
}

/** A WebSocket's client: messages by their first byte, and how it was closed. */
class Client {
  readonly messages: [channel: number, text: string][] = [];
  readonly pongs: string[] = [];
  readonly protocol: string;
  closeCode: number | undefined;
  isGone = false;
  readonly socket: Socket;
  #rest = Buffer.alloc(0);

  constructor(socket: Socket, head: Buffer, protocol: string) {
    this.socket = socket;
    this.protocol = protocol;
    socket.on('error', () => {}).on('close', () => void (this.isGone = true));
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    this.#read(head);
  }

  send(channel: number, text: string): void {
    this.socket.write(maskedFrame(Opcode.binary, Buffer.concat([Buffer.from([channel]), Buffer.from(text)])));
  }

  of(channel: number): string {
    return this.messages
      .filter(([from]) => from === channel)
      .map(([, text]) => text)
      .join('');
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 2) {
      const short = this.#rest[1]! & 0x7f;
      const start = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (this.#rest.length < start) return;
      const length =
        start === 2
          ? short
          : start === 4
            ? this.#rest.readUInt16BE(2)
            : Number(this.#rest.readBigUInt64BE(2));
      if (this.#rest.length < start + length) return;
      const payload = this.#rest.subarray(start, start + length);
      const opcode = this.#rest[0]! & 0x0f;
      this.#rest = this.#rest.subarray(start + length);
      if (opcode === Opcode.close) this.closeCode = payload.readUInt16BE(0);
      else if (opcode === Opcode.pong) this.pongs.push(payload.toString());
      else this.messages.push([payload[0]!, payload.subarray(1).toString('latin1')]);
    }
  }
}

function open(port: number, path: string, protocol = 'v5.channel.k8s.io'): Promise<Client> {
  return new Promise((resolve, reject) => {
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-protocol': protocol,
    };
    const request = httpRequest({ port, path, headers, agent: false });
    request.on('error', reject).on('response', (response: IncomingMessage) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk));
      response.on('end', () => reject(new Error(`${response.statusCode} ${text}`)));
    });
    request.on('upgrade', (response, socket: Socket, head) => {
      cleanUp.push(() => socket.destroy());
      resolve(new Client(socket, head, String(response.headers['sec-websocket-protocol'])));
    });
    request.end();
  });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await settle();
}

const exec = '/exec/shop/web/main?command=sh&input=1&output=1&error=1';

describe('WebSockets that are translated for the runtime', { timeout: 30_000 }, () => {
  it('carry every stream of a command, the end of its input, and how it ended', async () => {
    const { port, streams } = await node();
    const client = await open(port, exec);
    assert.equal(client.protocol, 'v5.channel.k8s.io');
    const runtime = streams[0]!;
    assert.match(runtime.head, /^POST \/exec\/token HTTP\/1\.1\r\n/);
    assert.match(runtime.head, /\r\nx-stream-protocol-version: v4\.channel\.k8s\.io\r\n/i);
    await until(() => client.messages.length > 0);
    assert.deepEqual(client.messages, [[1, '']]);
    client.send(0, 'to ');
    client.send(0, 'be read');
    // Size of a terminal that is none, and a channel that is no input.
    client.send(4, '{"Width":80,"Height":24}');
    client.send(1, 'nonsense');
    client.send(255, '\0');
    client.send(0, 'too late');
    client.socket.write(maskedFrame(Opcode.ping, Buffer.from('there?')));
    // error 1, stdin 3, stdout 5, stderr 7
    await until(() => runtime.ended.length > 0 && client.pongs.length > 0);
    assert.deepEqual([runtime.text(3), runtime.ended, [...runtime.data.keys()]], ['to be read', [3], [3]]);
    assert.deepEqual(client.pongs, ['there?']);
    runtime.socket.write(
      Buffer.concat([ping, dataFrame(5, Buffer.from('out')), dataFrame(7, Buffer.from('err'))]),
    );
    const status = '{"metadata":{},"status":"Success"}';
    runtime.socket.write(Buffer.concat([dataFrame(1, Buffer.from(status)), goAway]));
    await until(() => client.isGone);
    assert.deepEqual([client.of(1), client.of(2), client.of(3)], ['out', 'err', status]);
    assert.equal(client.closeCode, 1000);
    await until(() => runtime.isGone);
  });

  it('end when all streams have, without a farewell of the runtime', async () => {
    const { port, streams } = await node();
    const client = await open(port, exec.replace('&input=1', ''));
    const last = (stream: number, text: string) => dataFrame(stream, Buffer.from(text), { last: true });
    streams[0]!.socket.write(Buffer.concat([last(3, 'o'), last(1, '{"status":"Failure"}')]));
    await until(() => client.of(3) !== '');
    assert.equal(client.closeCode, undefined);
    streams[0]!.socket.write(last(5, 'e'));
    await until(() => client.isGone);
    assert.deepEqual([client.of(1), client.of(2), client.closeCode], ['o', 'e', 1000]);
  });

  it('tell a terminal its size, over one output', async () => {
    const { port, streams } = await node({ tty: true });
    const client = await open(port, '/attach/shop/web/main?input=1&output=1&error=1');
    client.send(4, '{"Width":80,"Height":24}');
    // error 1, stdin 3, stdout 5, resize 7
    await until(() => streams[0]!.text(7) !== '');
    assert.equal(streams[0]!.text(7), '{"Width":80,"Height":24}');
  });

  it('say so when the runtime goes without a word', async () => {
    const { port, streams } = await node();
    const client = await open(port, exec);
    streams[0]!.socket.end();
    await until(() => client.isGone);
    const { status, reason } = JSON.parse(client.of(3)) as { status: string; reason: string };
    assert.deepEqual([status, reason, client.closeCode], ['Failure', 'InternalError', 1000]);
  });

  it('let go of the runtime when the client leaves, vanishes or breaks the protocol', async () => {
    const { port, streams } = await node();
    const leaving = await open(port, exec);
    leaving.socket.write(maskedFrame(Opcode.close, Buffer.from([3, 232])));
    const vanishing = await open(port, exec);
    vanishing.socket.resetAndDestroy();
    const breaking = await open(port, exec);
    breaking.socket.write('this is no frame');
    await until(() => streams.length === 3 && streams.every(({ isGone }) => isGone));
    await until(() => breaking.isGone);
    assert.equal(breaking.closeCode, 1002);
  });

  it('pass 32 MB each way, and hold none of it for who does not read', async () => {
    const { port, streams } = await node();
    const client = await open(port, exec);
    const { socket } = streams[0]!;
    const block = Buffer.alloc(32 * 1024, 'b');
    let [sent, isHeld] = [0, false];
    client.socket.pause();
    const fill = (): void => {
      while (sent < 1000) {
        sent++;
        if (!socket.write(dataFrame(5, block))) return void socket.once('drain', fill);
      }
      socket.write(Buffer.concat([dataFrame(1, Buffer.from('{}')), goAway]));
    };
    fill();
    for (let last = -1; last !== sent; ) {
      last = sent;
      await settle(50);
    }
    isHeld = sent < 600;
    assert.ok(isHeld, `${sent} blocks are on their way to a client that does not read`);
    client.socket.resume();
    for (let n = 0; n < 1000; n++) client.send(0, 'a'.repeat(1000));
    await until(() => client.isGone);
    assert.equal(client.of(1).length, 1000 * block.length);
  });

  it('carry a port-forward untouched', async () => {
    const { port, streams } = await node();
    const client = await open(port, '/portForward/shop/web', 'SPDY/3.1+portforward.k8s.io');
    assert.equal(client.protocol, 'SPDY/3.1+portforward.k8s.io');
    assert.match(streams[0]!.head, /\r\nx-stream-protocol-version: portforward\.k8s\.io\r\n/i);
    client.socket.write(maskedFrame(Opcode.binary, dataFrame(9, Buffer.from('knock'))));
    await until(() => streams[0]!.text(9) !== '');
    assert.equal(streams[0]!.text(9), 'knock');
    streams[0]!.socket.end('who is there?');
    await until(() => client.isGone);
    const text = client.messages.map(([first, rest]) => String.fromCharCode(first) + rest).join('');
    assert.deepEqual([text, client.closeCode], ['who is there?', 1000]);
  });

  it('survive whatever either side says, and leave nothing behind', async () => {
    const { port, streams } = await node();
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.uint8Array({ maxLength: 30 }).map((payload) => maskedFrame(Opcode.binary, payload)),
      fc.uint8Array({ maxLength: 30 }).map((payload) => dataFrame(5, Buffer.from(payload))),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(bytes, { maxLength: 5 }),
        fc.array(bytes, { maxLength: 5 }),
        async (said, answered) => {
          const client = await open(port, exec);
          const runtime = streams.at(-1)!;
          runtime.socket.write(Buffer.concat(answered));
          client.socket.end(Buffer.concat(said));
          await until(() => client.isGone && runtime.isGone);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('are refused with what the runtime says, or what is wrong with them', async () => {
    const refusal = 'HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nunknown';
    await assert.rejects(open((await node({ refusal })).port, exec), /404 unknown/);
    const { port } = await node();
    await assert.rejects(open(port, '/exec/shop/web/main?command=sh'), /400 you must specify/);
  });
});
