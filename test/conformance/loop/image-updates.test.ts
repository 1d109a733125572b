/** What a changed image does to a pod that exists: to its containers at every point of their lives. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Container, Pod } from '../../../src/kubernetes/types.ts';
import { ContainerState } from '../../../src/runtime/generated/cri.ts';
import { startLoop, type TestLoop } from '../../loop/start-loop.ts';
import { until } from '../../loop/turns.ts';
import { World } from '../../loop/world.ts';
import { apiPod, marked, starts, statusOf, untilRuns, watchStarts, withContainer } from './api-pod.ts';

let world: World;
let loop: TestLoop | undefined;
beforeEach(() => {
  world = new World();
  world.runtime.addImage('newer');
  watchStarts(world);
});
afterEach(async () => {
  await loop?.stop();
  loop = undefined;
  world.remove();
});

const start = async (pod: Pod): Promise<TestLoop> => {
  loop = await startLoop({ world, pods: [pod], sources: ['api'] });
  return loop;
};
const container = (name: string, image: string, more: Partial<Container> = {}): Container => ({
  name,
  image,
  imagePullPolicy: 'IfNotPresent',
  ...more,
});
const main = (more: Partial<Container> = {}) => container('main', 'web', more);
const sidecar = (more: Partial<Container> = {}) =>
  container('sidecar', 'proxy', { restartPolicy: 'Always', ...more });
const init = (more: Partial<Container> = {}) => container('init', 'setup', more);
const newer = { image: 'newer' };

/** A probe whose command the container's behaviour answers. */
const probe = { exec: { command: ['check'] }, periodSeconds: 1, failureThreshold: 1 };
const failsCheck = { exec: () => ({ exitCode: 1 }) };
const passesCheck = { exec: () => ({ exitCode: 0 }) };

/** The container takes five seconds to stop, in which its image is changed. */
const slowStop = { onStopSignal: { afterMs: 5000, code: 1 } };

const killing = (name: string) =>
  until(
    () => world.runtime.calls.some(({ call }) => call === 'StopContainer'),
    () => `${name} was never stopped: ${JSON.stringify(world.snapshot())}`,
  );

describe('a regular container', () => {
  for (const [restartPolicy, title] of [
    [
      'Always',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers the regular container has its image updated should successfully restart when the image is updated, restartPolicy=Always',
    ],
    [
      'OnFailure',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers the regular container has its image updated should successfully restart when the image is updated and restartPolicy=OnFailure',
    ],
    [
      'Never',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers the regular container has its image updated should successfully restart when the image is updated and restartPolicy=Never',
    ],
  ] as const) {
    it(title, async () => {
      const pod = apiPod('pod', { restartPolicy, containers: [main()] });
      const running = await start(pod);
      await running.untilRunning(pod);
      running.want([withContainer(pod, 'main', newer)]);
      await untilRuns(world, 'main', 'newer');
      await running.untilRunning(pod);
      assert.deepEqual(starts(world), ['main web', 'main newer']);
      assert.equal(statusOf(running.status(pod), 'main')?.restartCount, 1);
      assert.equal(world.runtime.sandboxes.length, 1);
    });
  }

  for (const [restartPolicy, title] of [
    [
      'Always',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers the regular container has its image updated during initialization Should not start a regular container, restartPolicy=Always',
    ],
    [
      'OnFailure',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers the regular container has its image updated during initialization Should not start a regular container, restartPolicy=OnFailure',
    ],
    [
      'Never',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers the regular container has its image updated during initialization Should not start a regular container, restartPolicy=Never',
    ],
  ] as const) {
    it(title, async () => {
      const pod = apiPod('pod', { restartPolicy, initContainers: [init()], containers: [main()] });
      const running = await start(pod);
      await untilRuns(world, 'init');
      running.want([withContainer(pod, 'main', newer)]);
      await running.pass(30_000);
      assert.deepEqual(starts(world), ['init setup']);
      world.runtime.exit(world.runtime.running('init').id, 0);
      await untilRuns(world, 'main', 'newer');
      assert.deepEqual(starts(world), ['init setup', 'main newer']);
    });
  }

  for (const [restartPolicy, title] of [
    [
      'Always',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers The regular container has its image updated during termination should not update the image when restartPolicy=Always',
    ],
    [
      'OnFailure',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers The regular container has its image updated during termination should not update the image when restartPolicy=OnFailure',
    ],
    [
      'Never',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers The regular container has its image updated during termination should not update the image when restartPolicy=Never',
    ],
  ] as const) {
    it(title, () => updatedWhileEnding(apiPod('pod', { restartPolicy, containers: [main()] }), 'main'));
  }

  for (const [kind, restartPolicy, title] of [
    [
      'liveness',
      'Always',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers The regular container has its image updated after a failed liveness probe should update the image when restartPolicy=Always',
    ],
    [
      'liveness',
      'OnFailure',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers The regular container has its image updated after a failed liveness probe should update the image when restartPolicy=OnFailure',
    ],
    [
      'startup',
      'Always',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers The regular container has its image updated after a failed startup probe should update the image when restartPolicy=Always',
    ],
    [
      'startup',
      'OnFailure',
      '[sig-node] [NodeConformance] Containers Lifecycle A pod is running only regular containers The regular container has its image updated after a failed startup probe should update the image when restartPolicy=OnFailure',
    ],
  ] as const) {
    it(title, () =>
      updatedAfterProbe(
        apiPod('pod', { restartPolicy, containers: [main({ [`${kind}Probe`]: probe })] }),
        'main',
      ),
    );
  }
});

