import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ApiError } from '../client/api-client.ts';
import { type Clock, systemClock } from '../concurrency/clock.ts';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { type LogFields, type Logger, silentLogger } from '../telemetry/logger.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { type BootstrapOptions, ensureKubeconfig } from './bootstrap.ts';
import { CertificateStore } from './certificate-store.ts';
import { ClientCertificateRotation, withRotatedCertificate } from './client-certificate.ts';
import { SigningCluster } from './fixtures/signing-cluster.ts';
import { temporaryDirectory } from './fixtures/temporary-directory.ts';

const bootstrapKubeconfig = (authority: string) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    clusters: [
      {
        name: 'k',
        cluster: {
          server: 'https://10.0.0.1:6443',
          'certificate-authority-data': Buffer.from(authority).toString('base64'),
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'abcdef.0123456789abcdef' } }],
  });

function recording(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (message: string, fields?: LogFields) =>
      void lines.push(`${message} ${Object.values(fields ?? {}).join(' ')}`),
    error: (message: string, error: unknown) => void lines.push(`${message}: ${(error as Error).message}`),
    with: () => logger,
  };
  return { logger, lines };
}

async function world(directory: string, clock: Clock = systemClock) {
  const cluster = await SigningCluster.start();
  const bootstrapKubeconfigPath = join(directory, 'bootstrap.conf');
  await writeFile(bootstrapKubeconfigPath, bootstrapKubeconfig(cluster.authority.certificate));
  const { logger, lines } = recording();
  const store = new CertificateStore({ directory: join(directory, 'pki'), name: 'kubelet-client', clock });
  const options: BootstrapOptions = {
    kubeconfigPath: join(directory, 'etc', 'kubelet.conf'),
    bootstrapKubeconfigPath,
    store,
    nodeName: 'worker-1',
    createClient: () => cluster,
    clock,
    random: () => 0,
    logger,
  };
  return { cluster, store, options, lines };
}

test('a node without anything joins with a bootstrap token', async () => {
  await using directory = await temporaryDirectory();
  const { cluster, store, options } = await world(directory.path);
  const kubeconfig = await ensureKubeconfig(options, new AbortController().signal);
  assert.equal(kubeconfig.cluster.server, 'https://10.0.0.1:6443');
  assert.deepEqual(kubeconfig.cluster.authority, { pem: cluster.authority.certificate });
  assert.deepEqual(kubeconfig.user.clientCertificate, {
    certificate: { file: store.currentPath },
    key: { file: store.currentPath },
  });
  assert.equal(((await stat(options.kubeconfigPath)).mode & 0o777).toString(8), '600');
  assert.equal(((await stat(store.currentPath)).mode & 0o777).toString(8), '600');
  assert.match(await readlink(store.currentPath), /^kubelet-client-\d{4}(-\d\d){5}\.pem$/);
  const text = await readFile(store.currentPath, 'utf8');
  assert.ok(text.indexOf('BEGIN CERTIFICATE') < text.indexOf('BEGIN EC PRIVATE KEY'));
  assert.equal(new X509Certificate(text).subject, 'O=system:nodes\nCN=system:node:worker-1');
  const { spec } = cluster.requests.get(cluster.filed[0]!)!;
  assert.equal(spec.signerName, 'kubernetes.io/kube-apiserver-client-kubelet');
  assert.deepEqual(spec.usages, ['digital signature', 'client auth']);
  assert.equal(cluster.closed, 1);
  // The second start asks for nothing.
  await ensureKubeconfig(options, new AbortController().signal);
  assert.equal(cluster.filed.length, 1);
});

test('a node that was off past the end of its certificate joins again by itself', async () => {
  await using directory = await temporaryDirectory();
  const { cluster, store, options } = await world(directory.path);
  cluster.validity = { from: new Date(Date.now() - 7200_000), to: new Date(Date.now() - 3600_000) };
  await mkdir(join(directory.path, 'etc'));
  const expired = await cluster.authority.issue({
    name: 'system:node:worker-1',
    organization: 'system:nodes',
    notBefore: new Date(Date.now() - 7200_000),
    notAfter: new Date(Date.now() - 3600_000),
  });
  await store.save(expired.certificate, expired.key);
  const conf = JSON.parse(bootstrapKubeconfig(cluster.authority.certificate));
  conf.users[0].user = { 'client-certificate': store.currentPath, 'client-key': store.currentPath };
  await writeFile(options.kubeconfigPath, JSON.stringify(conf));
  cluster.validity = undefined;
  const kubeconfig = await ensureKubeconfig(options, new AbortController().signal);
  assert.ok((await store.current())!.notAfter > Date.now());
  assert.equal(kubeconfig.context, 'c', 'the kubeconfig itself was left alone');
});

test('a kubeconfig that works, or is wrong, is left alone', async () => {
  await using directory = await temporaryDirectory();
  const { cluster, options } = await world(directory.path);
  await mkdir(join(directory.path, 'etc'));
  await writeFile(options.kubeconfigPath, bootstrapKubeconfig(cluster.authority.certificate));
  assert.equal(
    (await ensureKubeconfig(options, new AbortController().signal)).user.token,
    'abcdef.0123456789abcdef',
  );
  await writeFile(options.kubeconfigPath, '{ kind: Nonsense }');
  await assert.rejects(
    ensureKubeconfig(options, new AbortController().signal),
    /kind is Nonsense, not Config/,
  );
  assert.equal(cluster.filed.length, 0);
});

