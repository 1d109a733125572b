import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { systemClock } from '../concurrency/clock.ts';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import type { LogFields, Logger } from '../telemetry/logger.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { silentMetrics } from '../telemetry/metrics.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { ApiError, type WatchEvent } from './api-client.ts';
import { CredentialError, type CredentialSource } from './credentials.ts';
import { createTestAuthority, type TestAuthority, type TestPair } from './fixtures/test-certificates.ts';
import { answerJson, startTestServer, type TestServer } from './fixtures/test-server.ts';
import { Http2ApiClient, type Http2ApiClientOptions } from './http2-api-client.ts';

let authority: TestAuthority;
let pair: TestPair;

before(async () => {
  authority = await createTestAuthority();
  pair = await authority.issue({ name: 'kube-apiserver', hosts: ['127.0.0.1', 'kubernetes.test'] });
});

const anonymous: CredentialSource = {
  current: async () => ({ headers: {} }),
  refresh: async () => false,
  weakness: () => undefined,
};

function clientFor(
  url: string,
  options: Partial<Http2ApiClientOptions> & { cluster?: never; tls?: object } = {},
): Http2ApiClient & Disposable {
  const { tls, ...rest } = options;
  const client = new Http2ApiClient({
    cluster: {
      name: 'test',
      server: url,
      authority: { pem: authority.certificate },
      insecureSkipTlsVerify: false,
      disableCompression: false,
      ...tls,
    },
    credentials: anonymous,
    kubeconfig: '/etc/kubernetes/kubelet.conf',
    userAgent: 'kubelet-ts/test',
    qps: 50,
    burst: 100,
    clock: systemClock,
    random: () => 0,
    logger: silentLogger,
    metrics: silentMetrics,
    ...rest,
  });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

function apiError(check: (error: ApiError) => void) {
  return (error: unknown) => {
    assert.ok(error instanceof ApiError, String(error));
    check(error);
    return true;
  };
}

async function collectWatch(client: Http2ApiClient, signal: AbortSignal, onEvent?: () => void) {
  const events: WatchEvent<{ n: number }>[] = [];
  await client.watch<{ n: number }>({ method: 'GET', path: '/api/v1/pods', signal }, (event) => {
    events.push(event);
    onEvent?.();
  });
  return events;
}

for (const protocol of ['h2', 'http/1.1', 'plain'] as const) {
  describe(`over ${protocol}`, () => {
    const start = () => startTestServer({ pair, protocol });

    test('sends queries, bodies and headers, and decodes what comes back', async () => {
      await using server = await start();
      using client = clientFor(server.url);
      const seen: Record<string, unknown>[] = [];
      server.handler = (request, response, body) => {
        const { 'user-agent': agent, 'content-type': type, accept } = request.headers;
        seen.push({ method: request.method, url: request.url, agent, type, accept, body });
        answerJson(response, 200, { kind: 'Pod', note: 'grün' });
      };
      const got = await client.request<{ note: string }>({
        method: 'GET',
        path: '/api/v1/pods',
        query: { fieldSelector: 'spec.nodeName=worker-1' },
      });
      assert.equal(got.note, 'grün');
      for (const patch of [undefined, 'merge', 'json', 'apply'] as const)
        await client.request({
          method: 'PATCH',
          path: '/api/v1/nodes/n/status',
          body: { a: 1 },
          ...(patch && { patch }),
        });
      assert.equal(seen[0]?.url, '/api/v1/pods?fieldSelector=spec.nodeName%3Dworker-1');
      assert.equal(seen[0]?.agent, 'kubelet-ts/test');
      assert.equal(seen[0]?.accept, 'application/json');
      assert.deepEqual(
        seen.slice(1).map(({ type, body }) => `${String(type)} ${String(body)}`),
        [
          'application/strategic-merge-patch+json {"a":1}',
          'application/merge-patch+json {"a":1}',
          'application/json-patch+json {"a":1}',
          'application/apply-patch+yaml {"a":1}',
        ],
      );
    });

    test('a refusal carries status, reason and message', async () => {
      await using server = await start();
      using client = clientFor(server.url);
      server.handler = (_request, response) =>
        answerJson(response, 409, {
          kind: 'Status',
          reason: 'AlreadyExists',
          message: 'pods "web" already exists',
        });
      await assert.rejects(
        client.request({ method: 'POST', path: '/api/v1/namespaces/default/pods', body: {} }),
        apiError((error) => {
          assert.equal(error.alreadyExists, true);
          assert.equal(error.message, 'cannot create pods default: pods "web" already exists');
        }),
      );
    });

    test('streams a watch, however its bytes are cut', async () => {
      await using server = await start();
      using client = clientFor(server.url);
      server.handler = (request, response) => {
        assert.match(request.url ?? '', /watch=true/);
        response.writeHead(200);
        const bytes = Buffer.from(
          [1, 2, 3].map((n) => `${JSON.stringify({ type: 'ADDED', object: { n, text: 'ä' } })}\n`).join(''),
        );
        for (let at = 0; at < bytes.length; at += 7) response.write(bytes.subarray(at, at + 7));
        response.end();
      };
      const events = await collectWatch(client, AbortSignal.timeout(5000));
      assert.deepEqual(
        events.map(({ object }) => object.n),
        [1, 2, 3],
      );
    });

    test('aborting a watch ends it with the reason', async () => {
      await using server = await start();
      using client = clientFor(server.url);
      server.handler = (_request, response) => {
        response.writeHead(200);
        response.write('{"type":"ADDED","object":{"n":1}}\n');
      };
      const controller = new AbortController();
      await assert.rejects(
        collectWatch(client, controller.signal, () => controller.abort(new Error('enough'))),
        /enough/,
      );
    });

    test('a watch whose server goes away has ended', async () => {
      const server = await start();
      using client = clientFor(server.url);
      server.handler = (_request, response) => {
        response.writeHead(200);
        response.write('{"type":"ADDED","object":{"n":1}}\n');
      };
      const events = await collectWatch(client, AbortSignal.timeout(5000), () => {
        void server[Symbol.asyncDispose]();
      });
      assert.equal(events.length, 1);
    });

    test('gives up at its time limit', async () => {
      await using server = await start();
      using client = clientFor(server.url);
      server.handler = () => {};
      await assert.rejects(
        client.request({ method: 'GET', path: '/api/v1/nodes/n', timeoutMs: 50 }),
        apiError((error) => {
          assert.equal(error.reason, 'Timeout');
          assert.match(error.message, /^cannot get nodes n: no answer from API server .* within 0.05 s$/);
        }),
      );
    });
  });
}

test('unpacks gzip, and refuses what unpacks to more than the limit', async () => {
  await using server = await startTestServer({ pair });
  using client = clientFor(server.url, { largestAnswer: 1024 * 1024 });
  let size = 1000;
  server.handler = (request, response) => {
    assert.equal(request.headers['accept-encoding'], 'gzip');
    response.writeHead(200, { 'content-encoding': 'gzip' });
    response.end(gzipSync(JSON.stringify({ text: 'x'.repeat(size) })));
  };
  const answer = await client.request<{ text: string }>({ method: 'GET', path: '/api/v1/nodes' });
  assert.equal(answer.text.length, 1000);
  size = 2 * 1024 * 1024;
  await assert.rejects(
    client.request({ method: 'GET', path: '/api/v1/nodes' }),
    apiError((error) => assert.equal(error.reason, 'AnswerTooLarge')),
  );
});

test('waits as long as the server asks, and sends again', async () => {
  await using server = await startTestServer({ pair });
  const codes: number[] = [];
  using client = clientFor(server.url, { onRequest: (_subject, status) => codes.push(status) });
  server.handler = (_request, response) =>
    server.requests.length < 3
      ? answerJson(response, 429, { message: 'slow down' }, { 'retry-after': '0' })
      : answerJson(response, 201, { ok: true });
  const answer = await client.request({
    method: 'POST',
    path: '/api/v1/namespaces/default/events',
    body: {},
  });
  assert.deepEqual(answer, { ok: true });
  assert.deepEqual(codes, [429, 429, 201]);
});

test('does not wait for longer than the call has', async () => {
  await using server = await startTestServer({ pair });
  using client = clientFor(server.url);
  server.handler = (_request, response) => answerJson(response, 503, {}, { 'retry-after': '60' });
  await assert.rejects(
    client.request({ method: 'GET', path: '/api/v1/nodes/n' }),
    apiError((error) => {
      assert.equal(error.status, 503);
      assert.equal(error.retryAfterMs, 60_000);
    }),
  );
});

test('sends nothing twice that the server may have acted on', async () => {
  await using server = await startTestServer({ pair });
  using client = clientFor(server.url);
  server.handler = (_request, response) => response.stream.session?.destroy();
  await assert.rejects(
    client.request({ method: 'POST', path: '/api/v1/namespaces/default/pods', body: {} }),
    apiError((error) => {
      assert.equal(error.unreachable, true);
      assert.equal(error.reason, 'ConnectionLost');
    }),
  );
  assert.equal(server.requests.length, 1);
  server.handler = (_request, response) => {
    if (server.requests.length === 2) response.stream.session?.destroy();
    else answerJson(response, 200, { ok: true });
  };
  assert.deepEqual(await client.request({ method: 'GET', path: '/api/v1/nodes/n' }), { ok: true });
});

test("tells the server's time by answers that come at once, not by a watch that ends long after it began", async () => {
  await using server = await startTestServer({ pair });
  const times: number[] = [];
  using client = clientFor(server.url, { onDate: (time) => times.push(time) });
  server.handler = (request, response) => {
    const date = request.url?.includes('watch') ? '00:00:00' : '00:07:15';
    response.writeHead(200, { date: `Tue, 01 Dec 2026 ${date} GMT`, 'content-type': 'application/json' });
    response.end(request.url?.includes('watch') ? '{"type":"ADDED","object":{"n":1}}\n' : '{}');
  };
  assert.equal((await collectWatch(client, AbortSignal.timeout(5000))).length, 1);
  await client.request({ method: 'GET', path: '/api/v1/nodes/n' });
  assert.deepEqual(times, [Date.UTC(2026, 11, 1, 0, 7, 15)]);
});

test('after GOAWAY new requests use a new connection and old watches go on', async () => {
  await using server = await startTestServer({ pair });
  using client = clientFor(server.url);
  const begun = Promise.withResolvers<void>();
  let finish = () => {};
  server.handler = (request, response) => {
    if (!request.url?.includes('watch')) return answerJson(response, 200, {});
    response.writeHead(200);
    response.write('{"type":"ADDED","object":{"n":1}}\n');
    finish = () => response.end('{"type":"ADDED","object":{"n":2}}\n');
  };
  const watching = collectWatch(client, AbortSignal.timeout(5000), () => begun.resolve());
  await begun.promise;
  for (const session of server.sessions) session.goaway(0);
  while (server.connections() < 2) await client.request({ method: 'GET', path: '/api/v1/nodes/n' });
  finish();
  assert.equal((await watching).length, 2);
});

test('opens another connection when the server allows no more streams', async () => {
  await using server = await startTestServer({ pair, maxStreams: 4 });
  using client = clientFor(server.url);
  server.handler = (request, response) => {
    if (!request.url?.includes('watch')) return answerJson(response, 200, {});
    response.writeHead(200);
    response.write('{"type":"ADDED","object":{"n":1}}\n');
  };
  const controller = new AbortController();
  // The first answer carries the server's settings.
  await client.request({ method: 'GET', path: '/api/v1/nodes/n' });
  const watches: Promise<unknown>[] = [];
  let begun = 0;
  for (let n = 0; n < 7; n++) {
    const first = Promise.withResolvers<void>();
    watches.push(
      collectWatch(client, controller.signal, () => {
        begun++;
        first.resolve();
      }).catch(() => {}),
    );
    await first.promise;
  }
  assert.equal(begun, 7);
  assert.equal(server.connections(), 3, 'three watches a connection, one stream left for requests');
  await client.request({ method: 'GET', path: '/api/v1/nodes/n' });
  assert.equal(server.connections(), 3);
  controller.abort();
  await Promise.all(watches);
});

test('heartbeats have a connection of their own and pass a full rate limit', async () => {
  await using server = await startTestServer({ pair });
  using client = clientFor(server.url, { qps: 0.001, burst: 1 });
  const order: string[] = [];
  const ask = (name: string, priority: 'heartbeat' | 'normal') =>
    client.request({ method: 'GET', path: `/api/v1/nodes/${name}`, priority, timeoutMs: 300 }).then(
      () => order.push(name),
      () => order.push(`${name} late`),
    );
  await Promise.all([ask('a', 'normal'), ask('b', 'normal'), ask('lease', 'heartbeat')]);
  assert.equal(order.at(-1), 'b late');
  assert.deepEqual(order.slice(0, 2).sort(), ['a', 'lease']);
  assert.equal(server.connections(), 2);
});

test('heartbeats get through while everything else hangs at the server', async () => {
  await using server = await startTestServer({ pair, maxStreams: 2 });
  server.handler = (request, response) => {
    if (request.url?.includes('leases')) answerJson(response, 200, {});
  };
  using client = clientFor(server.url);
  const controller = new AbortController();
  const { signal } = controller;
  const hanging = Array.from({ length: 20 }, (_, i) =>
    assert.rejects(client.request({ method: 'GET', path: `/api/v1/nodes/n${i}`, signal }), /enough/),
  );
  while (server.requests.length < 2) await settle();
  const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n';
  await client.request({ method: 'PUT', path: lease, body: {}, priority: 'heartbeat', timeoutMs: 5000 });
  controller.abort(new Error('enough'));
  await Promise.all(hanging);
});

test('a rotated client certificate is used at once, and the old connection closes', async () => {
  await using server = await startTestServer({ pair, clientAuthority: authority.certificate });
  let certificate = await authority.issue({ name: 'system:node:a', organization: 'system:nodes' });
  const credentials: CredentialSource = { ...anonymous, current: async () => ({ headers: {}, certificate }) };
  using client = clientFor(server.url, { credentials });
  const names: unknown[] = [];
  server.handler = (request, response) => {
    names.push((request.socket as TLSSocket).getPeerCertificate()?.subject?.CN);
    answerJson(response, 200, {});
  };
  await client.request({ method: 'GET', path: '/api/v1/nodes/a' });
  await client.request({ method: 'GET', path: '/api/v1/nodes/a' });
  certificate = await authority.issue({ name: 'system:node:b', organization: 'system:nodes' });
  await client.request({ method: 'GET', path: '/api/v1/nodes/a' });
  assert.deepEqual(names, ['system:node:a', 'system:node:a', 'system:node:b']);
  assert.equal(server.connections(), 2);
});

test('a refused token is renewed once and the request repeated', async () => {
  await using server = await startTestServer({ pair });
  let token = 'old';
  const credentials: CredentialSource = {
    ...anonymous,
    current: async () => ({ headers: { authorization: `Bearer ${token}` } }),
    refresh: async () => {
      const changed = token !== 'new';
      token = 'new';
      return changed;
    },
  };
  using client = clientFor(server.url, { credentials });
  server.handler = (request, response) =>
    request.headers.authorization === 'Bearer new'
      ? answerJson(response, 200, { ok: true })
      : answerJson(response, 401, { kind: 'Status', message: 'Unauthorized', reason: 'Unauthorized' });
  assert.deepEqual(await client.request({ method: 'GET', path: '/api/v1/nodes/n' }), { ok: true });
  assert.equal(server.requests.length, 2);
});

test('follows watch events of any shape only as far as they are events', async () => {
  await using server = await startTestServer({ pair });
  using client = clientFor(server.url);
  for (const line of [
    'nonsense',
    '42',
    'null',
    '[]',
    '{"type":1,"object":{}}',
    '{"type":"ADDED"}',
    '{"object":{}}',
  ]) {
    server.handler = (_request, response) => {
      response.writeHead(200);
      response.end(`${line}\n`);
    };
    await assert.rejects(
      collectWatch(client, AbortSignal.timeout(5000)),
      apiError((error) => assert.equal(error.reason, 'BadEvent', line)),
    );
  }
});

describe('clear words for', () => {
  const ask = (client: Http2ApiClient) =>
    client.request({ method: 'GET', path: '/api/v1/nodes/n', timeoutMs: 5000 });

  test('a server that is not there, logged once for all callers, and its return', async () => {
    const server = await startTestServer({ pair });
    const { url } = server;
    await server[Symbol.asyncDispose]();
    const lines: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      warn: (message: string, fields?: LogFields) => void lines.push(`${message}: ${String(fields?.err)}`),
      info: (message: string) => void lines.push(message),
    };
    using client = clientFor(url, { logger });
    const refused = apiError((error) => {
      assert.equal(error.unreachable, true);
      assert.match(
        error.message,
        /^cannot get nodes n: API server https:\S+ cannot be reached: connection refused/,
      );
      assert.match(error.message, /the address in \/etc\/kubernetes\/kubelet.conf/);
    });
    await Promise.all([1, 2, 3].map(() => assert.rejects(ask(client), refused)));
    await assert.rejects(ask(client), refused);
    await using _again = await startTestServer({ pair, port: Number(new URL(url).port) });
    await ask(client);
    assert.equal(lines.length, 2, lines.join('\n'));
    assert.match(lines[0]!, /^The API server cannot be reached: API server/);
    assert.equal(lines[1], 'The API server can be reached again');
  });

  const hour = 3_600_000;
  const past = new Date(Date.now() - hour);
  const future = new Date(Date.now() + hour);
  const cases: [string, () => Promise<TestPair>, object, RegExp][] = [
    [
      'an authority that is not trusted',
      async () => (await createTestAuthority('other')).issue({ name: 's', hosts: ['127.0.0.1'] }),
      {},
      /not signed by an authority that \/etc\S+ trusts: put the cluster's CA/,
    ],
    [
      'a certificate for another name',
      () => authority.issue({ name: 's', hosts: ['10.9.9.9', 'elsewhere.test'] }),
      {},
      /is for other names .*10\.9\.9\.9.*or set tls-server-name/,
    ],
    [
      'a server certificate that has expired',
      () => authority.issue({ name: 's', hosts: ['127.0.0.1'], notAfter: past }),
      {},
      /has expired, seen from this machine's clock \(20/,
    ],
    [
      'a clock that is behind',
      () => authority.issue({ name: 's', hosts: ['127.0.0.1'], notBefore: future }),
      {},
      /is not valid yet.*the clock is behind; set it/,
    ],
  ];
  for (const [name, issue, tls, expected] of cases)
    test(name, async () => {
      await using server = await startTestServer({ pair: await issue() });
      using client = clientFor(server.url, { tls });
      await assert.rejects(
        ask(client),
        apiError((error) => assert.match(error.message, expected)),
      );
    });

  test('TLS asked of a server that speaks none', async () => {
    await using server = await startTestServer({ protocol: 'plain' });
    using client = clientFor(server.url.replace('http:', 'https:'));
    await assert.rejects(ask(client), /does not speak TLS/);
  });

  test('credentials that are missing', async () => {
    await using server = await startTestServer({ pair });
    const credentials: CredentialSource = {
      ...anonymous,
      current: () => Promise.reject(new CredentialError('token file /t cannot be read')),
    };
    using client = clientFor(server.url, { credentials });
    await assert.rejects(ask(client), /cannot get nodes n: token file \/t cannot be read/);
  });

  test('an expired client certificate, and missing rights', async () => {
    await using server = await startTestServer({ pair });
    using client = clientFor(server.url, {
      credentials: { ...anonymous, weakness: () => 'the client certificate expired' },
    });
    server.handler = (_request, response) => answerJson(response, 401, { message: 'Unauthorized' });
    await assert.rejects(ask(client), /Unauthorized; the client certificate expired/);
    server.handler = (_request, response) => answerJson(response, 403, { message: 'nodes "n" is forbidden' });
    await assert.rejects(ask(client), /lacks rights: its certificate must say O=system:nodes/);
  });
});

