/** The last word about pods that are deleted: their phase, from how their containers ended. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Pod, PodStatus } from '../../../src/kubernetes/types.ts';
import { startLoop, type TestLoop } from '../../loop/start-loop.ts';
import { World } from '../../loop/world.ts';
import { apiPod, marked, statusOf, untilRuns } from './api-pod.ts';

let world: World;
let loop: TestLoop | undefined;
beforeEach(() => {
  world = new World();
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

/** Deletes a running pod; answers the last status that was reported of it. */
async function deleted(pod: Pod, passMs = 60_000): Promise<PodStatus | undefined> {
  const running = await start(pod);
  await running.untilRunning(pod);
  running.want([marked(pod)]);
  await running.pass(passMs);
  await running.untilGone(pod);
  return running.reports.at(-1)?.status;
}

const main = (more: object = {}) => ({
  containers: [{ name: 'main', image: 'web', imagePullPolicy: 'IfNotPresent', ...more }],
});

describe('a regular container that does not end in its grace period', () => {
  const pod = (more: object = {}) =>
    apiPod('pod', {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 5,
      initContainers: [
        { name: 'sidecar', image: 'proxy', imagePullPolicy: 'IfNotPresent', restartPolicy: 'Always' },
      ],
      ...main(more),
    });

  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The regular container has exceeded its termination grace period seconds should mark pod as failed if regular container has exceeded its termination grace period seconds', async () => {
    world.runtime.behave('main', { onStopSignal: 'ignore' });
    const status = await deleted(pod());
    assert.equal(status?.phase, 'Failed');
    assert.equal(statusOf(status, 'main')?.state?.terminated?.exitCode, 137);
  });

  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The regular containers have exceeded its termination grace period seconds by prestop hook should mark pod as failed if any of the prestop hook in regular container has exceeded its termination grace period seconds', async () => {
    world.runtime.behave('main', {
      exec: () => ({ exitCode: 0, afterMs: 3_600_000 }),
      onStopSignal: 'ignore',
    });
    const status = await deleted(pod({ lifecycle: { preStop: { exec: { command: ['wait'] } } } }));
    assert.equal(status?.phase, 'Failed');
    assert.equal(statusOf(status, 'main')?.state?.terminated?.exitCode, 137);
  });
});

describe('a pod that is deleted', () => {
  for (const [phase, code, restartPolicy, title] of [
    [
      'Failed',
      1,
      'Always',
      '[sig-node] Deleted pods handling [NodeConformance] Should transition to Failed phase a deleted pod if non-zero exit codes Restart policy Always',
    ],
    [
      'Failed',
      1,
      'OnFailure',
      '[sig-node] Deleted pods handling [NodeConformance] Should transition to Failed phase a deleted pod if non-zero exit codes Restart policy OnFailure',
    ],
    [
      'Failed',
      1,
      'Never',
      '[sig-node] Deleted pods handling [NodeConformance] Should transition to Failed phase a deleted pod if non-zero exit codes Restart policy Never',
    ],
    [
      'Succeeded',
      0,
      'Always',
      '[sig-node] Deleted pods handling [NodeConformance] Should transition to Succeeded phase a deleted pod when containers complete with 0 exit code Restart policy Always',
    ],
    [
      'Succeeded',
      0,
      'OnFailure',
      '[sig-node] Deleted pods handling [NodeConformance] Should transition to Succeeded phase a deleted pod when containers complete with 0 exit code Restart policy OnFailure',
    ],
    [
      'Succeeded',
      0,
      'Never',
      '[sig-node] Deleted pods handling [NodeConformance] Should transition to Succeeded phase a deleted pod when containers complete with 0 exit code Restart policy Never',
    ],
  ] as const) {
    it(title, async () => {
      world.runtime.behave('main', { onStopSignal: { code } });
      const status = await deleted(apiPod('pod', { restartPolicy, ...main() }));
      assert.equal(status?.phase, phase);
      assert.equal(statusOf(status, 'main')?.state?.terminated?.exitCode, code);
    });
  }

  it('[sig-node] Deleted pods handling [NodeConformance] Should transition to Failed phase a pod which is deleted while pending', async () => {
    const pod = apiPod('pod', main({ image: 'nowhere' }));
    const running = await start(pod);
    await running.untilStatus(pod, 'without its image', (status) =>
      Boolean(statusOf(status, 'main')?.state?.waiting?.reason?.startsWith('Err')),
    );
    assert.equal(running.status(pod)?.phase, 'Pending');
    running.want([marked(pod)]);
    await running.pass(60_000);
    await running.untilGone(pod);
    assert.equal(running.reports.at(-1)?.status.phase, 'Failed');
  });

  it('[sig-node] Pod IPs [NodeConformance] when pod gets terminated should contain podIPs in status for during termination', async () => {
    world.runtime.behave('main', { onStopSignal: { afterMs: 5000 } });
    const pod = apiPod('pod', main());
    const running = await start(pod);
    await running.untilRunning(pod);
    const { podIP, podIPs } = running.status(pod) ?? {};
    assert.ok(podIP);
    const reported = running.reports.length;
    running.want([marked(pod)]);
    await running.pass(60_000);
    await running.untilGone(pod);
    const ending = running.reports.slice(reported);
    assert.ok(ending.length > 1);
    for (const { status } of ending)
      assert.deepEqual([status.podIP, status.podIPs], [podIP, podIPs], 'it is kept to the last report');
  });
});

describe('a preStop hook that sleeps', () => {
  it('[sig-node] Lifecycle Sleep Hook [NodeConformance] when create a pod with lifecycle hook using sleep action reduce GracePeriodSeconds during runtime', async () => {
    const pod = apiPod('pod', {
      terminationGracePeriodSeconds: 30,
      ...main({ lifecycle: { preStop: { sleep: { seconds: 15 } } } }),
    });
    const running = await start(pod);
    await running.untilRunning(pod);
    const begun = world.clock.now();
    running.want([marked(pod, 30)]);
    await running.pass(2000);
    await untilRuns(world, 'main');
    running.want([marked(pod, 1)]);
    await running.pass(1);
    await running.untilGone(pod);
    assert.ok(world.clock.now() - begun < 5000);
  });
});
