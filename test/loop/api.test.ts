import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { failed, MemoryApi } from '../../src/pods/fixtures/memory-api.ts';
import { Outside } from './outside.ts';
import { type ApiLoop, boundPod, startApiLoop } from './start-api-loop.ts';
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

const status = (name: string) => api.get(name)?.status ?? {};
const isReady = (name: string) =>
  (status(name)['conditions'] as { type: string; status: string }[] | undefined)?.some(
    (condition) => condition.type === 'Ready' && condition.status === 'True',
  ) === true;
const told = (what: () => boolean, complaint = 'the API server was not told') =>
  until(what, () => `${complaint}: ${JSON.stringify([...api.pods.values()])} ${api.calls().join()}`);
const ready = (...names: string[]) => told(() => names.every(isReady), 'never ready');
const gone = (...names: string[]) => told(() => names.every((name) => !api.get(name)), 'never gone');
const images = () => world.runtime.containers.map(({ config }) => config.image?.userSpecifiedImage);

describe('the life of a pod of the API server', () => {
  it('costs three requests, and four for its events', async () => {
    const loop = await startApiLoop({ world, api });
    api.create(boundPod('web'));
    await ready('web');
    // Nothing more is said of a pod at rest.
    await loop.pass(60_000);
    assert.deepEqual(api.calls(), ['PATCH pods/web/status']);
    api.delete('web', 30);
    await gone('web');
    await loop.quiet();
    assert.deepEqual(api.calls(), ['PATCH pods/web/status', 'PATCH pods/web/status', 'DELETE pods/web']);
    const reasons = [...api.events.values()].map((event) => event['reason']);
    assert.deepEqual(reasons, ['Pulled', 'Created', 'Started', 'Killing']);
    assert.equal(api.requests.length, 7);
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
    await loop.stop();
    assertNoTimers(world);
  });

  it('that is slow to start is told once in between', async () => {
    const loop = await startApiLoop({ world, api });
    api.create(boundPod('web', { containers: [{ name: 'web', image: 'nowhere' }] }));
    await loop.pass(1000);
    assert.deepEqual(api.calls(), ['PATCH pods/web/status']);
    assert.equal(status('web')['phase'], 'Pending');
    assert.match(JSON.stringify(status('web')['containerStatuses']), /ErrImagePull|ImagePullBackOff/);
    await loop.stop();
  });

  it('ends with what its containers returned', async () => {
    const loop = await startApiLoop({ world, api });
    for (const [name, exitCode, phase] of [
      ['well', 0, 'Succeeded'],
      ['badly', 3, 'Failed'],
    ] as const) {
      world.runtime.behave('web', { onStopSignal: { afterMs: 10, code: exitCode } });
      api.create(boundPod(name));
      await ready(name);
      const phases: unknown[] = [];
      api.failure = ({ method, body }) => {
        if (method === 'PATCH') phases.push((body as { status?: { phase?: string } }).status?.phase);
        if (method === 'DELETE') assert.equal(status(name)['phase'], phase);
        return undefined;
      };
      api.delete(name, 30);
      await loop.pass(100);
      await gone(name);
      assert.deepEqual(phases.filter(Boolean), [phase]);
    }
    await loop.stop();
  });

  it('keeps what others write into its status, and waits for its readiness gates', async () => {
    const loop = await startApiLoop({ world, api });
    api.create(boundPod('web', { readinessGates: [{ conditionType: 'example.com/lb' }] }));
    await told(() => status('web')['phase'] === 'Running');
    assert.equal(isReady('web'), false);
    api.change('web', (pod) => {
      (pod.status['conditions'] as object[]).push({ type: 'example.com/lb', status: 'True' });
    });
    await ready('web');
    assert.match(JSON.stringify(status('web')['conditions']), /example.com\/lb/);
    await loop.stop();
  });

  it('changes in place', async () => {
    const loop = await startApiLoop({ world, api });
    api.create(boundPod('web'));
    await ready('web');
    const [before] = world.runtime.sandboxes;
    api.change('web', (pod) => {
      pod.metadata.generation = 2;
      (pod.spec as { containers: { image: string }[] }).containers[0]!.image = 'job';
    });
    await told(() => status('web')['observedGeneration'] === 2 && isReady('web') && images().includes('job'));
    assert.equal(world.runtime.sandboxes[0]?.id, before?.id);
    api.change('web', (pod) => {
      pod.metadata.generation = 3;
      (pod.spec as { activeDeadlineSeconds: number }).activeDeadlineSeconds = 20;
    });
    await loop.pass(20_000);
    await told(() => status('web')['reason'] === 'DeadlineExceeded');
    assert.equal(status('web')['phase'], 'Failed');
    await loop.stop();
  });

  it('takes an ephemeral container, and tells at once that it runs', async () => {
    const loop = await startApiLoop({ world, api });
    api.create(boundPod('web'));
    await ready('web');
    const { length } = api.calls();
    api.change('web', (pod) => {
      const debug = { name: 'debug', image: 'job', imagePullPolicy: 'IfNotPresent' };
      (pod.spec as { ephemeralContainers: object[] }).ephemeralContainers = [debug];
    });
    await told(() => JSON.stringify(status('web')['ephemeralContainerStatuses'] ?? '').includes('running'));
    assert.ok(api.calls().length - length <= 2);
    assert.equal(world.runtime.containers.length, 2);
    await loop.stop();
  });

  it('is not begun again once the API server has an end on record', async () => {
    api.create(boundPod('web')).status = { phase: 'Failed', reason: 'Evicted' };
    const loop = await startApiLoop({ world, api });
    await loop.pass(10_000);
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
    assert.equal(status('web')['reason'], 'Evicted');
    api.delete('web', 30);
    await gone('web');
    await loop.stop();
  });
});