test('trusts what the kubeconfig says to trust', async () => {
  const other: TestServer = await startTestServer({
    pair: await authority.issue({ name: 's', hosts: ['kubernetes.test'] }),
  });
  await using server = other;
  using named = clientFor(server.url, { tls: { tlsServerName: 'kubernetes.test' } });
  await named.request({ method: 'GET', path: '/version' });
  // A name is looked up, which is measured; an address is not.
  const metrics = new MetricsRegistry();
  const lookups = async () =>
    /^rest_client_dns_resolution_duration_seconds_count\{.*\} \d+$/m.exec(await metrics.exposition())?.[0];
  using byAddress = clientFor(server.url, { metrics, tls: { tlsServerName: 'kubernetes.test' } });
  await byAddress.request({ method: 'GET', path: '/version' });
  assert.equal(await lookups(), undefined);
  const url = server.url.replace('127.0.0.1', 'localhost');
  using byName = clientFor(url, { metrics, tls: { tlsServerName: 'kubernetes.test' } });
  await byName.request({ method: 'GET', path: '/version' });
  assert.equal(await lookups(), 'rest_client_dns_resolution_duration_seconds_count{host="localhost"} 1');
  using insecure = clientFor(server.url, { tls: { authority: undefined, insecureSkipTlsVerify: true } });
  await insecure.request({ method: 'GET', path: '/version' });
});

