import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import type { Pod, PodStatus } from '../../kubernetes/types.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import { failed, MemoryApi } from '../fixtures/memory-api.ts';
import { PodModel, testPod } from '../fixtures/pod-model.ts';
import type { PodIntent } from '../pod-view.ts';
import { type PodObject, PodObjects } from './pod-objects.ts';
import { StatusReporter } from './status-reporter.ts';

let clock: VirtualClock;
let api: MemoryApi;
let objects: PodObjects;
let reporter: StatusReporter;
let watching: AbortController;
beforeEach(() => {
  clock = new VirtualClock();
  api = new MemoryApi();
  objects = new PodObjects();
  watching = new AbortController();
  reporter = new StatusReporter({ api, objects, clock, logger: silentLogger, metrics: silentMetrics });
  const { run } = api.reflector({
    onChange: (change) => {
      const seen = { set: change.set as PodObject[], removed: change.removed as PodObject[] };
      objects.follow(seen);
      reporter.objectsChanged(seen);
    },
  });
  void run(watching.signal);
});

function made(name: string): Pod {
  const { metadata } = api.create({ metadata: { name } });
  return { ...testPod(), metadata: { name, namespace: 'default', uid: metadata.uid } };
}

function report(pod: Pod, status: PodStatus, intent: PodIntent = { kind: 'run' }): void {
  const model = new PodModel(pod);
  model.intent = intent;
  reporter.report({ pod, status, view: model.view() });
}

const status = (name: string) => api.get(name)?.status;
const condition = (value: string) => ({ conditions: [{ type: 'Ready', status: value }] });
const patches = () => api.requests.filter(({ method }) => method === 'PATCH').length;

describe('reporting a status', () => {
  it('gathers what nobody acts on, and never keeps back what somebody waits for', async () => {
    const pod = made('web');
    await settle();
    report(pod, { phase: 'Pending', podIP: '10.0.0.1' });
    await clock.advance(500);
    report(pod, { phase: 'Pending', podIP: '10.0.0.2' });
    assert.equal(patches(), 0);
    await clock.advance(500);
    assert.equal(patches(), 1);
    assert.equal(status('web')?.['podIP'], '10.0.0.2');
    report(pod, { phase: 'Running', podIP: '10.0.0.2', ...condition('True') });
    await settle();
    assert.equal(patches(), 2);
    report(pod, { phase: 'Running', podIP: '10.0.0.2', ...condition('False') });
    await settle();
    assert.equal(patches(), 3);
    await clock.advance(3_600_000);
    assert.equal(patches(), 3);
    assert.equal(clock.nextTimer(), undefined);
  });

  it('keeps the order: while one is under way, the newest waits and the others are passed over', async () => {
    const pod = made('web');
    await settle();
    const gate = Promise.withResolvers<void>();
    const request = api.request.bind(api);
    api.request = async (asked) => {
      await gate.promise;
      return await request(asked);
    };
    for (const phase of ['Running', 'Failed', 'Running', 'Succeeded']) {
      report(pod, { phase });
      await settle();
    }
    gate.resolve();
    await settle();
    const told = api.requests.map(({ body }) => (body as { status: PodStatus }).status.phase);
    assert.deepEqual(told, ['Running', 'Succeeded']);
    assert.equal(status('web')?.['phase'], 'Succeeded');
  });

  it('is not undone by an old word of the watch', async () => {
    const pod = made('web');
    await settle();
    const stale = structuredClone(api.get('web')) as unknown as PodObject;
    report(pod, { phase: 'Running' });
    await settle();
    objects.follow({ set: [stale], removed: [] });
    reporter.objectsChanged({ set: [stale], removed: [] });
    report(pod, { phase: 'Pending' });
    await settle();
    assert.equal(status('web')?.['phase'], 'Pending');
  });

  it('is set right when somebody else changes it, without a duel', async () => {
    const pod = made('web');
    await settle();
    report(pod, { phase: 'Running', message: 'mine' });
    await settle();
    api.change('web', (object) => {
      object.status['message'] = 'theirs';
    });
    await settle();
    assert.equal(patches(), 1);
    await clock.advance(10_000);
    assert.equal(status('web')?.['message'], 'mine');
    assert.equal(patches(), 2);
  });

  it('does not ask again for what the server leaves out', async () => {
    const pod = made('web');
    await settle();
    const request = api.request.bind(api);
    api.request = async <T>(asked: Parameters<typeof request>[0]): Promise<T> => {
      const { status: told } = asked.body as { status: Record<string, unknown> };
      delete told['observedGeneration'];
      return await request<T>(asked);
    };
    report(pod, { phase: 'Running', observedGeneration: 1 });
    await settle();
    await clock.advance(3_600_000);
    assert.equal(patches(), 1);
  });

  it('waits with all pods while the server is away, and goes on when the watch speaks', async () => {
    const pods = Array.from({ length: 30 }, (_, i) => made(`pod-${i}`));
    await settle();
    api.failure = () => failed(0, '', 'connection refused');
    for (const pod of pods) report(pod, { phase: 'Running' });
    await settle(20);
    const tries = api.requests.length;
    assert.ok(tries <= 30, `${tries}`);
    await clock.advance(60_000);
    assert.ok(api.requests.length - tries <= 12 * 30);
    api.failure = undefined;
    api.change('pod-0', (object) => {
      object.metadata.labels = { a: 'b' };
    });
    await settle(60);
    assert.ok(pods.every(({ metadata }) => status(metadata.name)?.['phase'] === 'Running'));
  });

  it('tries again with growing patience when it is refused, and ends when the object is gone', async () => {
    const pod = made('web');
    await settle();
    api.failure = () => failed(403, 'Forbidden');
    report(pod, { phase: 'Running' });
    await clock.advance(7000);
    assert.equal(patches(), 4);
    api.failure = () => failed(404, 'NotFound');
    await clock.advance(8000);
    await clock.advance(3_600_000);
    assert.equal(patches(), 5);
  });

  it('of a former pod never reaches one that was made under its name', async () => {
    const pod = made('web');
    await settle();
    api.down = true;
    report(pod, { phase: 'Failed' });
    await settle();
    api.delete('web', 0);
    made('web');
    api.down = false;
    await clock.advance(60_000);
    assert.equal(status('web')?.['phase'], 'Pending');
  });
});