describe('a pod that is deleted', () => {
  it('before it could start has failed, and its containers have an end', async () => {
    const loop = await startApiLoop({ world, api, networkNotReady: () => 'no CNI' });
    const last: unknown[] = [];
    api.failure = ({ method, body }) => {
      if (method === 'PATCH') last.push((body as { status: unknown }).status);
      return undefined;
    };
    api.create(boundPod('web'));
    await loop.pass(2000);
    api.delete('web', 30);
    await gone('web');
    const { phase, containerStatuses } = last.at(-1) as {
      phase: string;
      containerStatuses: { state: { terminated?: { reason?: string } } }[];
    };
    assert.equal(phase, 'Failed');
    assert.equal(containerStatuses[0]?.state.terminated?.reason, 'ContainerStatusUnknown');
    await loop.stop();
    assertNoTimers(world);
  });

  it('before the agent ever saw it is let go without being run', async () => {
    api.create(boundPod('web'));
    api.delete('web', 30);
    const loop = await startApiLoop({ world, api });
    await gone('web');
    assert.equal(world.runtime.requestsOf('RunPodSandbox').length, 0);
    await loop.stop();
  });

  it('and kept by a finalizer is not begun again', async () => {
    const loop = await startApiLoop({ world, api });
    api.create(boundPod('web'));
    await ready('web');
    // The object stays although the node has let it go.
    api.failure = ({ method }) => (method === 'DELETE' ? failed(404, 'NotFound') : undefined);
    api.delete('web', 30);
    await until(
      () => world.runtime.sandboxes.length === 0,
      () => JSON.stringify(world.snapshot()),
    );
    await loop.pass(60_000);
    api.change('web', ({ metadata }) => {
      metadata.labels = { touched: 'yes' };
    });
    await loop.pass(60_000);
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
    assert.equal(status('web')['phase'], 'Failed');
    await loop.stop();
  });

  it('by force ends at once, and nobody is told', async () => {
    const loop = await startApiLoop({ world, api });
    world.runtime.behave('web', { onStopSignal: { afterMs: 3_600_000 } });
    api.create(boundPod('web'));
    await ready('web');
    const before = api.calls().length;
    api.delete('web', 0);
    await loop.pass(2000);
    await until(
      () => world.runtime.sandboxes.length === 0,
      () => JSON.stringify(world.snapshot()),
    );
    assert.equal(world.runtime.requestsOf('StopContainer')[0]?.timeout, 2n);
    assert.equal(api.calls().length, before);
    await loop.stop();
  });

  it('and made again under its name: the new one waits for the old one and gets its own status', async () => {
    const loop = await startApiLoop({ world, api });
    api.create(boundPod('web', {}, 'first'));
    await ready('web');
    world.runtime.behave('web', { onStopSignal: { afterMs: 1500 } });
    api.delete('web', 0);
    api.create(boundPod('web', { containers: [{ name: 'web', image: 'job' }] }, 'second'));
    await loop.quiet();
    assert.deepEqual(images(), ['web']);
    assert.equal(status('web')['startTime'], undefined);
    await loop.pass(2000);
    await ready('web');
    assert.deepEqual(images(), ['job']);
    const uids = api.requests.flatMap(({ method, body }) =>
      method === 'PATCH' ? [(body as { metadata?: { uid?: string } }).metadata?.uid] : [],
    );
    assert.deepEqual(uids.slice(-1), ['second']);
    await loop.stop();
  });

  it('twice takes the shorter grace period', async () => {
    const loop = await startApiLoop({ world, api });
    world.runtime.behave('web', { onStopSignal: { afterMs: 3_600_000 } });
    api.create(boundPod('web'));
    await ready('web');
    api.delete('web', 600);
    await loop.pass(5000);
    api.delete('web', 3);
    await loop.pass(4000);
    await gone('web');
    await loop.stop();
  });
});

