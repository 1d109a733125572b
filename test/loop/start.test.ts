import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { RuntimeErrorCode } from '../../src/runtime/runtime-call-error.ts';
import type { CallName } from '../fixtures/cri-runtime/faults.ts';
import { assertNoTimers, startLoop } from './start-loop.ts';
import { until } from './turns.ts';
import { filePod, World } from './world.ts';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.remove());

const container = (name: string, image = 'web') => ({ name, image });
const made = () => world.runtime.requestsOf('CreateContainer').map(({ config }) => config?.metadata?.name);

describe('a pod that is wanted', () => {
  it('runs without any time passing, init containers and sidecars included', async () => {
    const began = world.clock.now();
    const pod = filePod('pod', {
      initContainers: [
        { name: 'setup', image: 'setup' },
        { name: 'proxy', image: 'proxy', restartPolicy: 'Always' },
      ],
      containers: [container('web'), container('remote', 'remote')],
    });
    world.runtime.behave('setup', { exit: { afterMs: 0, code: 0 } });
    const loop = await startLoop({ world, pods: [pod] });
    await loop.untilRunning(pod);
    assert.equal(world.clock.now(), began);
    assert.deepEqual(made().slice(0, 2), ['setup', 'proxy']);
    assert.deepEqual(made().slice(2).sort(), ['remote', 'web']);
    assert.equal(world.runtime.requestsOf('RunPodSandbox').length, 1);
    await loop.stop();
    assertNoTimers(world);
    assert.deepEqual(loop.errors, []);
  });

  it('runs beside a hundred others, each made exactly once', async () => {
    const pods = Array.from({ length: 100 }, (_, i) => filePod(`pod-${i}`));
    const loop = await startLoop({ world, pods });
    await loop.untilRunning(...pods);
    assert.equal(world.runtime.containers.length, 100);
    assert.equal(world.runtime.sandboxes.length, 100);
    loop.want([]);
    await loop.untilGone(...pods);
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
    await loop.stop();
    assertNoTimers(world);
  });

  it('waits for the network and starts as soon as it is there; a pod on the host does not', async () => {
    let problem: string | undefined = 'cni plugin not initialized';
    const pod = filePod('pod');
    const host = filePod('host', { hostNetwork: true });
    const loop = await startLoop({ world, pods: [pod, host], networkNotReady: () => problem });
    await loop.untilRunning(host);
    await loop.quiet();
    assert.equal(world.runtime.sandboxes.length, 1);
    assert.ok(loop.events.includes('NetworkNotReady: network is not ready: cni plugin not initialized'));
    problem = undefined;
    loop.workers.wakeAll();
    await loop.untilRunning(pod);
    await loop.stop();
  });

  it('has started even when nobody can look at it right away', async () => {
    const error = { code: RuntimeErrorCode.Unavailable, text: 'connection refused' };
    for (const call of ['PodSandboxStatus', 'ContainerStatus'] as const) {
      world.runtime.fail(call, { error, times: 2 });
    }
    const pod = filePod('pod');
    const loop = await startLoop({ world, pods: [pod] });
    await loop.pass(8000);
    await loop.untilRunning(pod);
    for (const call of ['RunPodSandbox', 'CreateContainer', 'StartContainer'] as const) {
      assert.equal(world.runtime.requestsOf(call).length, 1, call);
    }
    assert.deepEqual(
      loop.events.filter((event) => event.startsWith('Failed')),
      [],
    );
    await loop.stop();
    assertNoTimers(world);
  });

  it('is stopped while it still starts, and leaves nothing', async () => {
    world.runtime.fail('RunPodSandbox', { hang: true, times: 1 });
    const pod = filePod('pod');
    const loop = await startLoop({ world, pods: [pod] });
    await until(
      () => world.runtime.requestsOf('RunPodSandbox').length > 0,
      () => 'no sandbox was asked for',
    );
    loop.want([]);
    await loop.untilGone(pod);
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
    assert.deepEqual(loop.gone, [pod.metadata.name]);
    await loop.stop();
    assertNoTimers(world);
  });
});