describe('letting an object go', () => {
  const ending: PodIntent = {
    kind: 'terminate',
    cause: 'deleted',
    since: 0,
    graceSeconds: 1,
    releasesObject: true,
  };

  it('waits until the end is told, through an outage', async () => {
    const pod = made('web');
    await settle();
    api.down = true;
    report(pod, { phase: 'Succeeded' }, ending);
    let done = false;
    const release = reporter.release(pod, new AbortController().signal).then(() => {
      done = true;
    });
    await clock.advance(120_000);
    assert.equal(done, false);
    api.down = false;
    await clock.advance(20_000);
    await release;
    assert.equal(api.get('web'), undefined);
    assert.deepEqual(api.calls().slice(-2), ['PATCH pods/web/status', 'DELETE pods/web']);
    report(pod, { phase: 'Failed' }, ending);
    await clock.advance(60_000);
    assert.equal(api.calls().at(-1), 'DELETE pods/web');
  });

  it('tells nothing more while the deletion is under way, and goes on telling when it fails', async () => {
    const pod = made('web');
    await settle();
    report(pod, { phase: 'Failed' }, ending);
    await settle();
    const request = api.request.bind(api);
    const answered = Promise.withResolvers<void>();
    api.failure = ({ method }) => (method === 'DELETE' ? failed(403, 'Forbidden') : undefined);
    api.request = async (asked) => {
      try {
        return await request(asked);
      } finally {
        if (asked.method === 'DELETE') await answered.promise;
      }
    };
    const release = reporter.release(pod, new AbortController().signal);
    const refused = assert.rejects(release, /Forbidden/);
    await settle();
    report(pod, { phase: 'Failed', message: 'late' }, ending);
    await clock.advance(60_000);
    assert.deepEqual(api.calls(), ['PATCH pods/web/status', 'DELETE pods/web']);
    answered.resolve();
    await refused;
    await clock.advance(1000);
    assert.equal(status('web')?.['message'], 'late');
  });

  it('ends with the signal, and at once when there is no object', async () => {
    const pod = made('web');
    await settle();
    api.down = true;
    report(pod, { phase: 'Succeeded' }, ending);
    const abort = new AbortController();
    const release = reporter.release(pod, abort.signal);
    await settle();
    abort.abort(new Error('forced'));
    await assert.rejects(release, /forced/);
    await reporter.release(testPod(), new AbortController().signal);
  });

  it('tells nothing of a pod that the server has forgotten', async () => {
    const pod = made('web');
    await settle();
    report(pod, { phase: 'Failed' }, { ...ending, releasesObject: false });
    await clock.advance(60_000);
    assert.equal(patches(), 0);
  });
});
