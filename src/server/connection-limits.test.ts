import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { everybody, startWorld, type World } from './fixtures/node-server-world.ts';
import { type ConnectionLimits, usualLimits } from './https-listener.ts';
import type { NodeRoute } from './route.ts';
import { sendText } from './router.ts';

const chunk = Buffer.alloc(64 * 1024, 'x');
let cut = Promise.withResolvers<void>();
const routes: NodeRoute[] = [
  { path: '/short', handle: ({ response }) => sendText(response, 200, 'short') },
  {
    path: '/endless',
    async handle({ response, signal }) {
      signal.addEventListener('abort', () => cut.resolve());
      while (!signal.aborted) if (!response.write(chunk)) await once(response, 'drain', { signal });
    },
  },
  {
    path: '/quiet',
    handle({ response, signal }) {
      response.writeHead(200).flushHeaders();
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    },
  },
];

const start = (limits: Partial<ConnectionLimits>) =>
  startWorld({ routes, access: everybody, server: { limits: { ...usualLimits, ...limits } } });

async function tls(world: World, bytes?: string) {
  const socket = connect({
    port: world.server.port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  if (bytes !== undefined) socket.write(bytes);
  return socket;
}
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const closed = (socket: { once(event: 'close', listener: () => void): unknown; resume(): unknown }) =>
  new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    socket.resume();
  });

describe('a client', () => {
  it('that does not finish its handshake is let go', async () => {
    await using world = await start({ handshakeMs: 50 });
    const socket = connectTcp(world.server.port, '127.0.0.1');
    socket.on('error', () => {});
    await closed(socket);
  });

  it('that takes too long for its headers is let go', async () => {
    await using world = await start({ headersMs: 100 });
    const socket = await tls(world, 'GET /short HTTP/1.1\r\n');
    const drip = setInterval(() => socket.write('x: y\r\n'), 10);
    await closed(socket);
    clearInterval(drip);
  });

  it('that asks nothing is let go, over HTTP/2 as well', async () => {
    await using world = await start({ idleMs: 50 });
    await closed(await tls(world));
    await closed(await tls(world, get('/short')));
    const session = connectHttp2(`https://127.0.0.1:${world.server.port}`, { rejectUnauthorized: false });
    await once(session.request({ ':path': '/short' }).resume(), 'end');
    await once(session, 'close');
  });

  it('that does not read its answer is let go, and its handler told', async () => {
    await using world = await start({ idleMs: 50 });
    cut = Promise.withResolvers<void>();
    const socket = await tls(world);
    socket.pause();
    socket.write(get('/endless'));
    await cut.promise;
    cut = Promise.withResolvers<void>();
    const session = connectHttp2(`https://127.0.0.1:${world.server.port}`, { rejectUnauthorized: false });
    session.on('error', () => {});
    const stream = session.request({ ':path': '/endless' });
    stream.on('error', () => {});
    await cut.promise;
    session.destroy();
    socket.destroy();
  });

  it('whose answer is quiet on its own account stays', async () => {
    await using world = await start({ idleMs: 30 });
    const socket = await tls(world, get('/quiet'));
    await once(socket, 'data');
    let isClosed = false;
    socket.once('close', () => (isClosed = true));
    // Others come and go meanwhile, each for longer than the idle time.
    for (let n = 0; n < 3; n++) await closed(await tls(world));
    assert.equal(isClosed, false);
    socket.destroy();
  });

  it('that has had nothing to do for longest leaves when there are too many', async () => {
    await using world = await start({ connections: 3 });
    const idle = [await tls(world), await tls(world, get('/quiet')), await tls(world, get('/short'))];
    await once(idle[2]!, 'data');
    const first = closed(idle[0]!);
    assert.equal((await world.ask('/short')).text, 'short');
    await first;
    assert.deepEqual(
      idle.map(({ destroyed }) => destroyed),
      [true, false, false],
    );
    for (const socket of idle) socket.destroy();
  });
});

describe('the end of a server', () => {
  it('waits for answers, not for connections', async () => {
    const world = await start({});
    const idle = await tls(world);
    const busy = await tls(world, get('/short'));
    await once(busy, 'data');
    const session = connectHttp2(`https://127.0.0.1:${world.server.port}`, { rejectUnauthorized: false });
    await once(session, 'connect');
    const all = Promise.all([closed(idle), closed(busy), once(session, 'close')]);
    await world[Symbol.asyncDispose]();
    await all;
  });
});
