import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Pod } from '../../src/kubernetes/types.ts';
import { ContainerState } from '../../src/runtime/generated/cri.ts';
import { assertNoTimers, startLoop, type TestLoop } from './start-loop.ts';
import { until } from './turns.ts';
import { filePod, World } from './world.ts';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.remove());

const attempt = () => world.runtime.running('web').config.metadata?.attempt;
const isRunning = (name = 'web') =>
  world.runtime.containers.some(
    (container) => container.name === name && container.state === ContainerState.CONTAINER_RUNNING,
  );
const untilAttempt = (wanted: number) =>
  until(
    () => isRunning() && attempt() === wanted,
    () => `attempt ${wanted} never ran: ${JSON.stringify(world.snapshot())}`,
  );

async function running(pod: Pod): Promise<TestLoop> {
  const loop = await startLoop({ world, pods: [pod] });
  await loop.untilRunning(pod);
  await loop.quiet();
  return loop;
}

describe('a container that ends', () => {
  it('runs again without any time passing: the event alone brings it back', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    const before = world.clock.now();
    world.runtime.exit(world.runtime.running('web').id, 1);
    await untilAttempt(1);
    assert.equal(world.clock.now(), before);
    const status = await loop.untilStatus(pod, 'restarted', ({ containerStatuses: [web] = [] }) =>
      Boolean(web?.restartCount === 1 && web.state?.running),
    );
    assert.equal(status.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 1);
    await loop.stop();
    assertNoTimers(world);
  });

  it('waits 10 s, 20 s, … 300 s from its end, and 300 s ever after', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    const delays: number[] = [];
    for (let round = 0; round < 8; round++) {
      const ended = world.clock.now();
      world.runtime.exit(world.runtime.running('web').id, 1);
      await loop.quiet();
      while (!isRunning()) await loop.pass(1000);
      delays.push((world.clock.now() - ended) / 1000);
    }
    assert.deepEqual(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
    assert.ok(
      loop.events.some((event) => event.startsWith('BackOff: Back-off restarting failed container web')),
    );
    assert.equal(world.runtime.containers.length, 2, 'one dead instance is kept');
    await loop.stop();
  });

  it('that cannot start at all waits as one that crashes', async () => {
    world.runtime.behave('web', { startError: 'exec: "nope": executable file not found in $PATH' });
    const pod = filePod('pod');
    const loop = await startLoop({ world, pods: [pod] });
    await loop.untilStatus(
      pod,
      'backing off',
      ({ containerStatuses: [web] = [] }) => web?.state?.waiting?.reason === 'CrashLoopBackOff',
    );
    const before = world.runtime.requestsOf('CreateContainer').length;
    await loop.pass(9_000);
    assert.equal(world.runtime.requestsOf('CreateContainer').length, before);
    assert.equal(loop.status(pod)?.containerStatuses?.[0]?.lastState?.terminated?.reason, 'StartError');
    await loop.stop();
  });

  it('ends the pod where its policy says so, and the outcome outlives the agent', async () => {
    const pod = filePod('job', { restartPolicy: 'Never', containers: [{ name: 'job', image: 'job' }] });
    world.runtime.behave('job', { exit: { afterMs: 0, code: 0 } });
    let loop = await startLoop({ world, pods: [pod] });
    await loop.untilStatus(pod, 'done', ({ phase }) => phase === 'Succeeded');
    await loop.quiet();
    await loop.stop();
    // Even when the runtime has lost everything meanwhile.
    world.runtime.restart('loss');
    loop = await startLoop({ world, pods: [pod] });
    const status = await loop.untilStatus(pod, 'still done', ({ phase }) => phase === 'Succeeded');
    assert.equal(status.containerStatuses?.[0]?.state?.terminated?.exitCode, 0);
    await loop.quiet();
    assert.equal(world.runtime.requestsOf('CreateContainer').length, 1);
    await loop.stop();
  });

  it('is restarted even when its last words cannot be read', async () => {
    const pod = filePod('pod');
    const loop = await startLoop({
      world,
      pods: [pod],
      readMessages: () => Promise.reject(new Error('input/output error')),
    });
    await loop.untilRunning(pod);
    world.runtime.exit(world.runtime.running('web').id, 1);
    await untilAttempt(1);
    await loop.stop();
  });

  it('causes nothing twice while reading last words takes long', async () => {
    // Reading is what a look waits for; all the while other actions of the pod come to their ends.
    const gates: (() => void)[] = [];
    const pod = filePod('pod', {
      initContainers: [{ name: 'setup', image: 'setup', imagePullPolicy: 'IfNotPresent' }],
      containers: ['a', 'b', 'c'].map((name) => ({ name, image: 'web', imagePullPolicy: 'IfNotPresent' })),
    });
    world.runtime.behave('setup', { exit: { afterMs: 0, code: 0 } });
    const loop = await startLoop({
      world,
      pods: [pod],
      readMessages: async () => {
        await new Promise<void>((resolve) => gates.push(resolve));
        return {};
      },
    });
    for (let round = 0; round < 6; round++) {
      await loop.quiet();
      for (const open of gates.splice(0)) open();
      await loop.quiet();
      const alive = world.runtime.containers.find(
        ({ name, state }) => name === 'a' && state === ContainerState.CONTAINER_RUNNING,
      );
      if (alive && round < 3) world.runtime.exit(alive.id, 1);
    }
    await loop.pass(100_000);
    for (const open of gates.splice(0)) open();
    await loop.untilRunning(pod);
    const starts = world.runtime.requestsOf('StartContainer').map(({ containerId }) => containerId);
    assert.equal(new Set(starts).size, starts.length, 'no instance was started twice');
    assert.deepEqual(
      loop.events.filter((event) => event.startsWith('Failed')),
      [],
    );
    assert.equal(world.runtime.sandboxes.length, 1);
    await loop.stop();
  });
});

