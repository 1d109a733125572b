import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { before, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { systemClock } from '../concurrency/clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { silentMetrics } from '../telemetry/metrics.ts';
import { createApiClient } from './create-api-client.ts';
import { createTestAuthority, type TestAuthority, type TestPair } from './fixtures/test-certificates.ts';
import { startTestServer } from './fixtures/test-server.ts';
import type { Kubeconfig } from './kubeconfig.ts';
import type { Environment } from './proxy-environment.ts';

let authority: TestAuthority;
let pair: TestPair;
before(async () => {
  authority = await createTestAuthority();
  pair = await authority.issue({ name: 'kube-apiserver', hosts: ['192.0.2.7', 'kubernetes.test'] });
});

/** An HTTP proxy on loopback that leads to `target` whatever it is asked for, and writes down what that was. */
async function startProxy(target: number, options: { pair?: TestPair; answer?: string } = {}) {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const proxy = options.pair
    ? createSecureServer({ cert: options.pair.certificate, key: options.pair.key })
    : createServer();
  proxy.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})));
  proxy.on('connect', (request: IncomingMessage, near: Socket) => {
    asked.push(`${request.url} ${request.headers['proxy-authorization'] ?? ''}`.trim());
    near.on('error', () => {});
    if (options.answer) return void near.end(`HTTP/1.1 ${options.answer}\r\n\r\n`);
    const far = connect(target, '127.0.0.1', () => near.write('HTTP/1.1 200 Connection established\r\n\r\n'));
    sockets.add(far.on('error', () => {}));
    far.pipe(near);
    near.pipe(far);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    asked,
    port: (proxy.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

function clientOf(server: string, environment: Environment, proxyUrl?: string) {
  const kubeconfig: Kubeconfig = {
    path: '/etc/kubernetes/kubelet.conf',
    cluster: {
      name: 'test',
      server,
      authority: { pem: authority.certificate },
      insecureSkipTlsVerify: false,
      disableCompression: false,
      ...(proxyUrl !== undefined && { proxyUrl }),
    },
    user: { name: 'node' },
  } as Kubeconfig;
  const client = createApiClient(kubeconfig, {
    userAgent: 'kubelet-ts/test',
    qps: 50,
    burst: 100,
    clock: systemClock,
    random: () => 0,
    logger: silentLogger,
    metrics: silentMetrics,
    environment,
  });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

const ask = (client: ReturnType<typeof clientOf>) =>
  client.request({ method: 'GET', path: '/version', timeoutMs: 5000 });

test('the way to the server leads through the proxy of the environment, heartbeats too', async () => {
  await using server = await startTestServer({ pair });
  const port = Number(new URL(server.url).port);
  await using proxy = await startProxy(port);
  for (const host of ['kubernetes.test', '192.0.2.7']) {
    using client = clientOf(`https://${host}:6443`, {
      HTTPS_PROXY: `http://me:p%40ss@127.0.0.1:${proxy.port}`,
    });
    await ask(client);
    await client.request({ method: 'GET', path: '/version', priority: 'heartbeat', timeoutMs: 5000 });
  }
  const login = `Basic ${Buffer.from('me:p@ss').toString('base64')}`;
  assert.deepEqual(
    proxy.asked,
    ['kubernetes.test', 'kubernetes.test', '192.0.2.7', '192.0.2.7'].map((host) => `${host}:6443 ${login}`),
  );
});

test('proxy-url of the kubeconfig beats the environment', async () => {
  await using server = await startTestServer({ pair });
  await using proxy = await startProxy(Number(new URL(server.url).port));
  const environment = { HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '*' };
  using client = clientOf('https://kubernetes.test:6443', environment, `http://127.0.0.1:${proxy.port}`);
  await ask(client);
  assert.deepEqual(proxy.asked, ['kubernetes.test:6443']);
});

test('a proxy that is away or refuses is named, with the remedy', async () => {
  await using server = await startTestServer({ pair });
  const port = Number(new URL(server.url).port);
  const proxy = await startProxy(port, { answer: '407 Proxy Authentication Required' });
  using refused = clientOf('https://kubernetes.test:6443', { https_proxy: `127.0.0.1:${proxy.port}` });
  await assert.rejects(ask(refused), /refused: HTTP\/1\.1 407 .*NO_PROXY in the agent's environment/);
  await proxy[Symbol.asyncDispose]();
  using away = clientOf('https://kubernetes.test:6443', { https_proxy: `127.0.0.1:${proxy.port}` });
  await assert.rejects(ask(away), /proxy 127\.0\.0\.1:\d+ does not let us connect \(.*ECONNREFUSED/);
});

test('a proxy that itself speaks TLS has to be trusted by the machine', async () => {
  await using server = await startTestServer({ pair });
  const own = await authority.issue({ name: 'proxy', hosts: ['127.0.0.1'] });
  await using proxy = await startProxy(Number(new URL(server.url).port), { pair: own });
  // The cluster's authority says nothing about proxies.
  using client = clientOf('https://kubernetes.test:6443', { HTTPS_PROXY: `https://127.0.0.1:${proxy.port}` });
  await assert.rejects(ask(client), /proxy 127\.0\.0\.1:\d+ does not let us connect/);
  assert.deepEqual(proxy.asked, []);

  const machine = getCACertificates('default');
  setDefaultCACertificates([...machine, authority.certificate]);
  try {
    using trusting = clientOf('https://192.0.2.7:6443', { HTTPS_PROXY: `https://127.0.0.1:${proxy.port}` });
    await ask(trusting);
  } finally {
    setDefaultCACertificates(machine);
  }
  assert.deepEqual(proxy.asked, ['192.0.2.7:6443']);
});