describe('a sidecar', () => {
  for (const [restartPolicy, titles] of [
    [
      'Always',
      {
        running:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Always a restartable init container runs continuously should restart when updated with a new image',
        ending:
          '[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The containers exit successfully A restartable init container has its image updated during pod termination should terminate gracefully when restartPolicy=Always',
        liveness:
          '[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with liveness probes A restartable init container has its image changed after its liveness probe fails should update the image when restartPolicy=Always',
        startup:
          "[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with startup probes the image is updated after the restartable init container's startup probe fails should update the image when restartPolicy=Always",
      },
    ],
    [
      'OnFailure',
      {
        running:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=OnFailure a restartable init container runs continuously should restart when updated with a new image',
        ending:
          '[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The containers exit successfully A restartable init container has its image updated during pod termination should terminate gracefully when restartPolicy=OnFailure',
        liveness:
          '[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with liveness probes A restartable init container has its image changed after its liveness probe fails should update the image when restartPolicy=OnFailure',
        startup:
          "[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with startup probes the image is updated after the restartable init container's startup probe fails should update the image when restartPolicy=OnFailure",
      },
    ],
    [
      'Never',
      {
        running:
          '[sig-node] [NodeConformance] Containers Lifecycle using a restartable init container in a Pod with restartPolicy=Never a restartable init container runs continuously should restart when updated with a new image',
        ending:
          '[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The containers exit successfully A restartable init container has its image updated during pod termination should terminate gracefully when restartPolicy=Never',
        liveness:
          '[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with liveness probes A restartable init container has its image changed after its liveness probe fails should update the image when restartPolicy=Never',
        startup:
          "[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with startup probes the image is updated after the restartable init container's startup probe fails should update the image when restartPolicy=Never",
      },
    ],
  ] as const) {
    const withSidecar = (more: Partial<Container> = {}) =>
      apiPod('pod', { restartPolicy, initContainers: [sidecar(more)], containers: [main()] });

    it(titles.running, async () => {
      const pod = withSidecar();
      const running = await start(pod);
      await running.untilRunning(pod);
      running.want([withContainer(pod, 'sidecar', newer)]);
      await untilRuns(world, 'sidecar', 'newer');
      await running.untilRunning(pod);
      assert.deepEqual(starts(world), ['sidecar proxy', 'main web', 'sidecar newer']);
      assert.equal(statusOf(running.status(pod), 'main')?.restartCount, 0);
    });
    it(titles.ending, () => updatedWhileEnding(withSidecar(), 'sidecar'));
    it(titles.liveness, () => updatedAfterProbe(withSidecar({ livenessProbe: probe }), 'sidecar'));
    it(titles.startup, () => updatedAfterProbe(withSidecar({ startupProbe: probe }), 'sidecar'));
  }
});