describe('a call that hangs', () => {
  it('keeps no other pod from starting: RunPodSandbox', async () => {
    world.runtime.fail('RunPodSandbox', {
      hang: true,
      when: ({ config }) => config?.metadata?.name === 'slow-node',
    });
    const slow = filePod('slow');
    const others = Array.from({ length: 5 }, (_, i) => filePod(`other-${i}`));
    const loop = await startLoop({ world, pods: [slow, ...others] });
    await loop.untilRunning(...others);
    assert.equal(loop.status(slow)?.phase, 'Pending');
    assert.deepEqual(
      loop.workers.get(slow.metadata.uid)?.inFlight.map(({ kind }) => kind),
      ['create-sandbox'],
    );
    await loop.stop();
    assertNoTimers(world);
  });

  it('keeps no other pod from starting even when as many hang as may run at once', async () => {
    world.runtime.fail('RunPodSandbox', {
      hang: true,
      when: ({ config }) => config?.metadata?.name.startsWith('slow') ?? false,
    });
    const slow = Array.from({ length: 4 }, (_, i) => filePod(`slow-${i}`));
    const other = filePod('other');
    const loop = await startLoop({ world, pods: [...slow, other] });
    await loop.quiet();
    // Those that hang keep their places for a second, no longer.
    await loop.pass(1000);
    await loop.untilRunning(other);
    await loop.stop();
  });

  it('keeps no other pod from stopping: StopContainer', async () => {
    const slow = filePod('slow', { containers: [container('slow')] });
    const other = filePod('other');
    const loop = await startLoop({ world, pods: [slow, other] });
    await loop.untilRunning(slow, other);
    const { id } = world.runtime.running('slow');
    world.runtime.fail('StopContainer', {
      hang: true,
      times: 1,
      when: ({ containerId }) => containerId === id,
    });
    loop.want([]);
    await loop.untilGone(other);
    assert.ok(loop.workers.get(slow.metadata.uid));
    // The limit of the call is the grace period and two minutes; then it is tried again.
    await loop.pass(160_000);
    await loop.untilGone(slow);
    await loop.stop();
    assertNoTimers(world);
  });
});

const startCalls: readonly CallName[] = [
  'RunPodSandbox',
  'PodSandboxStatus',
  'CreateContainer',
  'StartContainer',
  'ContainerStatus',
  'ImageStatus',
  'ListPodSandbox',
  'ListContainers',
];
const stopCalls: readonly CallName[] = [
  'StopContainer',
  'StopPodSandbox',
  'RemovePodSandbox',
  'PodSandboxStatus',
  'ContainerStatus',
];

describe('an answer that is lost', () => {
  for (const call of startCalls) {
    it(`makes no container twice while a pod starts: ${call}`, async () => {
      const pod = filePod('pod');
      const loop = await startLoop({ world });
      world.runtime.loseResponse(call);
      loop.want([pod]);
      await loop.pass(3000);
      await loop.untilRunning(pod);
      assert.deepEqual(world.snapshot(), {
        sandboxes: ['pod-node/0 ready'],
        containers: ['pod-node/web/0 running 0 restarts 0 back-off 0'],
      });
      await loop.stop();
    });
  }

  for (const call of ['RunPodSandbox', 'CreateContainer', 'StartContainer'] as const) {
    it(`costs no time where the work was done: ${call}`, async () => {
      const pod = filePod('pod');
      const loop = await startLoop({ world, pods: [pod] });
      world.runtime.loseResponse(call);
      await loop.untilRunning(pod);
      assert.equal(world.runtime.requestsOf(call).length, 1);
      await loop.stop();
    });
  }

  it('of a start does not keep the postStart hook from running', async () => {
    const hook = { postStart: { exec: { command: ['greet'] } } };
    const pod = filePod('pod', { containers: [{ ...container('web'), lifecycle: hook }] });
    world.runtime.loseResponse('StartContainer');
    const loop = await startLoop({ world, pods: [pod] });
    await loop.untilRunning(pod);
    assert.equal(world.runtime.requestsOf('ExecSync').length, 1);
    assert.equal(world.runtime.containers.length, 1);
    await loop.stop();
  });

  for (const call of stopCalls) {
    it(`leaves nothing behind while a pod stops: ${call}`, async () => {
      const pod = filePod('pod');
      const loop = await startLoop({ world, pods: [pod] });
      await loop.untilRunning(pod);
      world.runtime.loseResponse(call);
      loop.want([]);
      await loop.pass(5000);
      await loop.untilGone(pod);
      assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
      await loop.stop();
      assertNoTimers(world);
    });
  }
});

