import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startApiServer } from '../../test/fixtures/apiserver/start-api-server.ts';
import { createReflectors } from '../client/reflector.ts';
import { systemClock } from '../concurrency/clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { silentMetrics } from '../telemetry/metrics.ts';
import { CertificateStore } from './certificate-store.ts';
import { temporaryDirectory } from './fixtures/temporary-directory.ts';
import { nodeCredentials } from './node-credentials.ts';
import { ServingCertificate } from './serving-certificate.ts';

interface Pod {
  metadata: { name: string; namespace: string };
}

async function until(condition: () => boolean): Promise<void> {
  for (let n = 0; n < 5000; n++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  assert.fail('it never came about');
}

test('with a bootstrap token alone, a node joins an API server, follows its pods and serves with a signed certificate', async () => {
  await using directory = await temporaryDirectory();
  await using server = await startApiServer();
  server.addToken('abcdef.0123456789abcdef', {
    name: 'system:bootstrap:abcdef',
    groups: ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token'],
  });
  const bootstrapKubeconfig = join(directory.path, 'bootstrap.conf');
  await writeFile(
    bootstrapKubeconfig,
    server.kubeconfigFor('bootstrap', { token: 'abcdef.0123456789abcdef' }),
  );
  const client = {
    userAgent: 'kubelet-ts/test',
    qps: 50,
    burst: 100,
    clock: systemClock,
    random: () => 0.5,
    logger: silentLogger,
    metrics: silentMetrics,
  };
  const stop = new AbortController();
  const node = await nodeCredentials(
    {
      kubeconfig: join(directory.path, 'kubelet.conf'),
      bootstrapKubeconfig,
      certificateDirectory: join(directory.path, 'pki'),
      rotateCertificates: true,
      nodeName: 'node1',
      client,
    },
    stop.signal,
  );
  const running = [node.run(stop.signal)];
  await node.client.request({
    method: 'POST',
    path: '/api/v1/nodes',
    body: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node1' } },
  });
  const reflector = createReflectors({ ...client, client: node.client })<Pod>({
    path: '/api/v1/pods',
    query: { fieldSelector: 'spec.nodeName=node1' },
    onChange: () => {},
  });
  running.push(reflector.run(stop.signal));
  const create = (name: string) =>
    server.admin.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: { nodeName: 'node1', containers: [{ name: 'c', image: 'x' }] },
    });
  create('a');
  await until(() => reflector.get('default/a') !== undefined);
  server.faults.dropWatches();
  create('b');
  await until(() => reflector.get('default/b') !== undefined);
  server.faults.cutConnections();
  create('c');
  await until(() => reflector.get('default/c') !== undefined);
  server.faults.forgetHistory();
  server.faults.dropWatches();
  create('d');
  await until(() => reflector.get('default/d') !== undefined);
  const serving = new ServingCertificate({
    ...client,
    store: new CertificateStore({
      directory: join(directory.path, 'pki'),
      name: 'kubelet-server',
      clock: systemClock,
    }),
    client: node.client,
    nodeName: 'node1',
    onChange: () => {},
  });
  serving.setAddresses([
    { type: 'InternalIP', address: '10.0.0.7' },
    { type: 'Hostname', address: 'node1' },
  ]);
  running.push(serving.run(stop.signal));
  await until(() => serving.current() !== undefined);
  stop.abort();
  await Promise.all(running);
  node.client.close();
});
