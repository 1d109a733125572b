import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { declareBuildInfo, MetricConflict, MetricsRegistry } from './metrics-registry.ts';
import { declareProcessMetrics } from './process-metrics.ts';

/** The value of the series that starts with `series`. */
function valueOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((row) => row.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

describe('the metrics registry', () => {
  it('writes counters, gauges and histograms', async () => {
    const metrics = new MetricsRegistry();
    const counter = metrics.counter({ name: 'pulls_total', help: 'h', labels: ['image'] });
    counter.inc({ image: 'a"b' });
    counter.inc({ image: 'a"b' }, 2);
    metrics.counter({ name: 'bare_total', help: 'h' }).inc();
    const gauge = metrics.gauge({ name: 'pods', help: 'h', labels: ['state'] });
    gauge.set(3, { state: 'running' });
    gauge.set(1, { state: 'gone' });
    gauge.remove({ state: 'gone' });
    metrics.histogram({ name: 'wait_seconds', help: 'h', buckets: [0.1, 1] }).observe(0.5);

    const text = await metrics.exposition();
    assert.equal(valueOf(text, 'pulls_total{image="a\\"b"}'), 3);
    assert.equal(valueOf(text, 'bare_total'), 1);
    assert.equal(valueOf(text, 'pods{state="running"}'), 3);
    assert.equal(valueOf(text, 'pods{state="gone"}'), undefined);
    assert.equal(valueOf(text, 'wait_seconds_bucket{le="0.1"}'), 0);
    assert.equal(valueOf(text, 'wait_seconds_bucket{le="1"}'), 1);
    assert.equal(valueOf(text, 'wait_seconds_sum'), 0.5);
    assert.match(text, /# TYPE pulls_total counter/);
  });

  it('counts its metrics by how stable they are', async () => {
    const metrics = new MetricsRegistry();
    metrics.declareCountOfMetrics();
    metrics.counter({ name: 'a', help: '[ALPHA] h' });
    metrics.counter({ name: 'b', help: '[ALPHA] h' });
    metrics.gauge({ name: 'c', help: 'h' });
    const text = await metrics.exposition();
    const of = (stability: string) =>
      valueOf(text, `registered_metrics_total{stability_level="${stability}",deprecated_version=""}`);
    assert.deepEqual([of('ALPHA'), of('BETA'), of('STABLE')], [2, 1, 1]);
  });

  it('asks observed metrics when scraped, forgets series that are gone, and survives a failing one', async () => {
    const metrics = new MetricsRegistry();
    let states = ['a', 'b'];
    metrics.observedGauge({ name: 'seen', help: 'h', labels: ['state'] }, () =>
      states.map((state) => ({ value: 1, labels: { state } })),
    );
    metrics.observedGauge({ name: 'broken', help: 'h', labels: ['x'] }, () => {
      throw new Error('no');
    });
    assert.equal(valueOf(await metrics.exposition(), 'seen{state="b"}'), 1);
    states = ['a'];
    const text = await metrics.exposition();
    assert.equal(valueOf(text, 'seen{state="a"}'), 1);
    assert.equal(valueOf(text, 'seen{state="b"}'), undefined);
  });

  it('gives the same metric to rooms that declare it alike, and refuses another shape', async () => {
    const metrics = new MetricsRegistry();
    const options = { name: 'x_total', help: 'h', labels: ['a', 'b'] };
    metrics.counter(options).inc({ a: '1', b: '2' });
    metrics.counter({ ...options, labels: ['b', 'a'] }).inc({ a: '1', b: '2' });
    assert.equal(valueOf(await metrics.exposition(), 'x_total{a="1",b="2"}'), 2);
    assert.throws(() => metrics.gauge(options), MetricConflict);
    assert.throws(() => metrics.counter({ ...options, labels: ['a'] }), MetricConflict);
    metrics.observedGauge({ name: 'y', help: 'h' }, () => []);
    assert.throws(() => metrics.observedGauge({ name: 'y', help: 'h' }, () => []), MetricConflict);
  });

  it('tells the build', async () => {
    const metrics = new MetricsRegistry();
    declareBuildInfo(metrics, { version: '1.36.2', gitCommit: 'abc', gitTreeState: 'clean', buildDate: '' });
    const line = (await metrics.exposition())
      .split('\n')
      .find((row) => row.startsWith('kubernetes_build_info{'));
    assert.match(line ?? '', /git_version="v1\.36\.2".*major="1",minor="36",platform="linux\/.*\} 1$/);
  });

  it('tells what the process uses', async () => {
    const metrics = new MetricsRegistry();
    declareProcessMetrics(metrics);
    const text = await metrics.exposition();
    const started = valueOf(text, 'process_start_time_seconds') ?? 0;
    assert.ok(Math.abs(Date.now() / 1000 - process.uptime() - started) < 5, `started ${started}`);
    assert.ok((valueOf(text, 'process_resident_memory_bytes') ?? 0) > 2 ** 20);
    assert.ok((valueOf(text, 'process_virtual_memory_bytes') ?? 0) > 2 ** 20);
    assert.ok((valueOf(text, 'process_virtual_memory_max_bytes') ?? 0) > 2 ** 20);
    assert.ok((valueOf(text, 'process_cpu_seconds_total') ?? 0) > 0);
    const open = valueOf(text, 'process_open_fds') ?? 0;
    assert.ok(open > 2 && open < (valueOf(text, 'process_max_fds') ?? 0));
  });
});