describe('an object that is gone', () => {
  it('gets no status, however and whenever its pod is deleted', async () => {
    const loop = await startApiLoop({ world, api, staticPods: [filePod('static')] });
    await ready('static-node');
    const stray: string[] = [];
    api.failure = ({ method, path }) => {
      const name = /pods\/([^/]+)\/status$/.exec(path)?.[1];
      if (method === 'PATCH' && name && !api.get(name)) stray.push(path);
      return undefined;
    };
    const endings: readonly (readonly [name: string, grace: number, wait: number])[] = [
      ['while-new', 0, 0],
      ['while-new-with-grace', 30, 0],
      ['while-starting', 0, 300],
      ['while-starting-with-grace', 30, 300],
      ['while-running', 0, 5000],
      ['while-running-with-grace', 30, 5000],
    ];
    for (const [name, grace, wait] of endings) {
      const image = wait === 300 ? 'remote' : 'web';
      api.create(boundPod(name, { containers: [{ name: 'web', image }] }));
      if (wait > 0) await loop.pass(wait);
      api.delete(name, grace);
      await loop.pass(5000);
      await gone(name);
    }
    // Its mirror is taken away while there is something to tell of it.
    world.runtime.exit(world.runtime.running('web').id, 1);
    api.delete('static-node', 0);
    await loop.pass(30_000);
    await ready('static-node');
    assert.deepEqual(stray, []);
    await loop.stop();
    assertNoTimers(world);
  });
});

