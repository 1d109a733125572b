/** What changes of a pod's object and long waits do, in virtual time. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Container, Pod } from '../../../src/kubernetes/types.ts';
import { startLoop, type TestLoop } from '../../loop/start-loop.ts';
import { World } from '../../loop/world.ts';
import { apiPod, starts, statusOf, untilRuns, watchStarts, withContainer } from './api-pod.ts';

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
const containers = (more: Partial<Container> = {}): Container[] => [
  { name: 'main', image: 'web', imagePullPolicy: 'IfNotPresent', ...more },
];
/** Seconds between the starts of the container. */
const delays = () => {
  const times = world.runtime.calls.filter(({ call }) => call === 'StartContainer').map(({ at }) => at);
  return times.slice(1).map((at, index) => Math.round((at - (times[index] ?? 0)) / 1000));
};

describe('restarts', () => {
  it('[sig-node] Pods should cap back-off at MaxContainerBackOff [Slow] [NodeConformance]', async () => {
    world.runtime.behave('main', { exit: { afterMs: 0, code: 1 } });
    const pod = apiPod('pod', { containers: containers() });
    const running = await start(pod);
    await running.pass(30 * 60_000);
    assert.deepEqual(delays().slice(0, 9), [0, 10, 20, 40, 80, 160, 300, 300, 300]);
    assert.match(
      statusOf(running.status(pod), 'main')?.state?.waiting?.message ?? '',
      /^back-off 5m0s restarting failed container=main/,
    );
  });

  it('[sig-node] Pods should have their auto-restart back-off timer reset on image update [Slow] [NodeConformance]', async () => {
    world.runtime.behave('main', { exit: { afterMs: 0, code: 1 } });
    const pod = apiPod('pod', { containers: containers() });
    const running = await start(pod);
    await running.pass(10 * 60_000);
    const before = starts(world).length;
    running.want([withContainer(pod, 'main', { image: 'newer' })]);
    await running.pass(100);
    assert.deepEqual(starts(world).slice(before).slice(0, 1), ['main newer']);
    await running.pass(60_000);
    assert.deepEqual(delays().slice(before, before + 3), [0, 10, 20]);
  });
});

describe('changes', () => {
  it('[sig-node] Pods should allow activeDeadlineSeconds to be updated [NodeConformance] [Conformance]', async () => {
    const pod = apiPod('pod', { containers: containers(), activeDeadlineSeconds: 3600 });
    const running = await start(pod);
    await running.untilRunning(pod);
    running.want([{ ...pod, spec: { ...pod.spec, activeDeadlineSeconds: 5 } }]);
    await running.pass(60_000);
    const status = running.status(pod);
    assert.deepEqual([status?.phase, status?.reason], ['Failed', 'DeadlineExceeded']);
  });

  it('[sig-node] Pods should support pod readiness gates [NodeConformance]', async () => {
    const [one, two] = ['k8s.io/test-condition1', 'k8s.io/test-condition2'];
    const pod = apiPod('pod', {
      containers: containers(),
      readinessGates: [{ conditionType: one }, { conditionType: two }],
    });
    const running = await start(pod);
    const ready = () => running.status(pod)?.conditions?.find(({ type }) => type === 'Ready');
    const opened = (...open: string[]): Pod => ({
      ...pod,
      status: {
        ...running.status(pod),
        conditions: [one, two].map((type) => ({ type, status: open.includes(type) ? 'True' : 'False' })),
      },
    });
    await untilRuns(world, 'main');
    await running.quiet();
    assert.deepEqual([ready()?.status, ready()?.reason], ['False', 'ReadinessGatesNotReady']);
    running.want([opened(one)]);
    await running.quiet();
    assert.match(ready()?.message ?? '', new RegExp(two));
    running.want([opened(one, two)]);
    await running.untilRunning(pod);
    running.want([opened(two)]);
    await running.quiet();
    assert.equal(ready()?.status, 'False');
  });

  it('[sig-node] Variable Expansion should verify that a failing subpath expansion can be modified during the lifecycle of a container [Slow] [Conformance]', async () => {
    const where = (value: string): Partial<Pod['metadata']> => ({
      annotations: { where: value, 'kubernetes.io/config.source': 'api' },
    });
    const pod = apiPod('pod', {
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: containers({
        env: [{ name: 'WHERE', valueFrom: { fieldRef: { fieldPath: "metadata.annotations['where']" } } }],
        volumeMounts: [{ name: 'data', mountPath: '/part', subPathExpr: '$(WHERE)' }],
      }),
    });
    const bad = { ...pod, metadata: { ...pod.metadata, ...where('/not/inside') } };
    const running = await start(bad);
    await running.untilStatus(
      bad,
      'held back',
      (status) => statusOf(status, 'main')?.state?.waiting?.reason === 'CreateContainerConfigError',
    );
    running.want([{ ...pod, metadata: { ...pod.metadata, ...where('inside') } }]);
    await running.pass(5 * 60_000);
    await running.untilRunning(pod);
    const [container] = world.runtime.containers;
    const mount = container?.config.mounts.find(({ containerPath }) => containerPath === '/part');
    assert.ok(mount);
    // Part of a volume is a mount of the node, which goes with the pod.
    running.want([]);
    await running.pass(60_000);
    await running.untilGone(pod);
  });
});
