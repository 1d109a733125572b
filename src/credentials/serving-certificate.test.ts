import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../concurrency/clock.ts';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { silentMetrics } from '../telemetry/metrics.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { CertificateStore } from './certificate-store.ts';
import { SigningCluster } from './fixtures/signing-cluster.ts';
import { temporaryDirectory } from './fixtures/temporary-directory.ts';
import { ServingCertificate, type ServingPair, selfSignedServingCertificate } from './serving-certificate.ts';

test('a self-signed certificate is made once, kept, and replaced when damaged or old', async () => {
  await using directory = await temporaryDirectory();
  let now = Date.now();
  const clock = { ...systemClock, now: () => now };
  const make = () =>
    selfSignedServingCertificate({
      directory: directory.path,
      hostName: 'worker-1',
      ips: ['10.0.0.7'],
      clock,
    });
  const first = await make();
  const leaf = new X509Certificate(first.certificate);
  assert.equal(leaf.subject, `CN=worker-1@${Math.floor(now / 1000)}`);
  assert.equal(leaf.checkHost('worker-1'), 'worker-1');
  assert.equal(leaf.checkIP('10.0.0.7'), '10.0.0.7');
  assert.equal(Math.round((leaf.validToDate.getTime() - now) / 86_400_000), 365);
  const mode = async (file: string) => ((await stat(join(directory.path, file))).mode & 0o777).toString(8);
  assert.deepEqual([await mode('kubelet.crt'), await mode('kubelet.key')], ['644', '600']);
  assert.deepEqual(await make(), first);
  await writeFile(join(directory.path, 'kubelet.key'), 'damaged');
  const second = await make();
  assert.notEqual(second.certificate, first.certificate);
  assert.equal(await readFile(join(directory.path, 'kubelet.crt'), 'utf8'), second.certificate);
  now += 360 * 86_400_000;
  assert.notEqual((await make()).certificate, second.certificate);
});

async function until(condition: () => boolean): Promise<void> {
  for (let n = 0; n < 5000; n++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.fail('it never came about');
}

test('the cluster signs for the addresses, and anew when they change', async () => {
  await using directory = await temporaryDirectory();
  const cluster = await SigningCluster.start();
  const store = new CertificateStore({
    directory: directory.path,
    name: 'kubelet-server',
    clock: systemClock,
  });
  const pairs: ServingPair[] = [];
  const create = () =>
    new ServingCertificate({
      store,
      client: cluster,
      nodeName: 'worker-1',
      onChange: (pair) => void pairs.push(pair),
      clock: systemClock,
      random: () => 0.5,
      logger: silentLogger,
      metrics: silentMetrics,
    });
  const serving = create();
  const controller = new AbortController();
  const running = serving.run(controller.signal);
  assert.equal(serving.current(), undefined);
  serving.setAddresses([{ type: 'Hostname', address: 'worker-1' }]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(cluster.filed.length, 0, 'nothing without an IP address');
  const addresses = [
    { type: 'InternalIP', address: '10.0.0.7' },
    { type: 'Hostname', address: 'worker-1' },
  ];
  serving.setAddresses(addresses);
  await until(() => pairs.length === 1);
  const { spec } = cluster.requests.get(cluster.filed[0]!)!;
  assert.equal(spec.signerName, 'kubernetes.io/kubelet-serving');
  assert.deepEqual(spec.usages, ['digital signature', 'server auth']);
  const leaf = new X509Certificate(serving.current()!.certificate);
  assert.equal(leaf.subject, 'O=system:nodes\nCN=system:node:worker-1');
  assert.equal(leaf.subjectAltName, 'DNS:worker-1, IP Address:10.0.0.7');
  serving.setAddresses(addresses.toReversed());
  cluster.approves = false;
  serving.setAddresses([{ type: 'InternalIP', address: '10.0.0.8' }]);
  await until(() => cluster.filed.length === 2);
  // Nobody approves, and the addresses change once more: the former request is given up.
  serving.setAddresses([{ type: 'InternalIP', address: '10.0.0.9' }]);
  await until(() => cluster.filed.length === 3);
  assert.equal(pairs.length, 1, 'the old one serves on');
  await cluster.approve(cluster.filed[2]!);
  await until(() => pairs.length === 2);
  assert.equal(new X509Certificate(pairs[1]!.certificate).subjectAltName, 'IP Address:10.0.0.9');
  controller.abort();
  await running;
  // A restart serves with what is stored and asks for nothing.
  const again = create();
  const second = new AbortController();
  again.setAddresses([{ type: 'InternalIP', address: '10.0.0.9' }]);
  const runningAgain = again.run(second.signal);
  await until(() => pairs.length === 3);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(cluster.filed.length, 3);
  second.abort();
  await runningAgain;
});

test('a request that nobody approves is said, with the command that approves it', async () => {
  await using directory = await temporaryDirectory();
  const cluster = await SigningCluster.start();
  cluster.approves = false;
  const clock = new VirtualClock();
  const told: string[] = [];
  const certificate = new ServingCertificate({
    client: cluster,
    nodeName: 'worker-1',
    store: new CertificateStore({ directory: directory.path, name: 'kubelet-server', clock }),
    onChange: () => assert.fail('there is no certificate'),
    logger: { ...silentLogger, warn: (message, fields) => told.push(`${message} ${JSON.stringify(fields)}`) },
    metrics: silentMetrics,
    clock,
    random: () => 0,
  });
  certificate.setAddresses([{ type: 'InternalIP', address: '10.0.0.7' }]);
  const end = new AbortController();
  const running = certificate.run(end.signal);
  await until(() => cluster.filed.length === 1);
  await settle();
  await clock.advance(15_000);
  end.abort(new Error('the test is over'));
  await running.catch(() => {});
  const name = cluster.filed[0];
  assert.equal(told.length, 1);
  assert.match(told[0] ?? '', /waits for approval.*kubernetes\.io\/kubelet-serving/);
  assert.ok(told[0]?.includes(`kubectl certificate approve ${name}`), told[0]);
});

test('each renewal that fails is counted', { timeout: 30_000 }, async () => {
  await using directory = await temporaryDirectory();
  const cluster = await SigningCluster.start();
  cluster.away = true;
  const clock = new VirtualClock();
  const metrics = new MetricsRegistry();
  const pairs: unknown[] = [];
  const certificate = new ServingCertificate({
    client: cluster,
    nodeName: 'worker-1',
    store: new CertificateStore({ directory: directory.path, name: 'kubelet-server', clock }),
    onChange: (pair) => pairs.push(pair),
    logger: silentLogger,
    metrics,
    clock,
    random: () => 0,
  });
  // Keys and signatures are made in real time, between failures the clock has to move.
  const count = async () => {
    await settle();
    await clock.advance(500);
    const text = await metrics.exposition();
    return Number(/^kubelet_server_expiration_renew_errors (\d+)$/m.exec(text)?.[1]);
  };
  certificate.setAddresses([{ type: 'InternalIP', address: '10.0.0.7' }]);
  const end = new AbortController();
  const running = certificate.run(end.signal);
  let counted = 0;
  while (counted < 2) counted = await count();
  cluster.away = false;
  while (pairs.length === 0) counted = await count();
  assert.equal(counted, 2);
  end.abort(new Error('the test is over'));
  await running.catch(() => {});
});
