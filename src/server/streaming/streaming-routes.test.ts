import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, describe, it } from 'node:test';
import { systemClock } from '../../concurrency/clock.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { createRouter } from '../router.ts';
import { StreamRefusal } from './stream-request.ts';
import { type StreamedPod, type StreamingRoutesInput, streamingRoutes } from './streaming-routes.ts';

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0)) await undo();
});

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** A runtime's streaming server that answers the head with 101 and hands out the socket. */
async function streamingServer(serve: (socket: Socket, head: string) => void) {
  const sockets = new Set<Socket>();
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    let seen = Buffer.alloc(0);
    const onData = (data: Buffer): void => {
      seen = Buffer.concat([seen, data]);
      const end = seen.indexOf('\r\n\r\n');
      if (end < 0) return;
      socket.off('data', onData);
      socket.pause();
      socket.unshift(seen.subarray(end + 4));
      serve(socket, seen.subarray(0, end).toString());
    };
    socket.on('data', onData);
  });
  const port = await listen(server);
  cleanUp.push(() => sockets.forEach((socket) => socket.destroy()));
  return { sockets, url: `http://127.0.0.1:${port}/exec/token?x=1` };
}

const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';

const web: StreamedPod = {
  uid: 'u1',
  running: (name) => (name === 'main' ? 'c1' : undefined),
  hasTerminal: (name) => (name === 'main' ? true : undefined),
  sandbox: () => 's1',
};

/** A node whose runtime answers every stream with `url`. */
async function node(url: string, more: Partial<StreamingRoutesInput> = {}) {
  const asked: object[] = [];
  const answer = async (request: object) => {
    asked.push(request);
    return url;
  };
  const runtime = {
    exec: answer,
    attach: answer,
    portForward: answer,
    run: async (request: object) => {
      asked.push(request);
      return Buffer.from('out\nerr\n');
    },
  };
  const routes = streamingRoutes({
    pod: (namespace, name) => (namespace === 'shop' && name === 'web' ? web : undefined),
    runtime,
    idleMs: 0,
    translates: true,
    clock: systemClock,
    ...more,
  });
  const router = createRouter({ routes, log: silentLogger });
  const sockets = new Set<Duplex>();
  const server = createServer((request, response) => router.request(request, response));
  server.on('upgrade', (request, socket, head) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    router.upgrade(request, socket, head);
  });
  const port = await listen(server);
  cleanUp.push(() => server.closeAllConnections());
  return { port, asked, sockets };
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
  readonly socket: Socket | undefined;
  readonly head: Buffer;
}

function ask(
  port: number,
  path: string,
  { method = 'POST', upgrade = 'SPDY/3.1', headers = {} } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const wish = upgrade === '' ? {} : { connection: 'Upgrade', upgrade };
    const request = httpRequest({ port, path, method, headers: { ...wish, ...headers }, agent: false });
    request.on('error', reject);
    request.on('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () => {
        const [status, text] = [response.statusCode!, Buffer.concat(pieces).toString()];
        resolve({ status, text, headers: response.headers, socket: undefined, head: Buffer.alloc(0) });
      });
    });
    request.on('upgrade', (response, socket: Socket, head) => {
      cleanUp.push(() => socket.destroy());
      resolve({ status: response.statusCode!, text: '', headers: response.headers, socket, head });
    });
    request.end();
  });
}

const exec = '/exec/shop/web/main?command=sh&command=-c&command=echo%20%26&output=1&error=1';

