import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerVerdict, type Verdicts } from './container-verdict.ts';

describe('what the probes of a container say together', () => {
  // started, ready, failed; then which probes run: startup, liveness, readiness.
  const table: readonly (readonly [string, Verdicts['verdicts'], boolean, string])[] = [
    ['no probe counts as success', {}, false, 'started ready, -LR'],
    [
      'nothing but startup runs before it has succeeded',
      { startup: 'unknown', liveness: 'success', readiness: 'failure' },
      false,
      ', S--',
    ],
    ['ready only when started', { startup: 'unknown' }, false, ', S--'],
    [
      'a remembered readiness waits for startup too',
      { startup: 'unknown', readiness: 'success' },
      false,
      ', S--',
    ],
    [
      'startup idles after its success',
      { startup: 'success', liveness: 'success', readiness: 'failure' },
      false,
      'started, -LR',
    ],
    ['started and ready', { startup: 'success', readiness: 'success' }, false, 'started ready, -LR'],
    ['startup has failed', { startup: 'failure' }, false, 'failed-startup, ---'],
    [
      'liveness has failed, readiness goes on',
      { liveness: 'failure', readiness: 'success' },
      false,
      'started ready failed-liveness, --R',
    ],
    [
      'at the end of the pod readiness alone goes on',
      { startup: 'success', liveness: 'success', readiness: 'success' },
      true,
      'started ready, --R',
    ],
    [
      'at the end of the pod liveness counts as success',
      { liveness: 'failure', readiness: 'failure' },
      true,
      'started, --R',
    ],
    [
      'at the end of the pod startup counts as success',
      { startup: 'unknown', readiness: 'failure' },
      true,
      'started, --R',
    ],
  ];
  for (const [name, verdicts, terminating, expected] of table) {
    it(name, () => {
      const { health, open } = containerVerdict({ verdicts, terminating });
      const words = [
        health.started && 'started',
        health.ready && 'ready',
        health.failed && `failed-${health.failed.probe}`,
      ];
      const letters = [open.startup ? 'S' : '-', open.liveness ? 'L' : '-', open.readiness ? 'R' : '-'];
      assert.equal(`${words.filter(Boolean).join(' ')}, ${letters.join('')}`, expected);
    });
  }

  it('hands on the grace period of the probe that failed', () => {
    const { health } = containerVerdict({
      verdicts: { liveness: 'failure', startup: 'success' },
      terminating: false,
      graceSeconds: { liveness: 5, startup: 7 },
    });
    assert.deepEqual(health.failed, { probe: 'liveness', graceSeconds: 5 });
  });
});
