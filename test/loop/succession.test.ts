import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { runtimeLabels } from '../../src/kubernetes/pod-identity.ts';
import type { Pod } from '../../src/kubernetes/types.ts';
import { PodGarbage } from '../../src/runtime/garbage/pod-garbage.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import { silentMetrics } from '../../src/telemetry/metrics.ts';
import { containerConfig, sandboxConfig } from '../fixtures/cri-runtime/requests.ts';
import { assertNoTimers, startLoop } from './start-loop.ts';
import { until } from './turns.ts';
import { filePod, World } from './world.ts';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.remove());

const image = (name: string) => ({ containers: [{ name: 'web', image: name }] });
const nothing = { sandboxes: [], containers: [] };
const names = () => world.runtime.containers.map(({ config }) => config.image?.userSpecifiedImage);

/** A pod as the API server hands it in: it is changed in place. */
function apiPod(name: string, spec: Partial<Pod['spec']> = {}): Pod {
  const pod = filePod(name, spec, { uid: `uid-${name}` });
  return { ...pod, metadata: { ...pod.metadata, annotations: { 'kubernetes.io/config.source': 'api' } } };
}

describe('a manifest that changes', () => {
  it('with its uid: the new pod starts when nothing is left of the old one', async () => {
    const old = filePod('pod', image('web'), { uid: 'fixed' });
    const loop = await startLoop({ world, pods: [old] });
    await loop.untilRunning(old);
    const before = world.clock.now();
    loop.want([filePod('pod', image('job'), { uid: 'fixed' })]);
    await until(
      () => names().join() === 'job',
      () => JSON.stringify(world.snapshot()),
    );
    await loop.untilRunning(old);
    assert.equal(world.clock.now(), before);
    assert.equal(world.runtime.sandboxes.length, 1);
    assert.equal(world.runtime.sandboxes[0]?.config.metadata?.attempt, 0);
    await loop.stop();
  });

  it('and with it the uid: the new pod of the name waits for the end of the old one', async () => {
    const old = filePod('pod', image('web'));
    const loop = await startLoop({ world, pods: [old] });
    await loop.untilRunning(old);
    world.runtime.behave('web', { onStopSignal: { afterMs: 5000 } });
    const next = filePod('pod', image('job'));
    assert.notEqual(next.metadata.uid, old.metadata.uid);
    loop.want([next]);
    await loop.pass(4000);
    assert.equal(loop.workers.get(next.metadata.uid), undefined);
    assert.deepEqual(names(), ['web']);
    await loop.pass(1000);
    await loop.untilRunning(next);
    assert.deepEqual(names(), ['job']);
    await loop.stop();
  });

  it('while the agent is away: the next agent ends the old pod and starts the new one', async () => {
    const old = filePod('pod', image('web'));
    const first = await startLoop({ world, pods: [old] });
    await first.untilRunning(old);
    await first.stop();
    const next = filePod('pod', image('job'));
    const loop = await startLoop({ world, pods: [next] });
    await loop.untilRunning(next);
    assert.deepEqual(names(), ['job']);
    assert.deepEqual(loop.gone, ['pod-node']);
    await loop.stop();
  });

  it('back while the old pod still stops: it starts again afterwards', async () => {
    const pod = filePod('pod');
    const loop = await startLoop({ world, pods: [pod] });
    await loop.untilRunning(pod);
    world.runtime.behave('web', { onStopSignal: { afterMs: 5000 } });
    const [first] = world.runtime.containers;
    loop.want([]);
    await loop.pass(1000);
    loop.want([pod]);
    await loop.pass(10_000);
    await loop.untilRunning(pod);
    assert.notEqual(world.runtime.running('web').id, first?.id);
    assert.equal(world.runtime.containers.length, 1);
    assert.deepEqual([loop.restarted, loop.orphans], [[pod.metadata.name], []]);
    await loop.stop();
  });

  it('a pod of the runtime that no source and no record knows is an orphan', async () => {
    const pod = filePod('pod');
    const first = await startLoop({ world, pods: [pod] });
    await first.untilRunning(pod);
    await first.stop();
    rmSync(path.join(world.root, 'kubelet-ts', 'pods'), { recursive: true });
    const loop = await startLoop({ world, pods: [] });
    await until(
      () => loop.gone.length === 1,
      () => JSON.stringify(world.snapshot()),
    );
    assert.deepEqual([loop.orphans, loop.restarted], [[pod.metadata.name], []]);
    await loop.stop();
  });
});