describe('a sandbox that dies', () => {
  it('is replaced, and every container in it', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    const [sandbox] = world.runtime.sandboxes;
    world.runtime.crashSandbox(sandbox!.id);
    await until(
      () => world.runtime.sandboxes.some(({ config, ready }) => config.metadata?.attempt === 1 && ready),
      () => JSON.stringify(world.snapshot()),
    );
    await loop.untilStatus(pod, 'running again', ({ containerStatuses: [web] = [] }) =>
      Boolean(web?.state?.running && web.restartCount === 1),
    );
    assert.ok(loop.events.includes('SandboxChanged: Pod sandbox changed, it will be killed and re-created.'));
    await loop.stop();
  });

  it('has its configuration worked out once for each sandbox, whatever happens in it', async () => {
    // Told each time the DNS of a pod is worked out on a node without cluster DNS.
    const told = () => loop.events.filter((event) => event.startsWith('MissingClusterDNS: pod: ')).length;
    const pod = filePod('pod');
    const loop = await running(pod);
    world.runtime.crashSandbox(world.runtime.sandboxes[0]!.id);
    await untilAttempt(1);
    world.runtime.exit(world.runtime.running('web').id, 1);
    await loop.pass(10_000);
    await untilAttempt(2);
    assert.equal(told(), 2);
    await loop.stop();
  });

  it('again and again makes no hot loop and no heap of dead ones', async () => {
    const pod = filePod('pod');
    const stopCrashing = world.runtime.onEvent(({ kind, object, id }) => {
      if (kind === 'started' && object === 'sandbox') world.runtime.crashSandbox(id);
    });
    const loop = await startLoop({ world, pods: [pod] });
    await loop.pass(60_000);
    const asked = world.runtime.requestsOf('RunPodSandbox').length;
    assert.ok(asked >= 4 && asked <= 8, `${asked} sandboxes in a minute`);
    assert.ok(world.runtime.sandboxes.length <= 2, `${world.runtime.sandboxes.length} are left`);
    stopCrashing();
    await loop.pass(30_000);
    await loop.untilRunning(pod);
    await loop.pass(1000);
    assert.equal(world.runtime.sandboxes.length, 1);
    await loop.stop();
  });
});

