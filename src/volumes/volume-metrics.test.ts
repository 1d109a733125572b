import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { VolumeMetrics } from './volume-metrics.ts';

test('volumes that were set up and that failed are told apart, with their time', async () => {
  const metrics = new MetricsRegistry();
  const clock = new VirtualClock();
  const volumes = new VolumeMetrics({ metrics, clock });
  const work = Promise.withResolvers<string>();
  const mounted = volumes.mount('configMap', work.promise);
  await clock.advance(3000);
  work.resolve('done');
  assert.equal(await mounted, 'done');
  await assert.rejects(volumes.mount('image', Promise.reject(new Error('disk'))), /disk/);
  const text = await metrics.exposition();
  const series = (plugin: string, status: string) =>
    `{operation_name="volume_mount",migrated="false",volume_plugin="kubernetes.io/${plugin}",status="${status}"}`;
  const name = 'storage_operation_duration_seconds';
  for (const line of [
    `${name}_sum${series('configmap', 'success')} 3`,
    `${name}_count${series('image', 'fail-unknown')} 1`,
  ]) {
    assert.ok(text.includes(`${line}\n`), text);
  }
});
