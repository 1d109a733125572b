import assert from 'node:assert/strict';
import { Agent, get, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { silentMetrics } from '../telemetry/metrics.ts';
import { type CoreRoutesInput, coreRoutes } from './core-routes.ts';
import type { HealthCheck } from './health-checks.ts';
import { startHealthServer } from './health-server.ts';
import { ListenError, type RunningServer } from './http-listener.ts';
import { startReadOnlyServer } from './read-only-server.ts';
import { RequestMeter } from './request-meter.ts';

interface Answer {
  status: number;
  text: string;
  headers: IncomingMessage['headers'];
}

function ask(server: RunningServer, path: string, method = 'GET', headers = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: server.port, path, method, headers, agent: false } as const;
    httpRequest(options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text, headers: response.headers }),
      );
      response.on('error', reject);
    })
      .on('error', reject)
      .end();
  });
}

const loopback = { address: '127.0.0.1', port: 0, log: silentLogger };
const failing: HealthCheck = { name: 'syncloop', check: () => 'no progress for 3m' };
const broken: HealthCheck = { name: 'log', check: () => Promise.reject(new Error('disk full')) };

async function health(t: TestContext, checks: HealthCheck[], clock = new VirtualClock()) {
  const server = await startHealthServer({ ...loopback, checks, clock });
  t.after(() => server.close());
  return server;
}

function pod(name: string, size = 0): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: name, annotations: { size: 'x'.repeat(size) } },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      containers: [],
    },
    status: { phase: 'Running' },
  };
}

async function readOnly(t: TestContext, options: Partial<CoreRoutesInput> = {}) {
  const clock = new VirtualClock();
  const routes = coreRoutes({
    clock,
    log: silentLogger,
    checks: [],
    pods: () => [],
    metrics: { exposition: async () => 'up 1\n' },
    probeMetrics: { exposition: async () => 'prober 1\n' },
    ...options,
  });
  const { log = silentLogger } = options;
  const server = await startReadOnlyServer({
    ...loopback,
    clock,
    log,
    routes,
    meter: new RequestMeter({ routes, metrics: silentMetrics, clock }),
  });
  t.after(() => server.close());
  return server;
}