describe('an API server that is away', () => {
  it('while 30 pods start and end: nothing is lost, twice or stuck', async () => {
    const loop = await startApiLoop({ world, api });
    const names = Array.from({ length: 30 }, (_, i) => `pod-${i}`);
    for (const name of names) api.create(boundPod(name));
    await loop.quiet();
    api.down = true;
    await loop.pass(120_000);
    assert.equal(world.runtime.sandboxes.length, 30);
    api.down = false;
    await loop.pass(15_000);
    await ready(...names);
    for (const name of names) api.delete(name, 5);
    await new Promise(setImmediate);
    api.down = true;
    await loop.pass(120_000);
    assert.equal(api.pods.size, 30);
    // What the end is read from stays until it is told.
    assert.equal(world.runtime.containers.length, 30);
    api.down = false;
    await loop.pass(15_000);
    await gone(...names);
    await loop.pass(1000);
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
    assert.deepEqual(loop.errors, []);
    await loop.stop();
    assertNoTimers(world);
  });

  it('keeps nobody from restarting what falls, and is told of it afterwards', async () => {
    const loop = await startApiLoop({ world, api });
    const livenessProbe = { exec: { command: ['alive'] }, periodSeconds: 1, failureThreshold: 2 };
    const containers = [{ name: 'web', image: 'web', imagePullPolicy: 'IfNotPresent' }];
    api.create(boundPod('falls', { containers }));
    api.create(boundPod('hangs', { containers: [{ ...containers[0]!, livenessProbe }] }));
    await ready('falls', 'hangs');
    const of = (name: string) => {
      const sandbox = world.runtime.sandboxes.find(({ config }) => config.metadata?.name === name);
      return world.runtime.containers.find(
        ({ sandboxId, state }) => sandboxId === sandbox?.id && state === 1,
      )!;
    };
    api.down = true;
    world.runtime.exit(of('falls').id, 1);
    const { id } = of('hangs');
    world.runtime.behave('web', {
      exec: (_command, container) => ({ exitCode: container.id === id ? 1 : 0 }),
    });
    await loop.pass(60_000);
    for (const name of ['falls', 'hangs']) assert.equal(of(name).config.metadata?.attempt, 1, name);
    api.down = false;
    const restarts = (name: string) =>
      (status(name)['containerStatuses'] as { restartCount: number }[] | undefined)?.[0]?.restartCount;
    await loop.pass(15_000);
    await told(() => ['falls', 'hangs'].every((name) => restarts(name) === 1 && isReady(name)));
    await loop.stop();
  });

  it('hears of an end that nobody could tell it of from the next agent', async () => {
    const containers = [{ name: 'job', image: 'job', imagePullPolicy: 'IfNotPresent' }];
    const first = await startApiLoop({ world, api });
    api.create(boundPod('done', { restartPolicy: 'Never', containers }));
    await ready('done');
    api.down = true;
    world.runtime.exit(world.runtime.running('job').id, 0);
    await first.pass(5000);
    await first.stop();
    assert.equal(status('done')['phase'], 'Running');
    // The runtime may have been cleaned up meanwhile: the record knows.
    const next = await startApiLoop({ world, api });
    await next.pass(60_000);
    assert.deepEqual(
      world.snapshot().containers.filter((line) => line.includes('running')),
      [],
    );
    api.down = false;
    await next.pass(15_000);
    await told(() => status('done')['phase'] === 'Succeeded');
    assert.equal(world.runtime.requestsOf('CreateContainer').length, 1);
    await next.stop();
  });

  it('after a restart: static pods start, and pods that run are left alone until it speaks', async () => {
    const first = await startApiLoop({ world, api });
    api.create(boundPod('web'));
    await ready('web');
    await first.stop();
    api.down = true;
    const loop = await startApiLoop({ world, api, staticPods: [filePod('static')] });
    await loop.pass(60_000);
    assert.deepEqual(
      world.runtime.containers.map(({ state }) => state),
      [1, 1],
    );
    const calls = api.calls().length;
    api.down = false;
    await ready('web', 'static-node');
    await loop.pass(2000);
    // The pod of the API server has nothing new to tell; the mirror is made and gets its status.
    assert.deepEqual(api.calls().slice(calls), ['POST pods', 'PATCH pods/static-node/status']);
    await loop.stop();
  });
});