describe('the runtime restarts', () => {
  it('with what it knew: nothing happens', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    const before = world.snapshot();
    world.runtime.restart();
    await loop.pass(120_000);
    assert.deepEqual(world.snapshot(), before);
    await loop.stop();
  });

  it('while a pod starts: it starts all the same, once', async () => {
    const pods = Array.from({ length: 5 }, (_, i) => filePod(`pod-${i}`));
    for (const call of ['RunPodSandbox', 'CreateContainer', 'StartContainer'] as const) {
      const small = new World();
      try {
        const loop = await startLoop({ world: small, pods });
        await until(
          () => small.runtime.requestsOf(call).length > 0,
          () => `no ${call}`,
        );
        small.runtime.down();
        await loop.pass(5_000);
        small.runtime.up();
        await loop.pass(30_000);
        await loop.untilRunning(...pods);
        assert.equal(small.runtime.containers.length, pods.length);
        assert.equal(small.runtime.sandboxes.length, pods.length);
        await loop.stop();
      } finally {
        small.remove();
      }
    }
  });

  it('while a pod stops: it goes all the same', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    world.runtime.behave('web', { onStopSignal: { afterMs: 5000 } });
    loop.want([]);
    await loop.pass(1000);
    world.runtime.down();
    await loop.pass(10_000);
    world.runtime.up();
    await loop.pass(30_000);
    await loop.untilGone(pod);
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
    await loop.stop();
    assertNoTimers(world);
  });

  it('and containers have ended meanwhile: the gap in the events is seen through at once', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    world.runtime.eventsOn = false;
    world.runtime.exit(world.runtime.running('web').id, 1);
    world.runtime.eventsOn = true;
    await loop.quiet();
    assert.equal(isRunning(), false, 'nobody has told yet');
    const before = world.clock.now();
    world.runtime.restart();
    await untilAttempt(1);
    assert.equal(world.clock.now(), before);
    await loop.stop();
  });

  it('with every process gone: pods come back in new sandboxes, counting on', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    world.runtime.restart('reboot');
    await untilAttempt(1);
    await loop.untilRunning(pod);
    await loop.pass(1000);
    assert.deepEqual(
      world.runtime.sandboxes.map(({ config }) => config.metadata?.attempt),
      [0, 1],
      'the sandbox of the dead instance that is kept stays with it',
    );
    await loop.stop();
  });

  it('with a container that was made and not started: it is made anew, whatever the policy', async () => {
    const pod = filePod('pod', { restartPolicy: 'Never' });
    const loop = await startLoop({
      world,
      pods: [pod],
      onStep: async (moment, { kind }) => {
        if (moment !== 'before' || kind !== 'start-container' || world.runtime.containers.length > 1) return;
        world.runtime.restart('reboot');
      },
    });
    await loop.pass(10_000);
    await loop.untilRunning(pod);
    await loop.stop();
  });

  it('with nothing left: pods come back, and their logs are not written over', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    for (const round of [1, 2, 3]) {
      world.runtime.restart('loss');
      await untilAttempt(round);
      await loop.untilStatus(pod, 'running again', ({ containerStatuses: [web] = [] }) =>
        Boolean(web?.state?.running && web.restartCount === round),
      );
      assert.equal(world.runtime.containers.length, 1);
    }
    await loop.stop();
  });
});

describe('events that are lost without anybody noticing', () => {
  it('are made up for by the slow relist', async () => {
    const pod = filePod('pod');
    const loop = await running(pod);
    world.runtime.eventsOn = false;
    world.runtime.exit(world.runtime.running('web').id, 1);
    await loop.pass(60_000);
    await untilAttempt(1);
    await loop.stop();
  });
});