describe('a pod of the API server that changes', () => {
  it('keeps its sandbox, gets new containers, and is recorded anew each time', async () => {
    const loop = await startLoop({ world, pods: [apiPod('pod', image('web'))], sources: ['api'] });
    const pod = apiPod('pod');
    await loop.untilRunning(pod);
    for (const next of ['job', 'setup', 'proxy']) {
      loop.want([apiPod('pod', image(next))]);
      await until(
        () =>
          world.runtime.containers.some(
            ({ config, state }) => config.image?.userSpecifiedImage === next && state === 1,
          ),
        () => `${next} never ran: ${JSON.stringify(world.snapshot())}`,
      );
      await loop.untilRunning(pod);
      await loop.quiet();
      const [record] = await loop.records.readAll();
      assert.equal(record?.pod.spec.containers[0]?.image, next);
    }
    assert.equal(world.runtime.sandboxes.length, 1);
    assert.deepEqual(loop.errors, []);
    await loop.stop();
  });
});

describe('what an earlier agent has left', () => {
  it('is adopted: nothing is stopped, started or made', async () => {
    const pods = [filePod('one'), filePod('two', { terminationGracePeriodSeconds: 1 })];
    const first = await startLoop({ world, pods });
    await first.untilRunning(...pods);
    await first.stop();
    assertNoTimers(world);
    const before = world.snapshot();
    const from = world.runtime.calls.length;
    const loop = await startLoop({ world, pods });
    await loop.untilRunning(...pods);
    await loop.quiet();
    assert.deepEqual(world.snapshot(), before);
    const changing = /^(Run|Stop|Remove|Create|Start|Pull)/;
    assert.deepEqual(
      world.runtime.calls.slice(from).filter(({ call }) => changing.test(call)),
      [],
    );
    await loop.stop();
  });

  it('is ended only once every source has spoken', async () => {
    const pod = filePod('pod', { terminationGracePeriodSeconds: 7 });
    const first = await startLoop({ world, pods: [pod] });
    await first.untilRunning(pod);
    await first.stop();
    const loop = await startLoop({ world, pods: [], ready: false });
    await loop.pass(60_000);
    assert.equal(world.runtime.running('web').name, 'web');
    loop.want([], true);
    await loop.untilGone(pod);
    await until(
      () => world.runtime.sandboxes.length === 0,
      () => 'the sandbox stayed',
    );
    assert.equal(world.runtime.requestsOf('StopContainer')[0]?.timeout, 7n);
    await loop.stop();
  });

  it('is ended by what the runtime tells when its record is damaged', async () => {
    const pod = filePod('pod', { terminationGracePeriodSeconds: 7 });
    const first = await startLoop({ world, pods: [pod] });
    await first.untilRunning(pod);
    await first.stop();
    const directory = path.join(world.root, 'kubelet-ts', 'pods');
    truncateSync(path.join(directory, `${pod.metadata.uid}.json`), 40);
    const loop = await startLoop({ world, pods: [] });
    await until(
      () => loop.gone.length === 1,
      () => JSON.stringify(world.snapshot()),
    );
    assert.deepEqual(world.snapshot(), nothing);
    assert.equal(loop.errors.length, 1);
    assert.match(loop.errors[0] ?? '', /record is damaged/);
    assert.equal(world.runtime.requestsOf('StopContainer')[0]?.timeout, 7n);
    assert.equal(existsSync(path.join(world.root, 'pods', pod.metadata.uid)), false);
    assert.match(readdirSync(directory).join(), /\.corrupt-/);
    await loop.stop();
  });

  it('goes after a minute when its record is damaged and the runtime has nothing of it', async () => {
    const pod = filePod('pod', { volumes: [{ name: 'cache', emptyDir: {} }] });
    const { uid } = pod.metadata;
    const first = await startLoop({ world, pods: [pod] });
    await first.untilRunning(pod);
    await first.stop();
    truncateSync(path.join(world.root, 'kubelet-ts', 'pods', `${uid}.json`), 40);
    const [sandbox] = world.runtime.sandboxes;
    await world.runtime.stopPodSandbox({ podSandboxId: sandbox?.id ?? '' });
    await world.runtime.removePodSandbox({ podSandboxId: sandbox?.id ?? '' });

    const other = filePod('other');
    const loop = await startLoop({ world, pods: [other] });
    await loop.untilRunning(other);
    const told: string[] = [];
    const taken: string[] = [];
    const { clock } = world;
    const garbage = new PodGarbage({
      runtime: world.runtime,
      rules: { perContainer: 1, total: -1, minAgeMs: 0 },
      instances: () => [],
      removeContainer: async () => {},
      desired: () => new Set([other.metadata.uid]),
      isLookedAfter: (id) => loop.workers.get(id) !== undefined,
      directories: loop.directories,
      volumes: { tearDown: async (id) => void taken.push(id) },
      podLogsDirectory: path.join(world.root, 'logs', 'pods'),
      containerLogsDirectory: path.join(world.root, 'logs', 'containers'),
      podUidLabel: runtimeLabels.podUid,
      nodeName: 'node',
      events: { event: () => assert.fail('nothing goes wrong') },
      metrics: silentMetrics,
      clock,
      logger: {
        ...silentLogger,
        info: (message, fields) => told.push(`${message} ${String(fields?.['podUID'])}`),
      },
    });
    const { signal } = new AbortController();
    const directory = path.join(world.root, 'pods', uid);
    await garbage.collect(signal);
    assert.ok(existsSync(directory), 'it may be a pod that only begins to show');
    await clock.advance(60_000);
    await garbage.collect(signal);
    assert.equal(existsSync(directory), false);
    assert.deepEqual(taken, [uid]);
    assert.deepEqual(told, [`Removed what was left of a pod that nobody knows any more ${uid}`]);
    assert.ok(existsSync(path.join(world.root, 'pods', other.metadata.uid)));
    await loop.stop();
  });

  it('of a call that timed out, and turns up after its pod is gone, is cleared away', async () => {
    const pod = filePod('pod');
    const loop = await startLoop({ world, pods: [pod] });
    await loop.untilRunning(pod);
    const config = world.runtime.sandboxes[0]?.config;
    loop.want([]);
    await loop.untilGone(pod);
    // The runtime completes it long after the agent has given up on it.
    await world.runtime.runPodSandbox({ config, runtimeHandler: '' });
    await loop.pass(60_000);
    await until(
      () => world.runtime.sandboxes.length === 0,
      () => 'the sandbox stayed',
    );
    await loop.stop();
    assertNoTimers(world);
  });
});

