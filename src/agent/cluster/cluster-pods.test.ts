import assert from 'node:assert/strict';
import { afterEach, beforeEach, it } from 'node:test';
import type { ApiClient } from '../../client/api-client.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { podAnnotations } from '../../kubernetes/pod-identity.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { MemoryApi } from '../../pods/fixtures/memory-api.ts';
import { testPod } from '../../pods/fixtures/pod-model.ts';
import { emptyMemory } from '../../pods/pod-view.ts';
import type { PodWorker } from '../../pods/pod-worker.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import { ClusterPods } from './cluster-pods.ts';
import type { AttachedRooms } from './membership.ts';

let api: MemoryApi;
let pods: ClusterPods;
let calls: string[];
let ready: boolean;
const workers = new Map<string, PodWorker>();
const end = new AbortController();

beforeEach(() => {
  api = new MemoryApi();
  calls = [];
  ready = false;
  workers.clear();
  pods = new ClusterPods({
    client: api as ApiClient,
    createReflector: ((options: Parameters<MemoryApi['reflector']>[0]) => api.reflector(options)) as never,
    nodeName: 'node',
    nodeUid: () => 'node-uid',
    references: {
      register: (pod) => calls.push(`register ${pod.metadata.uid}`),
      unregister: (uid) => calls.push(`unregister ${uid}`),
    },
    clock: new VirtualClock(),
    logger: silentLogger,
    metrics: silentMetrics,
  });
  const rooms: AttachedRooms = {
    workers: {
      get: (uid) => workers.get(uid),
      all: () => workers.values(),
      named: () => undefined,
      get ready() {
        return ready;
      },
      reconsider() {},
      wakeAll: () => void calls.push('wake all'),
    },
    volumes: { refresh: async ({ metadata }) => void calls.push(`refresh ${metadata.uid}`) },
  };
  pods.attach(rooms);
});
afterEach(() => pods.close());

const worker = (pod: Pod, terminal = false): void => {
  const memory = { ...emptyMemory, ...(terminal && { terminal: { phase: 'Failed' as const } }) };
  const retryObjects = () => calls.push(`retry ${pod.metadata.uid}`);
  workers.set(pod.metadata.uid, { pod, memory, retryObjects } as unknown as PodWorker);
};
const change = (...set: Pod[]) => ({ set, removed: [], ready });

it('a mirror whose static pod has gone while no agent ran is deleted once the workers know all pods', async () => {
  api.create({
    metadata: { name: 'old-node', namespace: 'default', annotations: { [podAnnotations.configMirror]: 'x' } },
    spec: { nodeName: 'node', containers: [{ name: 'web', image: 'web' }] },
  });
  const [source] = pods.sources([]);
  void source!.run(() => {}, end.signal);
  await settle();
  assert.deepEqual(api.calls(), []);
  pods.wanted(change());
  ready = true;
  pods.handedOver(change());
  await settle();
  assert.deepEqual(api.calls(), ['DELETE pods/old-node']);
});

it('new addresses of the node are shown by every pod', () => {
  pods.hostIpsChanged();
  assert.deepEqual(calls, ['wake all']);
});

it('what a pod refers to is followed while it lives, and its files follow its own labels', () => {
  const pod = testPod();
  const { uid } = pod.metadata;
  pods.wanted(change(pod));
  assert.deepEqual(calls.splice(0), [`register ${uid}`]);
  worker(pod);
  pods.wanted(change(pod));
  assert.deepEqual(calls.splice(0), [`register ${uid}`, `refresh ${uid}`]);
  pods.referencesChanged([uid, 'unknown']);
  assert.deepEqual(calls.splice(0), [`retry ${uid}`, `refresh ${uid}`]);
  worker(pod, true);
  pods.wanted(change(pod));
  assert.deepEqual(calls.splice(0), []);
  pods.gone(pod);
  assert.deepEqual(calls, [`unregister ${uid}`]);
});
