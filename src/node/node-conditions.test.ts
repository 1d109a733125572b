import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { healthy } from './fixtures/node-world.ts';
import { type ConditionInput, nodeConditions } from './node-conditions.ts';
import { type NodeHealth, NodeHealthMonitor } from './node-health.ts';
import { type NodeCondition, wireTime } from './node-types.ts';

const now = Date.UTC(2026, 0, 2);
const earlier = '2026-01-01T00:00:00Z';
const capacityNames = ['cpu', 'memory', 'pods'];
const unchecked = 'container runtime status check may not have completed yet';

function conditions(health: Partial<NodeHealth>, input: Partial<ConditionInput> = {}): NodeCondition[] {
  return nodeConditions({
    health: { ...healthy, ...health },
    capacityNames,
    existing: [],
    rebooted: false,
    now,
    ...input,
  });
}

function ready(health: Partial<NodeHealth>, input: Partial<ConditionInput> = {}): NodeCondition | undefined {
  return conditions(health, input).find(({ type }) => type === 'Ready');
}

const readyBefore = (status: string): NodeCondition => ({
  type: 'Ready',
  status,
  reason: 'before',
  message: 'before',
  lastHeartbeatTime: earlier,
  lastTransitionTime: earlier,
});

test('a healthy node, in order and in words', () => {
  const times = { lastHeartbeatTime: wireTime(now), lastTransitionTime: wireTime(now) };
  assert.deepEqual(conditions({}), [
    {
      type: 'MemoryPressure',
      status: 'False',
      reason: 'KubeletHasSufficientMemory',
      message: 'kubelet has sufficient memory available',
      ...times,
    },
    {
      type: 'DiskPressure',
      status: 'False',
      reason: 'KubeletHasNoDiskPressure',
      message: 'kubelet has no disk pressure',
      ...times,
    },
    {
      type: 'PIDPressure',
      status: 'False',
      reason: 'KubeletHasSufficientPID',
      message: 'kubelet has sufficient PID available',
      ...times,
    },
    {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      message: 'kubelet is posting ready status',
      ...times,
    },
  ]);
});

test('a node under pressure', () => {
  const found = conditions({ pressure: { memory: true, disk: true, pids: true } }).map(
    ({ type, status, reason, message }) => [type, status, reason, message],
  );
  assert.deepEqual(found.slice(0, 3), [
    ['MemoryPressure', 'True', 'KubeletHasInsufficientMemory', 'kubelet has insufficient memory available'],
    ['DiskPressure', 'True', 'KubeletHasDiskPressure', 'kubelet has disk pressure'],
    ['PIDPressure', 'True', 'KubeletHasInsufficientPID', 'kubelet has insufficient PID available'],
  ]);
  assert.equal(found[3]?.[1], 'True');
});

describe('Ready is False, and says', () => {
  const network =
    'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:x';
  const cases: readonly (readonly [Partial<NodeHealth>, string])[] = [
    [{ runtime: 'down' }, 'container runtime is down'],
    [{ runtime: 'unchecked' }, unchecked],
    [{ networkNotReady: network }, network],
    [{ shuttingDown: true }, 'node is shutting down'],
    [{ storageNotReady: 'CSINode is not yet initialized' }, 'CSINode is not yet initialized'],
    [
      { relistSilentMs: 185_432 },
      'PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s',
    ],
    [
      { runtime: 'down', networkNotReady: network, shuttingDown: true },
      `[container runtime is down, ${network}, node is shutting down]`,
    ],
    [
      { runtime: 'unchecked', runtimeNotReady: 'container runtime not ready: a' },
      'container runtime not ready: a',
    ],
  ];
  for (const [health, message] of cases) {
    test(message, () => {
      const found = ready(health, { existing: [readyBefore('True')] });
      assert.deepEqual([found?.status, found?.reason, found?.message], ['False', 'KubeletNotReady', message]);
      assert.equal(found?.lastTransitionTime, wireTime(now));
    });
  }
  test('which capacity is missing', () => {
    assert.equal(
      ready({}, { capacityNames: ['pods'] })?.message,
      'missing node capacity for resources: cpu, memory',
    );
  });
});

test('warnings stand behind the message of a ready node', () => {
  assert.equal(
    ready({ warnings: ['CPU hardcapping unsupported'] })?.message,
    'kubelet is posting ready status. WARNING: CPU hardcapping unsupported',
  );
});