describe('streams into containers', () => {
  it('asks the runtime for what the client asks for', async () => {
    const { url } = await streamingServer((socket) => socket.end(switching));
    const { port, asked } = await node(url);
    const paths = [
      exec,
      '/exec/shop/web/u1/main?command=sh&input=1&output=1&error=1&tty=1',
      '/attach/shop/web/main?output=1&error=1',
      '/portForward/shop/web',
    ];
    for (const path of paths) assert.equal((await ask(port, path)).status, 101, path);
    const forward = await ask(port, '/portForward/shop/web/u1?port=80,81&port=82', {
      method: 'GET',
      upgrade: 'websocket',
    });
    assert.equal(forward.status, 101);
    const stdout = { stdin: false, stdout: true, stderr: true, tty: false };
    assert.deepEqual(asked, [
      { ...stdout, containerId: 'c1', command: ['sh', '-c', 'echo &'] },
      { stdin: true, stdout: true, stderr: false, tty: true, containerId: 'c1', command: ['sh'] },
      { ...stdout, tty: true, stderr: false, containerId: 'c1' },
      { sandboxId: 's1', ports: [] },
      { sandboxId: 's1', ports: [80, 81, 82] },
    ]);
  });

  it('hands the head on as it came, without the secrets of the client', async () => {
    const heads = Promise.withResolvers<string>();
    const { url } = await streamingServer((socket, head) => {
      heads.resolve(head);
      socket.end(switching);
    });
    const { port } = await node(url);
    const headers = {
      'X-Stream-Protocol-Version': 'v4.channel.k8s.io',
      Authorization: 'Bearer secret',
      Cookie: 'a=b',
    };
    await ask(port, exec, { headers });
    const [first, ...lines] = (await heads.promise).split('\r\n');
    assert.equal(first, 'POST /exec/token?x=1 HTTP/1.1');
    assert.ok(lines.includes('X-Stream-Protocol-Version: v4.channel.k8s.io'));
    assert.ok(lines.includes(`Host: ${new URL(url).host}`));
    assert.equal(lines.filter((line) => /^host:/i.test(line)).length, 1);
    assert.ok(!/secret|a=b/.test(lines.join('\n')));
  });

  it('passes bytes both ways, what came with the head included', async () => {
    const { url } = await streamingServer((socket) => {
      socket.write(`${switching}hello `);
      socket.pipe(socket);
    });
    const { port } = await node(url);
    const socket = connect({ port, host: '127.0.0.1' });
    cleanUp.push(() => socket.destroy());
    socket.write(
      `POST ${exec} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nearly `,
    );
    let text = '';
    socket.on('data', (data: Buffer) => void (text += data.toString()));
    while (!text.endsWith('early ')) await once(socket, 'data');
    socket.write('late');
    while (!text.endsWith('late')) await once(socket, 'data');
    assert.equal(text, `${switching}hello early late`);
  });

  it('waits for the slower side instead of holding what it has not taken', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    let sent = 0;
    const { url } = await streamingServer((socket) => {
      socket.write(switching);
      const fill = (): void => {
        while (sent < 200 && socket.write(chunk)) sent++;
        sent++;
        if (sent >= 200) socket.end();
        else socket.once('drain', fill);
      };
      fill();
    });
    const { port } = await node(url);
    const { socket, head } = await ask(port, exec);
    socket!.pause();
    let last = -1;
    while (last !== sent) {
      last = sent;
      await settle(50);
    }
    assert.ok(sent < 60, `${sent} MiB are on their way to a client that does not read`);
    let received = head.length;
    socket!.on('data', (data: Buffer) => void (received += data.length));
    socket!.resume();
    await once(socket!, 'end');
    assert.ok(received >= 200 * chunk.length);
  });

  it('delivers what the runtime sent before it closed', async () => {
    const last = Buffer.alloc(3_000_000, 'z');
    const { url } = await streamingServer(
      (socket) => void socket.end(Buffer.concat([Buffer.from(switching), last])),
    );
    const { port, sockets } = await node(url);
    const { socket, head } = await ask(port, exec);
    let received = head.length;
    socket!.on('data', (data: Buffer) => void (received += data.length));
    await once(socket!, 'end');
    assert.equal(received, last.length);
    socket!.destroy();
    while (sockets.size > 0) await settle();
  });

  it('lets go of the other side when one vanishes', async () => {
    const runtime = await streamingServer((socket) => {
      socket.write(switching);
      socket.resume().on('end', () => socket.end());
    });
    const { port, sockets } = await node(runtime.url);
    const clients = await Promise.all(Array.from({ length: 50 }, () => ask(port, exec)));
    assert.equal(runtime.sockets.size, 50);
    for (const { socket } of clients.slice(0, 25)) socket!.resetAndDestroy();
    while (runtime.sockets.size > 25 || sockets.size > 25) await settle();
    for (const socket of runtime.sockets) socket.destroy();
    while (sockets.size > 0) await settle();
  });

  it('lets go of both sides when nothing has passed for too long', async () => {
    const clock = new VirtualClock();
    const runtime = await streamingServer((socket) => {
      socket.write(switching);
      socket.pipe(socket);
    });
    const { port, sockets } = await node(runtime.url, { idleMs: 60_000, clock });
    const { socket } = await ask(port, exec);
    await clock.advance(50_000);
    socket!.write('x');
    await once(socket!, 'data');
    await clock.advance(50_000);
    assert.equal(runtime.sockets.size, 1);
    await clock.advance(10_001);
    while (runtime.sockets.size > 0 || sockets.size > 0) await settle();
  });

  it('passes every WebSocket as it is where none is translated', async () => {
    const heads: string[] = [];
    const { url } = await streamingServer((socket, head) => {
      heads.push(head);
      socket.end(switching);
    });
    const { port } = await node(url, { translates: false });
    for (const [path, protocol] of [
      [exec, 'v5.channel.k8s.io'],
      ['/portForward/shop/web', 'SPDY/3.1+portforward.k8s.io'],
    ] as const) {
      const headers = { 'Sec-WebSocket-Protocol': protocol };
      assert.equal((await ask(port, path, { method: 'GET', upgrade: 'websocket', headers })).status, 101);
      assert.match(heads.at(-1) ?? '', /^GET .*\r\nupgrade: websocket\r\n/is);
      assert.ok(heads.at(-1)?.includes(`Sec-WebSocket-Protocol: ${protocol}`));
    }
  });

  it("passes a runtime's refusal on", async () => {
    const answer = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno';
    const { url } = await streamingServer((socket) => void socket.end(answer));
    const { port } = await node(url);
    const { status, text } = await ask(port, exec, { method: 'GET', upgrade: 'websocket' });
    assert.deepEqual([status, text], [403, 'no']);
  });

  it('refuses with the codes and words of a kubelet', async () => {
    const { port } = await node('http://127.0.0.1:9/exec/x');
    const query = '?command=x&output=1';
    const cases: [string, number, string][] = [
      ['/exec/shop/web/main?command=x', 400, 'you must specify at least 1 of stdin, stdout, stderr'],
      ['/attach/shop/web/main?output=true', 400, 'you must specify at least 1 of stdin, stdout, stderr'],
      [`/exec/shop/none/main${query}`, 404, 'pod does not exist'],
      [`/attach/none/web/main${query}`, 404, 'pod does not exist'],
      ['/portForward/shop/none', 404, 'pod does not exist'],
      [`/exec/shop/web/other${query}`, 500, 'container not found ("other")'],
      [`/exec/shop/web/u2/main${query}`, 500, 'container not found ("main")'],
      [`/attach/shop/web/other${query}`, 500, 'container other not found in pod web_shop'],
      ['/portForward/shop/web/u2', 404, 'pod not found'],
    ];
    for (const [path, status, text] of cases) {
      const answer = await ask(port, path);
      assert.deepEqual([answer.status, answer.text], [status, text], path);
    }
    const webSocket = { method: 'GET', upgrade: 'websocket' };
    const forwards: [string, string][] = [
      ['', 'query parameter "port" is required'],
      ['?port=', 'query parameter "port" cannot be empty'],
      ['?port=1,', 'query parameter "port" cannot be empty'],
      ['?port=0', 'port "0" must be > 0'],
      ['?port=65536', 'unable to parse "65536" as a port'],
      ['?port=http', 'unable to parse "http" as a port'],
    ];
    for (const [ports, text] of forwards) {
      const answer = await ask(port, `/portForward/shop/web${ports}`, webSocket);
      assert.deepEqual([answer.status, answer.text], [400, text], ports);
    }
    for (const path of [`/exec/shop/web/main${query}`, '/portForward/shop/web']) {
      const answer = await ask(port, path, { upgrade: '' });
      assert.deepEqual([answer.status, answer.text], [400, 'Upgrade request required'], path);
    }
  });

  it('tells when the runtime has too much to do, or cannot be reached', async () => {
    const closed = createTcpServer();
    const free = await listen(closed);
    closed.close();
    const unreachable = await ask((await node(`http://127.0.0.1:${free}/x`)).port, exec);
    assert.equal(unreachable.status, 500);
    assert.match(unreachable.text, /cannot reach the runtime's streaming server/);
    const busy = async (): Promise<string> => {
      throw new StreamRefusal(429, 'too many');
    };
    const runtime = { exec: busy, attach: busy, portForward: busy, run: async () => Buffer.alloc(0) };
    const answer = await ask((await node('', { runtime })).port, exec);
    assert.deepEqual([answer.status, answer.text, answer.headers['retry-after']], [429, 'too many', '1']);
  });

  it('runs a command to its end', async () => {
    const { port, asked } = await node('');
    const answer = await ask(port, '/run/shop/web/u1/main?cmd=ls%20-l', { upgrade: '' });
    assert.deepEqual([answer.status, answer.text], [200, 'out\nerr\n']);
    assert.deepEqual(asked, [{ containerId: 'c1', command: ['ls', '-l'] }]);
    assert.equal((await ask(port, '/run/shop/web/other?cmd=ls', { upgrade: '' })).status, 500);
    assert.equal((await ask(port, '/run/shop/none/main?cmd=ls', { upgrade: '' })).status, 404);
    assert.equal((await ask(port, '/run/shop/web/main?cmd=ls', { upgrade: '', method: 'GET' })).status, 405);
  });
});
