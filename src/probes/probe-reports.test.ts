import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { probedPod } from './fixtures/probed-pod.ts';
import { countingMetrics } from './fixtures/prober-world.ts';
import type { ProbeOutcome } from './probe-outcome.ts';
import { ProbeReports } from './probe-reports.ts';

function world() {
  const clock = new VirtualClock();
  const events: string[] = [];
  const series = new Map<string, number>();
  const reports = new ProbeReports({
    clock,
    logger: silentLogger,
    events: {
      event: ({ fieldPath }, type, reason, message) =>
        events.push(`${type} ${reason} ${fieldPath}: ${message}`),
    },
    metrics: countingMetrics(series),
  });
  return { clock, events, series, reports };
}

const probed = (pod = probedPod()) => ({
  pod,
  place: { container: { name: 'app' }, kind: 'regular' as const, fieldPath: 'spec.containers{app}' },
  kind: 'readiness' as const,
});
const regular = { look: false, durationMs: 7 };

describe('reports of probes', () => {
  const table: readonly (readonly [ProbeOutcome, boolean, string | undefined])[] = [
    [{ result: 'success', output: 'ok' }, false, undefined],
    [
      { result: 'failure', output: 'no' },
      false,
      'Unhealthy spec.containers{app}: Readiness probe failed: no',
    ],
    [{ result: 'failure', output: 'no' }, true, undefined],
    [
      { result: 'warning', output: 'moved' },
      false,
      'ProbeWarning spec.containers{app}: Readiness probe warning: moved',
    ],
    [
      { result: 'warning', output: 'moved' },
      true,
      'ProbeWarning spec.containers{app}: Readiness probe warning: moved',
    ],
    [
      { result: 'unknown', error: 'no runtime' },
      false,
      'Unhealthy spec.containers{app}: Readiness probe errored and resulted in unknown state: no runtime',
    ],
    [{ result: 'unknown', error: 'no runtime' }, true, undefined],
  ];
  for (const [outcome, look, event] of table) {
    it(`have ${event ? 'an' : 'no'} event for ${look ? 'a look with ' : ''}${outcome.result}`, () => {
      const { events, reports } = world();
      reports.of(probed()).outcome(probed(), outcome, { look, durationMs: 7 });
      assert.deepEqual(events, event ? [`Warning ${event}`] : []);
    });
  }

  it('count every run, and time those that did not fail', () => {
    const { series, reports } = world();
    const report = reports.of(probed());
    for (const result of ['success', 'warning', 'failure'] as const)
      report.outcome(probed(), { result, output: '' }, regular);
    report.outcome(probed(), { result: 'unknown', error: '' }, regular);
    const labels = (more: string) => `"container":"app","namespace":"default","pod":"web"${more}`;
    assert.deepEqual(Object.fromEntries(series), {
      [`prober_probe_total {${labels(',"pod_uid":"u1","probe_type":"Readiness","result":"successful"')}}`]: 2,
      [`prober_probe_total {${labels(',"pod_uid":"u1","probe_type":"Readiness","result":"failed"')}}`]: 1,
      [`prober_probe_total {${labels(',"pod_uid":"u1","probe_type":"Readiness","result":"unknown"')}}`]: 1,
      [`prober_probe_duration_seconds {${labels(',"probe_type":"Readiness"')}}`]: 3,
    });
    report.end();
    assert.equal(series.size, 0);
  });

  it('share the durations of one workload until its last pod is gone', () => {
    const { series, reports } = world();
    const podOf = (end: string) => {
      const pod = probedPod({ uid: end });
      const name = `front-web-5d4f8-${end}`;
      return {
        ...pod,
        metadata: {
          ...pod.metadata,
          name,
          generateName: 'front-web-5d4f8-',
          labels: { 'pod-template-hash': '5d4f8' },
        },
      };
    };
    const both = ['aaaaa', 'bbbbb'].map((end) => probed(podOf(end)));
    const [first, second] = both.map((one) => {
      const report = reports.of(one);
      report.outcome(one, { result: 'success', output: '' }, regular);
      return report;
    });
    const durations = () => [...series].filter(([key]) => key.startsWith('prober_probe_duration_seconds'));
    assert.deepEqual(durations(), [
      [
        'prober_probe_duration_seconds {"container":"app","namespace":"default","pod":"front-web","probe_type":"Readiness"}',
        2,
      ],
    ]);
    first?.end();
    assert.equal(durations().length, 1);
    second?.end();
    assert.equal(series.size, 0);
  });

  it('repeat an event once a second at most, and a new one at once', async () => {
    const { clock, events, reports } = world();
    const report = reports.of(probed());
    for (let run = 0; run < 10; run++) {
      report.outcome(probed(), { result: 'failure', output: 'no' }, regular);
      await clock.advance(200);
    }
    assert.equal(events.length, 2);
    report.outcome(probed(), { result: 'failure', output: 'else' }, regular);
    assert.equal(events.length, 3);
  });
});