describe('a call that fails three times', () => {
  const error = { code: RuntimeErrorCode.Unknown, text: 'no space left on device' };

  for (const call of startCalls) {
    it(`is tried until the pod runs: ${call}`, async () => {
      const pod = filePod('pod');
      const loop = await startLoop({ world });
      world.runtime.fail(call, { error, times: 3 });
      loop.want([pod]);
      await loop.pass(60_000);
      await loop.untilRunning(pod);
      assert.equal(world.runtime.containers.length, 1);
      assert.equal(world.runtime.sandboxes.length, 1);
      await loop.stop();
    });
  }

  for (const call of stopCalls) {
    it(`is tried until the pod is gone: ${call}`, async () => {
      const pod = filePod('pod');
      const loop = await startLoop({ world, pods: [pod] });
      await loop.untilRunning(pod);
      world.runtime.fail(call, { error, times: 3 });
      loop.want([]);
      await loop.pass(60_000);
      await loop.untilGone(pod);
      assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
      await loop.stop();
      assertNoTimers(world);
    });
  }

  it('shows its reason in the status and in an event, and waits longer each time', async () => {
    const pod = filePod('pod');
    world.runtime.fail('CreateContainer', { error, times: 3 });
    const loop = await startLoop({ world, pods: [pod] });
    const waiting = () => loop.status(pod)?.containerStatuses?.[0]?.state?.waiting;
    for (const [calls, waits] of [
      [1, 1000],
      [2, 2000],
      [3, 4000],
    ] as const) {
      await until(
        () => world.runtime.requestsOf('CreateContainer').length === calls,
        () => `no try ${calls}`,
      );
      await loop.quiet();
      assert.equal(waiting()?.reason, 'CreateContainerError');
      assert.match(waiting()?.message ?? '', /no space left on device/);
      await loop.pass(waits - 1);
      assert.equal(world.runtime.requestsOf('CreateContainer').length, calls);
      await loop.pass(1);
    }
    await loop.untilRunning(pod);
    assert.ok(loop.events.some((event) => /^Failed: Error: .*no space left on device/.test(event)));
    // Never anything else in between: who watches the status sees one steady reason.
    const reasons = loop.reports.map(({ status }) => status.containerStatuses?.[0]?.state?.waiting?.reason);
    const from = reasons.indexOf('CreateContainerError');
    const until_ = reasons.lastIndexOf('CreateContainerError');
    assert.deepEqual(new Set(reasons.slice(from, until_)), new Set(['CreateContainerError']));
    await loop.stop();
  });
});

describe('a name that the runtime still reserves', () => {
  const reserved = (what: string) => ({
    code: RuntimeErrorCode.Unknown,
    text: `failed to reserve ${what} name "x": name "x" is reserved for "y"`,
  });

  it('is waited for when it is a sandbox’s', async () => {
    const pod = filePod('pod');
    world.runtime.fail('RunPodSandbox', { error: reserved('sandbox'), times: 2 });
    const loop = await startLoop({ world, pods: [pod] });
    await loop.pass(3000);
    await loop.untilRunning(pod);
    assert.equal(world.runtime.sandboxes.length, 1);
    await loop.stop();
  });

  it('is waited for when it is a container’s', async () => {
    const pod = filePod('pod');
    world.runtime.fail('CreateContainer', { error: reserved('container'), times: 2 });
    const loop = await startLoop({ world, pods: [pod] });
    await loop.pass(3000);
    await loop.untilRunning(pod);
    assert.equal(world.runtime.containers.length, 1);
    await loop.stop();
  });
});