describe('static pods', () => {
  it('have mirrors: made, made again, replaced and deleted with the pod', async () => {
    const pod = filePod('one');
    const loop = await startApiLoop({ world, api, staticPods: [pod] });
    await ready('one-node');
    const mirror = api.get('one-node')!;
    assert.equal(mirror.metadata.annotations?.['kubernetes.io/config.mirror'], pod.metadata.uid);
    assert.deepEqual(mirror.metadata.ownerReferences, [
      { apiVersion: 'v1', kind: 'Node', name: 'node', uid: 'node-uid', controller: true },
    ]);
    api.delete('one-node', 30);
    await told(() => api.get('one-node')?.metadata.uid !== mirror.metadata.uid && isReady('one-node'));
    api.delete('one-node', 0);
    await ready('one-node');
    assert.equal(world.runtime.containers.length, 1);

    const next = filePod('one', { containers: [{ name: 'web', image: 'job' }] });
    loop.setStatic([next]);
    await told(
      () =>
        api.get('one-node')?.metadata.annotations?.['kubernetes.io/config.mirror'] === next.metadata.uid &&
        isReady('one-node'),
    );
    assert.deepEqual(images(), ['job']);
    loop.setStatic([]);
    await gone('one-node');
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
    await loop.stop();
    assertNoTimers(world);
  });

  it('that went while the agent was away take their mirrors with them', async () => {
    const first = await startApiLoop({ world, api, staticPods: [filePod('one'), filePod('two')] });
    await ready('one-node', 'two-node');
    await first.stop();
    const loop = await startApiLoop({ world, api, staticPods: [filePod('two')] });
    await gone('one-node');
    await ready('two-node');
    await loop.stop();
  });

  it('run on when the API server refuses their mirrors', async () => {
    api.failure = ({ method, path }) =>
      method === 'POST' && path.endsWith('/pods') ? failed(403, 'Forbidden') : undefined;
    const pod = filePod('one');
    const loop = await startApiLoop({ world, api, staticPods: [pod] });
    await loop.untilRunning(pod);
    await loop.pass(120_000);
    assert.equal(api.get('one-node'), undefined);
    api.failure = undefined;
    await loop.pass(60_000);
    await ready('one-node');
    await loop.stop();
  });
});

describe('an agent that is killed', () => {
  it('at any crossing of a pod’s life: the next one brings it to the same end', async () => {
    const crossings = await life(new Outside());
    for (let index = 0; index < crossings; index++) {
      for (const moment of ['before', 'after'] as const) {
        const outside = new Outside();
        outside.closeAt(index, moment);
        await life(outside);
      }
    }
  });
});

/** A pod becomes ready, is deleted and goes, whatever happens to the first agent on the way. */
async function life(outside: Outside): Promise<number> {
  world.remove();
  world = new World();
  api = new MemoryApi();
  world.runtime.behave('web', { onStopSignal: { afterMs: 10, code: 0 } });
  const phases = new Set<unknown>();
  api.failure = ({ method, body }) => {
    const phase = (body as { status?: { phase?: string } }).status?.phase;
    if (method === 'PATCH' && phase) phases.add(phase);
    return undefined;
  };
  const killed = new Promise<undefined>((resolve) => outside.onClosed(() => resolve(undefined)));
  let loop: ApiLoop | undefined = await Promise.race([startApiLoop({ world, api, outside }), killed]);
  let isNext = false;
  const reach = async (what: () => boolean, complaint: string) => {
    for (let tries = 0; !what(); tries++) {
      assert.ok(tries < 50, `${complaint}: ${JSON.stringify([...api.pods.values()])} ${loop?.errors.join()}`);
      if (!outside.isOpen && !isNext) {
        loop = await startApiLoop({ world, api });
        isNext = true;
      }
      const pass = loop!.pass(1000);
      await (isNext ? pass : Promise.race([pass, killed]));
    }
  };
  api.create(boundPod('web'));
  await reach(() => isReady('web'), 'never ready');
  api.delete('web', 30);
  await reach(() => !api.get('web'), 'never gone');
  await reach(() => world.runtime.sandboxes.length === 0, 'something stayed');
  assert.deepEqual([...phases], ['Running', 'Succeeded']);
  await loop?.quiet();
  await loop?.stop();
  return outside.crossings.length;
}
