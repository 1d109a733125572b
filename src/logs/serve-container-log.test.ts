import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, rmSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../concurrency/clock.ts';
import { settle } from '../concurrency/virtual-clock.ts';
import type { PodStatus } from '../kubernetes/types.ts';
import { lines, timeOfLine, WrittenLog } from './fixtures/written-log.ts';
import { type LoggedPod, serveContainerLog } from './serve-container-log.ts';

describe('the answer to a request for a log', () => {
  let log: WrittenLog;
  let status: PodStatus;
  let server: Server;
  const failures: unknown[] = [];
  const pod: LoggedPod = {
    get status() {
      return status;
    },
    hasContainer: (name) => name === 'main',
    instances: () =>
      [1, 0]
        .filter((attempt) => attempt <= log.attempt)
        .map((attempt) => ({
          id: `c${attempt}`,
          attempt,
          logPath: log.path.replace(/\d+\.log$/, `${attempt}.log`),
        })),
    follow: () => log,
  };
  const ports = {
    pod: (namespace: string, name: string) => (namespace === 'shop' && name === 'web' ? pod : undefined),
    streamsSplit: false,
    clock: systemClock,
  };

  before(async () => {
    server = createServer((request, response) => {
      const { pathname, searchParams: query } = new URL(request.url!, 'http://x');
      const [, namespace = '', name = '', container = ''] = pathname.split('/');
      const gone = new AbortController();
      response.on('close', () => gone.abort(new Error('gone')));
      const asked = { namespace, pod: name, container, query, signal: gone.signal };
      serveContainerLog(asked, response, ports).catch((error: unknown) => {
        failures.push(error);
        response.destroy();
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => server.close());
  beforeEach(() => {
    log = new WrittenLog();
    log.reopen();
    status = {
      containerStatuses: [{ name: 'main', containerID: 'containerd://c0', state: { running: {} } }],
    } as PodStatus;
  });
  afterEach(() => {
    server.closeAllConnections();
    log.dispose();
    assert.deepEqual(failures.splice(0), []);
  });

  const open = async (path: string): Promise<IncomingMessage> => {
    const request = get({ port: (server.address() as AddressInfo).port, path, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.on('error', () => {});
    return response;
  };
  const ask = async (path: string): Promise<[number, string]> => {
    const response = await open(path);
    let text = '';
    for await (const piece of response) text += piece;
    return [response.statusCode!, text];
  };

  it('is the log', async () => {
    assert.deepEqual(await ask('/shop/web/main'), [200, '']);
    log.write(3);
    assert.deepEqual(await ask('/shop/web/main'), [200, lines(0, 3)]);
    assert.deepEqual(await ask('/shop/web/main?tailLines=1&timestamps=true'), [
      200,
      `${timeOfLine(2)} line 2\n`,
    ]);
    const { headers } = await open('/shop/web/main');
    assert.equal(headers['content-type'], 'text/plain');
  });

  it('is the log of the previous instance', async () => {
    log.write(1);
    log.restart();
    log.write(1);
    const ended = { exitCode: 1, containerID: 'containerd://c0' };
    status = {
      containerStatuses: [
        {
          name: 'main',
          containerID: 'containerd://c1',
          state: { running: {} },
          lastState: { terminated: ended },
        },
      ],
    } as PodStatus;
    assert.deepEqual(await ask('/shop/web/main?previous=true'), [200, 'line 0\n']);
    // It has ended: there is nothing to wait for.
    assert.deepEqual(await ask('/shop/web/main?previous=true&follow=true'), [200, 'line 0\n']);
    assert.deepEqual(await ask('/shop/web/main'), [200, 'line 1\n']);
  });

  it("refuses in a kubelet's words", async () => {
    assert.deepEqual(await ask('/shop/none/main'), [404, 'pod "none" does not exist']);
    assert.deepEqual(await ask('/shop/web/other'), [404, 'container "other" not found in pod "web"']);
    assert.deepEqual(await ask('/shop/web/main?tailLines=x'), [
      400,
      '{"message": "Unable to decode query."}',
    ]);
    assert.deepEqual(await ask('/shop/web/main?limitBytes=0'), [422, '{"message": "Invalid request."}']);
    const previous = 'previous terminated container "main" in pod "web" not found';
    assert.deepEqual(await ask('/shop/web/main?previous=true'), [400, previous]);
    rmSync(log.path);
    const gone = `failed to open log file "${log.path}": no such file or directory`;
    assert.deepEqual(await ask('/shop/web/main'), [400, gone]);
    status = {
      containerStatuses: [{ name: 'main', state: { waiting: { reason: 'PodInitializing' } } }],
    } as PodStatus;
    const waiting = 'container "main" in pod "web" is waiting to start: PodInitializing';
    assert.deepEqual(await ask('/shop/web/main?follow=true'), [400, waiting]);
  });

  it('begins at once when a silent container is followed', async () => {
    const response = await open('/shop/web/main?follow=true');
    assert.equal(response.statusCode, 200);
    log.write(1);
    const [piece] = (await once(response, 'data')) as [Buffer];
    assert.equal(String(piece), lines(0, 1));
    log.tell(undefined);
    await once(response, 'end');
  });

  it('is cut off when the log cannot be read on', async () => {
    const response = await open('/shop/web/main?follow=true');
    log.progress = () => {
      throw new Error('broken');
    };
    log.write(1);
    const [error] = (await once(response, 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNRESET');
    assert.match(String(failures.splice(0)[0]), /broken/);
  });

  it('is read no faster than the client takes it', async () => {
    const line = `${timeOfLine(0)} stdout F ${'x'.repeat(16_000)}\n`.repeat(64);
    for (let mib = 0; mib < 64; mib++) log.raw(line);
    const before = process.memoryUsage().rss;
    const clients = await Promise.all(Array.from({ length: 5 }, () => open('/shop/web/main')));
    for (const client of clients) client.pause();
    await settle(100);
    const grown = (process.memoryUsage().rss - before) / 1024 / 1024;
    assert.ok(grown < 100, `5 clients that do not read cost ${grown.toFixed()} MiB`);
    let received = 0;
    clients[0]!.on('data', (piece: Buffer) => void (received += piece.length));
    clients[0]!.resume();
    await once(clients[0]!, 'end');
    assert.equal(received, 64 * 64 * 16_001);
  });

  it('serves 200 followers, and keeps nothing of them', async () => {
    log.write(1);
    const files = readdirSync('/proc/self/fd').length;
    const clients = await Promise.all(Array.from({ length: 200 }, () => open('/shop/web/main?follow=true')));
    const texts = clients.map(() => '');
    clients.forEach((client, index) =>
      client.on('data', (piece: Buffer) => void (texts[index] += piece.toString())),
    );
    for (let n = 0; n < 10; n++) {
      log.write(10);
      await settle();
    }
    while (texts.some((text) => text.length < lines(0, 101).length)) await settle();
    assert.ok(texts.every((text) => text === lines(0, 101)));
    for (const client of clients) client.destroy();
    while (log.listeners > 0 || readdirSync('/proc/self/fd').length > files + 1) await settle();
  });
});