describe('an image', () => {
  it('that cannot be pulled holds back its own container only, and is tried with back-off', async () => {
    const pod = filePod('pod', { containers: [container('bad', 'missing'), container('good')] });
    const loop = await startLoop({ world, pods: [pod] });
    const bad = () => loop.status(pod)?.containerStatuses?.find(({ name }) => name === 'bad')?.state?.waiting;
    await loop.untilStatus(pod, 'waiting for its image', () => bad()?.reason === 'ErrImagePull');
    await loop.untilStatus(pod, 'running in part', ({ containerStatuses }) =>
      Boolean(containerStatuses?.find(({ name }) => name === 'good')?.state?.running),
    );
    await loop.quiet();
    const pulls = () =>
      world.runtime.requestsOf('PullImage').filter(({ image }) => image?.image.startsWith('missing')).length;
    assert.equal(pulls(), 1);
    // What people and tools look for between two tries.
    await loop.pass(1000);
    assert.equal(bad()?.reason, 'ImagePullBackOff');
    assert.match(bad()?.message ?? '', /^Back-off pulling image "missing": ErrImagePull: /);
    await loop.pass(8_999);
    assert.equal(pulls(), 1);
    await loop.pass(1);
    assert.equal(pulls(), 2);
    world.runtime.publishImage('missing');
    await loop.pass(20_000);
    await loop.untilRunning(pod);
    await loop.stop();
  });

  it('that is removed between its check and the container’s creation is fetched again', async () => {
    const pod = filePod('pod', { containers: [container('web', 'remote')] });
    world.runtime.fail('CreateContainer', {
      error: { code: RuntimeErrorCode.NotFound, text: 'failed to resolve image' },
      times: 1,
    });
    const loop = await startLoop({ world, pods: [pod] });
    await until(
      () => world.runtime.requestsOf('CreateContainer').length === 1,
      () => 'no container was tried',
    );
    await world.runtime.removeImage({
      image: { image: 'remote', annotations: {}, userSpecifiedImage: '', runtimeHandler: '', imageRef: '' },
    });
    await loop.pass(1000);
    await loop.untilRunning(pod);
    assert.equal(world.runtime.requestsOf('PullImage').length, 2);
    await loop.stop();
  });
});

describe('a pod of a machine that has started again', () => {
  it('is initialized anew: every init container runs, in its order, before the others', async () => {
    const pod = filePod('pod', {
      initContainers: [
        { name: 'setup', image: 'setup' },
        { name: 'proxy', image: 'proxy', restartPolicy: 'Always' },
        { name: 'migrate', image: 'job' },
      ],
      containers: [container('web')],
    });
    for (const name of ['setup', 'migrate']) {
      world.runtime.behave(name, { exit: { afterMs: 0, code: 0 } });
    }
    const order = ['setup', 'proxy', 'migrate', 'web'];
    const loop = await startLoop({ world, pods: [pod] });
    await loop.untilRunning(pod);
    assert.deepEqual(made(), order);
    await loop.stop();

    world.runtime.restart('reboot');
    const next = await startLoop({ world, pods: [pod] });
    await next.untilStatus(
      pod,
      'running again',
      ({ containerStatuses: [web] = [] }) => web?.state?.running !== undefined && web.restartCount === 1,
    );
    assert.deepEqual(made().slice(order.length), order);
    assert.equal(world.runtime.requestsOf('RunPodSandbox').length, 2);
    const { initContainerStatuses = [], phase } = next.status(pod) ?? {};
    assert.equal(phase, 'Running');
    assert.deepEqual(
      initContainerStatuses.map(({ name, restartCount }) => [name, restartCount]),
      [
        ['setup', 1],
        ['proxy', 1],
        ['migrate', 1],
      ],
    );
    await next.stop();
    assertNoTimers(world);
  });
});