describe('the health server', () => {
  it('says ok, or which check fails', async (t) => {
    const good = await health(t, []);
    const ok = await ask(good, '/healthz');
    assert.deepEqual(
      [ok.status, ok.text, ok.headers['content-type']],
      [200, 'ok', 'text/plain; charset=utf-8'],
    );
    assert.equal((await ask(good, '/healthz/ping')).text, 'ok');
    assert.equal((await ask(good, '/healthz?verbose')).text, '[+]ping ok\nhealthz check passed\n');

    const bad = await health(t, [broken, failing]);
    const answer = await ask(bad, '/healthz');
    assert.equal(answer.status, 500);
    assert.equal(
      answer.text,
      '[+]ping ok\n[-]log failed: reason withheld\n[-]syncloop failed: reason withheld\nhealthz check failed\n',
    );
    const one = await ask(bad, '/healthz/log');
    assert.deepEqual([one.status, one.text], [500, 'internal server error: disk full\n']);
  });

  it('leaves out excluded checks and warns of those it does not know', async (t) => {
    const server = await health(t, [failing]);
    assert.equal((await ask(server, '/healthz?exclude=syncloop')).text, 'ok');
    const { text } = await ask(server, '/healthz?verbose&exclude=syncloop&exclude=other');
    assert.match(text, /^\[\+\]syncloop excluded: ok$/m);
    assert.match(text, /^warn: some health checks cannot be excluded: no matches for "other"$/m);
  });

  it('does not wait for a check that hangs', async (t) => {
    const clock = new VirtualClock();
    let asked = () => {};
    const started = new Promise<void>((resolve) => (asked = resolve));
    const hangs: HealthCheck = { name: 'hangs', check: () => (asked(), new Promise(() => {})) };
    const server = await health(t, [hangs], clock);
    const answer = ask(server, '/healthz/hangs');
    await started;
    await clock.advance(5000);
    assert.match((await answer).text, /no result within 5 s/);
  });

  it('knows nothing else, and only reading', async (t) => {
    const server = await health(t, []);
    for (const path of [
      '/',
      '/healthz/',
      '/healthz/other',
      '/pods',
      '/healthzz',
      '//healthz',
      '/healthz%00',
    ]) {
      assert.deepEqual([(await ask(server, path)).status, path], [404, path]);
    }
    const post = await ask(server, '/healthz', 'POST');
    assert.deepEqual([post.status, post.headers.allow], [405, 'GET']);
    const head = await ask(server, '/healthz', 'HEAD');
    assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '2']);
  });

  it('tells which flag to change when its address cannot be used', async (t) => {
    const { port } = await health(t, []);
    const clock = new VirtualClock();
    await assert.rejects(startHealthServer({ ...loopback, port, checks: [], clock }), (error) => {
      assert.ok(error instanceof ListenError);
      assert.match(
        error.message,
        new RegExp(`health on 127\\.0\\.0\\.1:${port}: port ${port} is in use.*--healthz-port`),
      );
      return true;
    });
    await assert.rejects(
      startHealthServer({ ...loopback, address: '192.0.2.1', checks: [], clock }),
      /no address 192\.0\.2\.1; choose one that it has with --healthz-bind-address/,
    );
  });

  it('closes although a client keeps its connection', async (t) => {
    const server = await health(t, []);
    const agent = new Agent({ keepAlive: true });
    await new Promise((resolve) =>
      get({ host: '127.0.0.1', port: server.port, path: '/healthz', agent }, (response) => {
        response.resume().on('end', resolve);
      }),
    );
    await server.close();
    agent.destroy();
    await assert.rejects(ask(server, '/healthz'), /ECONNREFUSED/);
  });

  /** A server with a request that waits for its check to be finished. */
  async function waiting() {
    const clock = new VirtualClock();
    const check = Promise.withResolvers<undefined>();
    const asked = Promise.withResolvers<void>();
    const slow: HealthCheck = { name: 'slow', check: () => (asked.resolve(), check.promise) };
    const server = await startHealthServer({ ...loopback, checks: [slow], clock });
    const socket = connect(server.port, '127.0.0.1');
    const answer = Promise.withResolvers<string>();
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString())).on('error', () => {});
    socket.on('close', () => answer.resolve(text));
    socket.write('GET /healthz/slow HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    await asked.promise;
    return { clock, server, answer: answer.promise, finish: () => check.resolve(undefined) };
  }

  it('lets an answer end while it closes', async () => {
    const { server, answer, finish } = await waiting();
    const closed = server.close();
    finish();
    assert.match(await answer, /200 OK[^]*ok$/);
    await closed;
  });

  it('does not wait for ever when it closes', async () => {
    const { clock, server, answer } = await waiting();
    const closed = server.close();
    await clock.advance(2000);
    assert.equal(await answer, '');
    await closed;
  });
});