test('without a bootstrap kubeconfig a missing kubeconfig is an error that says what to do', async () => {
  await using directory = await temporaryDirectory();
  const { options } = await world(directory.path);
  const { bootstrapKubeconfigPath: _none, ...without } = options;
  await assert.rejects(
    ensureKubeconfig(without, new AbortController().signal),
    /kubelet.conf cannot be read: there is no such file: correct --kubeconfig, or give --bootstrap-kubeconfig/,
  );
});

test('a restart goes on with the same key and request', async () => {
  await using directory = await temporaryDirectory();
  const { cluster, options, store } = await world(directory.path);
  cluster.approves = false;
  const first = new AbortController();
  const before = ensureKubeconfig(options, first.signal);
  before.catch(() => {});
  while (cluster.filed.length === 0) await new Promise((resolve) => setImmediate(resolve));
  first.abort(new Error('killed'));
  await assert.rejects(before, /killed/);
  const again = ensureKubeconfig(options, new AbortController().signal);
  await cluster.approve(cluster.filed[0]!);
  await again;
  assert.equal(cluster.filed.length, 1);
  assert.ok(await store.current());
  assert.equal(await store.pendingKey(), undefined);
});

/** Runs real file work between the steps of a virtual clock. */
async function until(condition: () => boolean, step: () => Promise<void>): Promise<void> {
  for (let n = 0; n < 2000; n++) {
    if (condition()) return;
    await step();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.fail('it never came about');
}

test('nobody approves: said once a minute, with the command; denied: asked again with another key', async () => {
  await using directory = await temporaryDirectory();
  const clock = new VirtualClock(Date.now());
  const { cluster, options, lines } = await world(directory.path, clock);
  cluster.approves = false;
  cluster.faults = [new ApiError({ status: 0, reason: 'Unreachable', message: 'API server is away' })];
  const joining = ensureKubeconfig(options, new AbortController().signal);
  await until(
    () => cluster.filed.length === 1,
    () => clock.advance(100),
  );
  // A server that is away the client tells of.
  assert.deepEqual(lines, []);
  const [name] = cluster.filed;
  for (let n = 0; n < 30; n++) await clock.advance(10_000);
  const notices = [...lines];
  assert.ok(notices.length >= 4 && notices.length <= 5, `${notices.length} notices in five minutes`);
  assert.match(notices[0]!, new RegExp(`waits for approval.*kubectl certificate approve ${name}`));
  cluster.refuse(name!, 'Denied');
  await until(
    () => cluster.filed.length === 2,
    () => clock.advance(1000),
  );
  assert.match(lines.at(-1)!, /was denied \(Policy: not today\): ask whoever approves/);
  assert.notEqual(cluster.filed[1], name);
  await cluster.approve(cluster.filed[1]!);
  let joined = false;
  void joining.then(() => {
    joined = true;
  });
  await until(
    () => joined,
    () => clock.advance(100),
  );
});

test('rotates between 70 % and 90 % of the lifetime, and bootstraps anew when it has expired', async () => {
  await using directory = await temporaryDirectory();
  const start = Date.now();
  const clock = new VirtualClock(start);
  const { cluster, store, options } = await world(directory.path, clock);
  const hour = 3600_000;
  const lifetime = (hours: number) => ({
    from: new Date(Math.floor(clock.now() / 1000) * 1000),
    to: new Date(Math.floor(clock.now() / 1000) * 1000 + hours * hour),
  });
  cluster.validity = lifetime(10);
  const kubeconfig = await ensureKubeconfig(options, new AbortController().signal);
  assert.deepEqual(await withRotatedCertificate(kubeconfig, store), kubeconfig);
  const metrics = new MetricsRegistry();
  let bootstraps = 0;
  const rotation = new ClientCertificateRotation({
    store,
    nodeName: 'worker-1',
    client: cluster,
    bootstrapClient: async () => {
      bootstraps++;
      return cluster;
    },
    clock,
    random: () => 0.5,
    logger: silentLogger,
    metrics,
  });
  const renewErrors = async () => {
    const text = await metrics.exposition();
    return Number(/^kubelet_certificate_manager_client_expiration_renew_errors (\d+)$/m.exec(text)?.[1]);
  };
  const controller = new AbortController();
  const running = rotation.run(controller.signal);
  await until(
    () => rotation.rotateAt > 0,
    () => clock.advance(0),
  );
  assert.ok(Math.abs(rotation.rotateAt - start - 8 * hour) < 2000, 'the middle of 7 and 9 hours');
  await clock.advance(8 * hour - 60_000);
  assert.equal(cluster.filed.length, 1);
  cluster.validity = lifetime(10);
  await until(
    () => cluster.filed.length === 2,
    () => clock.advance(60_000),
  );
  await until(
    () => rotation.rotateAt > clock.now(),
    () => clock.advance(0),
  );
  assert.equal(bootstraps, 0);
  assert.equal(await renewErrors(), 0);
  // The server is away until the certificate is long gone.
  cluster.away = true;
  const { notAfter } = (await store.current())!;
  await until(
    () => clock.now() > notAfter && bootstraps > 0,
    () => clock.advance(10 * 60_000),
  );
  assert.ok((await renewErrors()) > 1, 'each failure is counted');
  cluster.away = false;
  cluster.validity = lifetime(10);
  await until(
    () => cluster.filed.length === 3,
    () => clock.advance(10_000),
  );
  controller.abort();
  await running;
});
