import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { type Metrics, silentMetrics } from '../telemetry/metrics.ts';
import { StartupTimes } from './node-startup-metrics.ts';

function world() {
  const clock = new VirtualClock();
  const values: Record<string, number> = {};
  const metrics: Metrics = {
    ...silentMetrics,
    gauge: ({ name }) => ({ set: (value) => (values[name] = value), remove() {} }),
  };
  const startedAt = clock.now();
  const times = new StartupTimes({ clock, metrics, bootedAt: startedAt - 20_000, startedAt });
  return { clock, values, times };
}

test('the parts of a new node’s start', async () => {
  const { clock, values, times } = world();
  await clock.advance(1000);
  times.attempted();
  await clock.advance(2000);
  times.attempted();
  times.registered();
  await clock.advance(3000);
  times.ready();
  await clock.advance(4000);
  times.ready();
  assert.deepEqual(values, {
    kubelet_node_startup_pre_kubelet_duration_seconds: 20,
    kubelet_node_startup_pre_registration_duration_seconds: 1,
    kubelet_node_startup_registration_duration_seconds: 2,
    kubelet_node_startup_post_registration_duration_seconds: 3,
    kubelet_node_startup_duration_seconds: 26,
  });
});

test('a node that was there before has none', () => {
  const { values, times } = world();
  times.attempted();
  times.ready();
  assert.deepEqual(values, {});
});