describe('the read-only server', () => {
  it('lists pods as a PodList', async (t) => {
    const server = await readOnly(t, { pods: () => [pod('a'), pod('b')] });
    const { status, text, headers } = await ask(server, '/pods');
    assert.deepEqual([status, headers['content-type']], [200, 'application/json']);
    assert.deepEqual(JSON.parse(text), {
      kind: 'PodList',
      apiVersion: 'v1',
      metadata: {},
      items: ['a', 'b'].map((name) => {
        const { kind, apiVersion, ...item } = pod(name);
        return item;
      }),
    });
    assert.deepEqual(JSON.parse((await ask(await readOnly(t), '/pods')).text).items, []);
    assert.equal((await ask(server, '/pods', 'HEAD')).status, 200);
  });

  it('writes a large list whole, piece by piece, and gives up when the reader leaves', async (t) => {
    const made: string[] = [];
    function* pods() {
      for (let n = 0; n < 200; n++) {
        made.push(`p${n}`);
        yield pod(`p${n}`, 100_000);
      }
    }
    const errors: string[] = [];
    const log = { ...silentLogger, error: (message: string) => errors.push(message), with: () => log };
    const server = await readOnly(t, { pods, log });
    assert.equal(JSON.parse((await ask(server, '/pods')).text).items.length, 200);

    const socket = connect(server.port, '127.0.0.1').pause();
    socket.write('GET /pods HTTP/1.1\r\nhost: x\r\n\r\n');
    made.length = 0;
    while (made.length === 0) await new Promise(setImmediate);
    for (let turn = 0, before = -1; turn < 50 || made.length !== before; turn++) {
      before = made.length;
      await new Promise(setImmediate);
    }
    assert.ok(made.length < 200, `a reader that does not read got ${made.length} pods`);
    socket.destroy();
    assert.equal((await ask(server, '/healthz')).text, 'ok');
    assert.deepEqual(errors, []);
  });

  it('gives health and metrics', async (t) => {
    const server = await readOnly(t, { checks: [failing] });
    assert.equal((await ask(server, '/healthz')).status, 500);
    assert.equal((await ask(server, '/healthz/ping')).text, 'ok');
    const { text, headers } = await ask(server, '/metrics');
    assert.deepEqual([text, headers['content-type']], ['up 1\n', 'text/plain; version=0.0.4; charset=utf-8']);
  });

  it('gives metrics as the scraper wants them', async (t) => {
    const long = `long ${'1'.repeat(2000)}\n`;
    const server = await readOnly(t, { metrics: { exposition: async () => long } });
    const open = { accept: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5' };
    const asked = await ask(server, '/metrics', 'GET', open);
    assert.ok(asked.headers['content-type']?.startsWith('application/openmetrics-text; version=1.0.0'));
    assert.equal(asked.text, `${long}# EOF\n`);
    // As on a kubelet, only /metrics has the other format.
    assert.equal((await ask(server, '/metrics/probes', 'GET', open)).text, 'prober 1\n');
    for (const [accepted, packed] of [
      ['gzip', 'gzip'],
      ['deflate, gzip;q=0.5', 'gzip'],
      ['gzip;q=0', undefined],
      ['identity', undefined],
    ] as const) {
      const answer = await fetch(`http://127.0.0.1:${server.port}/metrics`, {
        headers: { 'accept-encoding': accepted },
      });
      assert.equal(answer.headers.get('content-encoding') ?? undefined, packed, accepted);
      assert.equal(await answer.text(), long);
    }
  });

  it('counts what becomes of health checks, from when it is told to', async (t) => {
    const server = await readOnly(t, { checks: [failing] });
    for (const path of ['/healthz', '/healthz/ping', '/healthz/other']) await ask(server, path);
    const samples = async () =>
      (await ask(server, '/metrics/slis')).text
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'));
    assert.deepEqual(await samples(), [
      'kubernetes_healthcheck{name="ping",type="healthz"} 1',
      'kubernetes_healthcheck{name="syncloop",type="healthz"} 0',
      'kubernetes_healthchecks_total{name="ping",type="healthz",status="success"} 2',
      'kubernetes_healthchecks_total{name="syncloop",type="healthz",status="error"} 1',
    ]);
    assert.equal((await ask(server, '/metrics/slis', 'DELETE')).status, 200);
    assert.deepEqual(await samples(), []);
  });

  it('refuses what would change or run something', async (t) => {
    const server = await readOnly(t);
    for (const path of [
      '/run/ns/pod/c',
      '/exec/ns/pod/c',
      '/attach/x',
      '/portForward/x',
      '/containerLogs/x',
      '/runningpods/',
      '/debug/pprof/heap',
      '/logs/',
    ]) {
      for (const method of ['GET', 'POST']) {
        const { status, text } = await ask(server, path, method);
        assert.deepEqual([status, text, path], [405, 'Debug endpoints are disabled.\n', path]);
      }
    }
    assert.equal((await ask(server, '/pods', 'DELETE')).status, 405);
    assert.equal((await ask(server, '/configz')).status, 404);
  });

  it('answers 500 when it fails, and goes on', async (t) => {
    const exposition = () => Promise.reject(new Error('no'));
    const server = await readOnly(t, { metrics: { exposition } });
    const { status, text } = await ask(server, '/metrics');
    assert.deepEqual([status, text], [500, 'Internal Error: see the log of the kubelet']);
    assert.equal((await ask(server, '/healthz')).text, 'ok');
  });

  it('refuses headers beyond a megabyte and lines that are not HTTP', async (t) => {
    const server = await readOnly(t);
    assert.equal((await ask(server, '/pods', 'GET', { big: 'x'.repeat(500_000) })).status, 200);
    assert.equal((await ask(server, '/pods', 'GET', { big: 'x'.repeat(1_100_000) })).status, 431);
    const socket = connect(server.port, '127.0.0.1');
    socket.end('rubbish\r\n\r\n');
    const text = await new Promise<string>((resolve) => {
      let all = '';
      socket.on('data', (chunk) => (all += chunk.toString())).on('close', () => resolve(all));
    });
    assert.match(text, /^HTTP\/1\.1 400 /);
  });
});
