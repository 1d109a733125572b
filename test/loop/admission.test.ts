/** Admission in the whole loop: room for critical pods, and static pods that were refused. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { amountsOf } from '../../src/kubernetes/pod-resources.ts';
import type { PodSpec } from '../../src/kubernetes/types.ts';
import { PodAdmission } from '../../src/pods/admission/pod-admission.ts';
import { MemoryApi } from '../../src/pods/fixtures/memory-api.ts';
import type { EventRecorder } from '../../src/telemetry/events.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import { silentMetrics } from '../../src/telemetry/metrics.ts';
import { boundPod, startApiLoop } from './start-api-loop.ts';
import { assertNoTimers } from './start-loop.ts';
import { until } from './turns.ts';
import { filePod, World } from './world.ts';

let world: World;
let api: MemoryApi;
beforeEach(() => {
  world = new World();
  api = new MemoryApi();
});
afterEach(() => world.remove());

/** A node of one CPU. */
function admission(events: EventRecorder) {
  const node = {
    name: 'node',
    kernelRelease: '6.1.0',
    allocatable: amountsOf({ cpu: '1', memory: '1Gi', pods: '10' }),
    allowedUnsafeSysctls: [],
    strictGroups: false,
    appArmor: false,
    podLevelResources: true,
    comparedTaints: false,
    undeclaredFeatures: [],
  };
  const state = {
    placement: { labels: {}, taints: [], known: true },
    missingDevices: new Set<string>(),
    pressures: [],
    shuttingDown: false,
  };
  const { clock } = world;
  const asked = new PodAdmission({
    node,
    state: () => state,
    events,
    metrics: silentMetrics,
    logger: silentLogger,
    clock,
  });
  return asked.decide.bind(asked);
}

const asking = (cpu: string): Partial<PodSpec> => ({
  containers: [
    { name: 'web', image: 'web', imagePullPolicy: 'IfNotPresent', resources: { requests: { cpu } } },
  ],
});
const told = (what: () => boolean, complaint: string) =>
  until(what, () => `${complaint}: ${JSON.stringify([...api.pods.values()])} ${api.calls().join()}`);
const status = (name: string) => api.get(name)?.status ?? {};
const conditions = (name: string) =>
  (status(name)['conditions'] ?? []) as { type: string; status: string; reason?: string }[];
const isReady = (name: string) =>
  conditions(name).some(({ type, status: value }) => type === 'Ready' && value === 'True');

describe('a critical pod on a full node', () => {
  it('takes the place of another, whose end is told with the reason and the condition', async () => {
    const loop = await startApiLoop({ world, api, admission });
    api.create(boundPod('plain', asking('600m')));
    api.create(boundPod('small', asking('100m')));
    await told(() => isReady('plain') && isReady('small'), 'never ready');

    api.create(boundPod('critical', { ...asking('800m'), priority: 2_000_000_000 }));
    await told(() => status('plain')['phase'] === 'Failed', 'never preempted');
    const { reason, message } = status('plain');
    assert.deepEqual([reason, message], ['Preempting', 'Preempted in order to admit critical pod']);
    const disruption = conditions('plain').find(({ type }) => type === 'DisruptionTarget');
    assert.deepEqual([disruption?.status, disruption?.reason], ['True', 'TerminationByKubelet']);
    await told(() => isReady('critical'), 'never admitted');
    assert.ok(isReady('small'), 'who need not go stays');

    const patches = api.calls((line) => line === 'PATCH pods/plain/status').length;
    await loop.pass(120_000);
    assert.equal(api.calls((line) => line === 'PATCH pods/plain/status').length, patches);
    assert.equal(loop.events.filter((event) => event.startsWith('Preempting')).length, 1);
    await loop.stop();
    assertNoTimers(world);
  });
});

describe('a static pod that was refused', () => {
  const spec: Partial<PodSpec> = { nodeSelector: { disk: 'ssd' } };

  it('is asked again by the next agent, and by its mirror stands as refused until then', async () => {
    const first = await startApiLoop({ world, api, admission, staticPods: [filePod('picky', spec)] });
    await told(() => status('picky-node')['phase'] === 'Failed', 'never refused');
    assert.equal(status('picky-node')['reason'], 'NodeAffinity');
    assert.deepEqual(await first.records.readAll(), [], 'a refusal is not remembered');
    await first.stop();
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });

    // Its mirror says Failed, and yet it starts where it may now.
    const next = await startApiLoop({ world, api, staticPods: [filePod('picky', spec)] });
    await told(() => isReady('picky-node'), 'never started');
    assert.equal(status('picky-node')['reason'], undefined);
    assert.equal(status('picky-node')['phase'], 'Running');
    await next.stop();
    assertNoTimers(world);
  });

  it('is refused again where nothing has changed, without a word more to the API server', async () => {
    const first = await startApiLoop({ world, api, admission, staticPods: [filePod('picky', spec)] });
    await told(() => status('picky-node')['phase'] === 'Failed', 'never refused');
    await first.stop();
    const before = api.calls().length;
    const next = await startApiLoop({ world, api, admission, staticPods: [filePod('picky', spec)] });
    await next.pass(60_000);
    assert.deepEqual(api.calls().slice(before), []);
    assert.equal(status('picky-node')['phase'], 'Failed');
    await next.stop();
    assertNoTimers(world);
  });
});