describe('an init container', () => {
  const pod = apiPod('pod', { restartPolicy: 'Always', initContainers: [init()], containers: [main()] });

  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Always the init container is updated with a new image should not restart init container when updated with a new image after finishing', async () => {
    world.runtime.behave('init', { exit: { afterMs: 0, code: 0 } });
    const running = await start(pod);
    await running.untilRunning(pod);
    running.want([withContainer(pod, 'init', newer)]);
    await running.pass(60_000);
    assert.deepEqual(starts(world), ['init setup', 'main web']);
  });

  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Always the init container is updated with a new image should not restart the init container if the image is updated during initialization', async () => {
    const running = await start(pod);
    await untilRuns(world, 'init');
    running.want([withContainer(pod, 'init', newer)]);
    await running.pass(60_000);
    assert.deepEqual(starts(world), ['init setup']);
    world.runtime.exit(world.runtime.running('init').id, 0);
    await running.untilRunning(pod);
    assert.deepEqual(starts(world), ['init setup', 'main web']);
  });

  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Always the init container is updated with a new image should not restart the init container if the image is updated during termination', async () => {
    world.runtime.behave('init', { exit: { afterMs: 0, code: 0 } });
    await updatedWhileEnding(pod, 'init');
  });
});

describe('a node with sidecars', () => {
  const pod = apiPod('pod', {
    restartPolicy: 'Always',
    initContainers: [init(), sidecar(), container('init-2', 'setup'), sidecar({ name: 'sidecar-2' })],
    containers: [main()],
  });
  const order = ['init setup', 'sidecar proxy', 'init-2 setup', 'sidecar-2 proxy', 'main web'];

  async function runningOn(next: Pod, between: () => void): Promise<TestLoop> {
    for (const name of ['init', 'init-2']) world.runtime.behave(name, { exit: { afterMs: 0, code: 0 } });
    const before = await start(pod);
    await before.untilRunning(pod);
    assert.deepEqual(starts(world), order);
    await before.stop();
    between();
    const after = await start(next);
    await after.untilRunning(next);
    await after.quiet();
    return after;
  }

  it('[sig-node] [NodeConformance] [Serial] Containers Lifecycle A node running restartable init containers reboots should restart the containers in right order after the node reboot', async () => {
    const running = await runningOn(pod, () => world.runtime.restart('reboot'));
    assert.deepEqual(starts(world), [...order, ...order]);
    assert.equal(statusOf(running.status(pod), 'main')?.restartCount, 1);
  });

  it('[sig-node] [NodeConformance] [Serial] Containers Lifecycle A node running restartable init containers reboots A node is rebooting and receives an update request should handle an update during the kubelet restart', async () => {
    const next = withContainer(pod, 'sidecar', newer);
    await runningOn(next, () => {});
    await untilRuns(world, 'sidecar', 'newer');
    assert.deepEqual(starts(world), [...order, 'sidecar newer']);
  });

  it('[sig-node] [NodeConformance] [Serial] Containers Lifecycle A node running restartable init containers reboots A node is rebooting and receives an update request should handle an update during the node reboot', async () => {
    const next = withContainer(pod, 'sidecar', newer);
    await runningOn(next, () => world.runtime.restart('reboot'));
    const updated = order.map((start) => (start === 'sidecar proxy' ? 'sidecar newer' : start));
    assert.deepEqual(starts(world), [...order, ...updated]);
  });
});

/** The image changes while the pod is on its way down: nothing of it is made again before nothing is left. */
async function updatedWhileEnding(pod: Pod, name: string): Promise<void> {
  for (const slow of ['main', 'sidecar']) world.runtime.behave(slow, slowStop);
  const running = await start(pod);
  await running.untilRunning(pod);
  const before = starts(world);
  running.want([marked(pod)]);
  await running.pass(1000);
  running.want([marked(withContainer(pod, name, newer))]);
  await running.pass(30_000);
  await running.untilGone(pod);
  assert.deepEqual(starts(world), before);
  assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
  assert.equal(world.runtime.calls.filter(({ call }) => call === 'StopContainer').length > 0, true);
}

/** The image changes while a container that failed its probe still stops: the next instance has the new one. */
async function updatedAfterProbe(pod: Pod, name: string): Promise<void> {
  world.runtime.behave(name, { ...slowStop, ...failsCheck });
  const running = await start(pod);
  await untilRuns(world, name);
  await running.pass(2000);
  await killing(name);
  running.want([withContainer(pod, name, newer)]);
  world.runtime.behave(name, passesCheck);
  await running.pass(10_000);
  await untilRuns(world, name, 'newer');
  await running.untilRunning(pod);
  const [image] = world.runtime.containers.filter(
    (one) => one.name === name && one.state === ContainerState.CONTAINER_RUNNING,
  );
  assert.equal(image?.config.image?.userSpecifiedImage, 'newer');
  assert.equal(starts(world).filter((start) => start.startsWith(`${name} `)).length, 2);
}