test('a peer that dies without a word is noticed within 15 s', async () => {
  await using server = await startTestServer({ pair });
  const clock = new VirtualClock();
  const frozen: Socket[] = [];
  const relay = createServer((near) => {
    const far = connect(Number(new URL(server.url).port), '127.0.0.1');
    near.pipe(far);
    far.pipe(near);
    for (const socket of [near, far]) frozen.push(socket.on('error', () => {}));
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  await using _relay = {
    async [Symbol.asyncDispose]() {
      for (const socket of frozen) socket.destroy();
      await new Promise((resolve) => relay.close(resolve));
    },
  };
  using client = clientFor(`https://127.0.0.1:${(relay.address() as AddressInfo).port}`, { clock });
  server.handler = (_request, response) => {
    response.writeHead(200);
    response.write('{"type":"ADDED","object":{"n":1}}\n');
  };
  const begun = Promise.withResolvers<void>();
  let over = false;
  const watching = collectWatch(client, new AbortController().signal, () => begun.resolve());
  void watching.then(() => {
    over = true;
  });
  await begun.promise;
  // Alive: pings are answered for as long as it takes.
  for (let n = 0; n < 3; n++) {
    await clock.advance(10_000);
    while ((clock.nextTimer() ?? 0) < clock.now() + 10_000) await settle();
  }
  assert.equal(over, false);
  for (const socket of frozen) {
    socket.unpipe();
    socket.pause();
  }
  await clock.advance(14_999);
  assert.equal(over, false);
  await clock.advance(1);
  await watching;
});

/** When the kernel will next ask the peer of the socket from `port` whether it is there, milliseconds. */
async function keepAliveDueMs(port: number): Promise<number | undefined> {
  const lines = (await readFile('/proc/self/net/tcp', 'utf8')).trim().split('\n').slice(1);
  for (const line of lines) {
    const [, local = '', , , , timer = ''] = line.trim().split(/\s+/);
    if (Number.parseInt(local.split(':')[1] ?? '', 16) !== port) continue;
    const [kind, when = ''] = timer.split(':');
    // Timer 2 of the kernel's table is the keep-alive; it counts in hundredths of a second.
    return kind === '02' ? Number.parseInt(when, 16) * 10 : undefined;
  }
  return undefined;
}

for (const protocol of ['http/1.1', 'plain'] as const) {
  test(`over ${protocol} the kernel asks a silent peer within 5 s`, async () => {
    await using server = await startTestServer({ pair, protocol });
    using client = clientFor(server.url);
    const ports: (number | undefined)[] = [];
    server.handler = (request, response) => {
      ports.push(request.socket.remotePort);
      response.writeHead(200);
      response.write('{"type":"ADDED","object":{"n":1}}\n');
    };
    const end = new AbortController();
    const begun = Promise.withResolvers<void>();
    const watching = collectWatch(client, end.signal, () => begun.resolve());
    await begun.promise;
    const due = await keepAliveDueMs(ports[0] ?? 0);
    assert.ok(due !== undefined && due > 0 && due <= 5000, `due in ${due} ms`);
    end.abort(new Error('enough'));
    await assert.rejects(watching, /enough/);
  });
}
