import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { refuseBrokenRequests } from './refuse-broken-requests.ts';

async function start(t: TestContext, answer: RequestListener = (_, response) => response.end('fine')) {
  const clock = new VirtualClock();
  const server = createServer({ maxHeaderSize: 16_384 }, answer);
  refuseBrokenRequests(server, clock);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const client = async () => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  return { clock, client };
}

async function all(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await once(socket, 'end');
  return text;
}

const written = (socket: Socket, text: string) =>
  new Promise<void>((resolve, reject) => {
    socket.write(text, (error) => (error ? reject(error) : resolve()));
  });
const head = 'GET / HTTP/1.1\r\nHost: x\r\n';

describe('a request that is refused', () => {
  it('is told why, also while the client has much more to say', async (t) => {
    const { client } = await start(t);
    for (let round = 0; round < 5; round++) {
      const socket = await client();
      // Whoever reads only after everything was sent finds the answer, not a reset connection.
      await written(socket, `${head}big: ${'x'.repeat(2_000_000)}`);
      await written(socket, 'x'.repeat(2_000_000));
      const text = await all(socket);
      assert.match(text, /^HTTP\/1\.1 431 .*\r\nConnection: close\r\n/);
      const closed = once(socket, 'close');
      socket.end();
      await closed;
    }
  });

  it('is told that it is no HTTP', async (t) => {
    const { client } = await start(t);
    const socket = await client();
    socket.write('rubbish\r\n\r\n');
    assert.match(await all(socket), /^HTTP\/1\.1 400 /);
  });

  it('is listened to for two seconds, and for no more than 16 MiB', async (t) => {
    const { clock, client } = await start(t);
    const silent = await client();
    silent.write('rubbish\r\n\r\n');
    await all(silent);
    await clock.advance(1999);
    await settle();
    for (let sent = 0; sent < 3; sent++) {
      await written(silent, 'more');
      await new Promise(setImmediate);
    }
    assert.equal(silent.destroyed, false);
    const reset = once(silent, 'error');
    await clock.advance(1);
    // The server has closed: what is sent now is answered by a reset.
    const sending = setInterval(() => silent.write('more'), 5);
    t.after(() => clearInterval(sending));
    await reset;

    const endless = await client();
    endless.on('error', () => {});
    await assert.rejects(async () => {
      for (let sent = 0; sent < 100; sent++) await written(endless, `${head}${'x'.repeat(1_000_000)}`);
    });
  });

  it('never speaks into another answer', async (t) => {
    const { client } = await start(t, (_, response) => {
      response.writeHead(200, { 'content-length': '10' });
      response.write('half');
    });
    const socket = await client();
    const text = all(socket);
    socket.write(`${head}\r\n`);
    await once(socket, 'data');
    socket.write('rubbish\r\n\r\n');
    assert.match(await text, /half$/);
  });

  it('may follow an answer that is complete', async (t) => {
    const { client } = await start(t);
    const socket = await client();
    const text = all(socket);
    socket.write(`${head}\r\n`);
    await once(socket, 'data');
    socket.write('rubbish\r\n\r\n');
    assert.match(await text, /fine[^]*HTTP\/1\.1 400 /);
  });
});
