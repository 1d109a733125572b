/** Hundreds of pods that show one config map: followed once, read once, and every file follows it. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, it } from 'node:test';
import { VirtualClock } from '../../src/concurrency/virtual-clock.ts';
import type { Pod } from '../../src/kubernetes/types.ts';
import { ApiObjects } from '../../src/objects/api-objects.ts';
import { FakeApi } from '../../src/objects/fixtures/fake-api.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import { PodVolumes } from '../../src/volumes/pod-volumes.ts';
import { createVolumeKinds } from '../../src/volumes/volume-kinds.ts';

const { signal } = new AbortController();
const path = '/api/v1/namespaces/shop/configmaps';
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'shared-config-map-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function pod(index: number): Pod {
  return {
    metadata: { name: `web-${index}`, namespace: 'shop', uid: `uid-${index}` },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      containers: [{ name: 'main', volumeMounts: [{ name: 'config', mountPath: '/config' }] }],
      volumes: [{ name: 'config', configMap: { name: 'app' } }],
    },
  };
}
const shown = ({ metadata: { uid } }: Pod) =>
  readFileSync(join(root, 'pods', uid, 'volumes/kubernetes.io~configmap/config/app.conf'), 'utf8');

it('a change of a config map reaches the files of 300 pods by one watch, without a read and without time', async () => {
  const api = new FakeApi();
  const clock = new VirtualClock();
  const pods = new Map<string, Pod>(
    Array.from({ length: 300 }, (_, index) => [`uid-${index}`, pod(index)] as const),
  );
  const told: (readonly string[])[] = [];
  const refreshes: Promise<void>[] = [];
  const objects = new ApiObjects({
    client: api.client,
    createReflector: api.createReflector,
    strategy: 'Watch',
    onChange: (uids) => {
      told.push(uids);
      for (const uid of uids) refreshes.push(volumes.refresh(pods.get(uid)!));
    },
    clock,
    logger: silentLogger,
  });
  const volumes = new PodVolumes({
    rootDirectory: root,
    kinds: createVolumeKinds({ nodeAllocatableMemory: () => 0, contents: objects }),
  });
  api.set(path, { metadata: { name: 'app', namespace: 'shop' }, data: { 'app.conf': 'old' } });
  for (const one of pods.values()) objects.register(one);
  await Promise.all([...pods.values()].map((one) => volumes.setUp(one, signal)));
  assert.deepEqual(new Set([...pods.values()].map(shown)), new Set(['old']));

  api.set(path, { metadata: { name: 'app', namespace: 'shop' }, data: { 'app.conf': 'new' } });
  await Promise.all(refreshes);
  assert.deepEqual(new Set([...pods.values()].map(shown)), new Set(['new']));
  assert.deepEqual(
    told.map((uids) => uids.length),
    [300],
  );
  assert.equal(api.watches.size, 1);
  assert.deepEqual(
    api.requests.filter((request) => request.startsWith('GET')),
    [],
  );
  assert.equal(clock.nextTimer(), undefined);
  objects.close();
});