test('the time of transition moves with the status only', () => {
  assert.equal(ready({}, { existing: [readyBefore('True')] })?.lastTransitionTime, earlier);
  assert.equal(ready({}, { existing: [readyBefore('Unknown')] })?.lastTransitionTime, wireTime(now));
  const pending = new Map([['Ready=True', '2026-01-01T12:00:00Z']]);
  assert.equal(
    ready({}, { existing: [readyBefore('Unknown')], pending })?.lastTransitionTime,
    '2026-01-01T12:00:00Z',
  );
});

test('conditions of others are kept as they are', () => {
  const foreign = { type: 'NetworkUnavailable', status: 'False', reason: 'FlannelIsUp', message: 'up' };
  assert.deepEqual(conditions({}, { existing: [foreign] })[0], foreign);
});

describe('an agent that has just started', () => {
  const starting = { isStarting: true, runtime: 'unchecked', pressure: undefined } as const;
  for (const status of ['True', 'False', 'Unknown']) {
    test(`leaves Ready=${status} as it is until its first look is through`, () => {
      assert.deepEqual(ready(starting, { existing: [readyBefore(status)] }), readyBefore(status));
    });
  }
  test('says that it has not looked yet where nothing was said before', () => {
    assert.equal(ready(starting)?.message, unchecked);
  });
  test('does not believe what was said before the machine booted', () => {
    assert.equal(ready(starting, { existing: [readyBefore('True')], rebooted: true })?.status, 'False');
  });
  test('says it when the first look takes too long', () => {
    assert.equal(
      ready({ ...starting, isStarting: false }, { existing: [readyBefore('True')] })?.status,
      'False',
    );
  });
  test('says at once what it knows for certain', () => {
    const found = ready({ ...starting, shuttingDown: true }, { existing: [readyBefore('True')] });
    assert.equal(found?.message, `[node is shutting down, ${unchecked}]`);
  });
  test('leaves pressure as it is until it has been measured', () => {
    const pressure: NodeCondition = { type: 'DiskPressure', status: 'True', lastTransitionTime: earlier };
    assert.deepEqual(conditions(starting, { existing: [pressure] })[1], pressure);
    assert.equal(conditions(starting)[1]?.status, 'False');
  });
});

describe('health', () => {
  function world() {
    const clock = new VirtualClock();
    let changes = 0;
    const monitor = new NodeHealthMonitor({ clock, onChange: () => changes++ });
    return { clock, monitor, changes: () => changes };
  }

  test('the runtime is down 30 s after its last good answer, and good with the next', async () => {
    const { clock, monitor, changes } = world();
    monitor.runtimeGood();
    assert.deepEqual([monitor.health.runtime, changes()], ['good', 1]);
    await clock.advance(20_000);
    monitor.runtimeGood();
    await clock.advance(29_999);
    assert.equal(monitor.health.runtime, 'good');
    await clock.advance(1);
    assert.equal(monitor.health.runtime, 'down');
    monitor.runtimeGood();
    assert.equal(monitor.health.runtime, 'good');
    monitor.close();
  });

  test('a runtime that says it is not ready is believed at once', () => {
    const { monitor } = world();
    monitor.runtimeNotReady('container runtime not ready: x');
    assert.equal(monitor.health.runtimeNotReady, 'container runtime not ready: x');
    monitor.runtimeGood();
    assert.equal(monitor.health.runtimeNotReady, undefined);
    monitor.close();
  });

  test('relisting is missed after three minutes', async () => {
    const { clock, monitor } = world();
    await clock.advance(100_000);
    monitor.relisted();
    await clock.advance(179_999);
    assert.equal(monitor.health.relistSilentMs, undefined);
    await clock.advance(10_001);
    assert.equal(monitor.health.relistSilentMs, 190_000);
    monitor.relisted();
    assert.equal(monitor.health.relistSilentMs, undefined);
    monitor.close();
  });

  test('nothing is said where nothing changes, and the start is over after 30 s', async () => {
    const { clock, monitor, changes } = world();
    monitor.report({ warnings: [] });
    monitor.report({ shuttingDown: false });
    assert.equal(changes(), 0);
    await clock.advance(30_000);
    assert.deepEqual([monitor.health.isStarting, changes()], [false, 1]);
    monitor.close();
    assert.equal(clock.nextTimer(), undefined);
  });
});