describe('what belongs to somebody else', () => {
  it('is never touched: other agents’ pods, sources this agent has not, and what is no pod’s', async () => {
    const foreignRoot = path.join(world.root, 'other');
    mkdirSync(foreignRoot);
    writeFileSync(path.join(foreignRoot, 'keep'), '');
    const theirs = filePod('theirs');
    const other = await startLoop({ world, root: foreignRoot, pods: [theirs] });
    await other.untilRunning(theirs);
    await other.stop();
    const annotations = { 'kubernetes.io/config.source': 'api' };
    await world.runtime.runPodSandbox({ config: sandboxConfig('api', { annotations }), runtimeHandler: '' });
    const bare = sandboxConfig('bare', { labels: {} });
    const { podSandboxId } = await world.runtime.runPodSandbox({ config: bare, runtimeHandler: '' });
    const { containerId } = await world.runtime.createContainer({
      podSandboxId,
      sandboxConfig: bare,
      config: containerConfig('bare', { image: 'web', labels: {} }),
    });
    await world.runtime.startContainer({ containerId });
    const before = world.snapshot();

    const mine = filePod('mine');
    const loop = await startLoop({ world, pods: [mine], sources: ['file'] });
    await loop.untilRunning(mine);
    loop.want([]);
    await loop.untilGone(mine);
    await loop.pass(60_000);
    assert.deepEqual(world.snapshot(), before);
    world.runtime.exit(containerId, 1);
    await loop.pass(60_000);
    assert.deepEqual(loop.errors, []);
    await loop.stop();
  });
});

describe('pods that are gone', () => {
  it('leave nothing in memory, on disk or on the clock', async () => {
    const loop = await startLoop({ world });
    for (let round = 0; round < 5; round++) {
      const pods = Array.from({ length: 4 }, (_, i) => filePod(`pod-${round}-${i}`));
      loop.want(pods);
      await loop.untilRunning(...pods);
      loop.want([]);
      await loop.untilGone(...pods);
    }
    await loop.quiet();
    assert.deepEqual([...loop.workers.all()], []);
    assert.deepEqual(loop.observer.pods(), []);
    assert.equal(loop.gone.length, 20);
    assert.deepEqual(readdirSync(path.join(world.root, 'pods')), []);
    assert.deepEqual(readdirSync(path.join(world.root, 'logs', 'pods')), []);
    assert.deepEqual(readdirSync(path.join(world.root, 'logs', 'containers')), []);
    assert.deepEqual(readdirSync(path.join(world.root, 'kubelet-ts', 'pods')), []);
    await loop.stop();
    assertNoTimers(world);
    assert.deepEqual(loop.errors, []);
  });
});
