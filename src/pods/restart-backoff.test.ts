import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ObservedContainer } from '../runtime/observed-pod.ts';
import {
  carriedBackoff,
  isWaiting,
  nextBackoffAnnotation,
  restartBackoff,
  retryDelay,
} from './restart-backoff.ts';

const maxMs = 300_000;

function dead(
  backoff: string | undefined,
  { attempt = 0, ranMs = 5, ...times }: Partial<ObservedContainer> & { ranMs?: number } = {},
): ObservedContainer {
  return {
    id: 'id',
    name: 'web',
    sandboxId: 'sandbox',
    attempt,
    state: 'Exited',
    createdAt: 1000,
    startedAt: 2000,
    finishedAt: 2000 + ranMs,
    image: '',
    imageId: '',
    hash: '',
    annotations: backoff === undefined ? {} : { [nextBackoffAnnotation]: backoff },
    ...times,
  };
}

describe('the back-off of a container', () => {
  const table: readonly [what: string, ObservedContainer, max: number, delay: number, next: number][] = [
    ['the first restart is free', dead('0'), maxMs, 0, 10_000],
    ['then ten seconds', dead('10000'), maxMs, 10_000, 20_000],
    ['then twice as long', dead('20000'), maxMs, 20_000, 40_000],
    ['up to the maximum', dead('160000'), maxMs, 160_000, 300_000],
    ['and no longer', dead('300000'), maxMs, 300_000, 300_000],
    ['a smaller maximum holds at once', dead('160000'), 60_000, 60_000, 60_000],
    ['even below the base', dead('0'), 1000, 0, 1000],
    [
      'a run of twice the maximum does not prove health yet',
      dead('40000', { ranMs: 600_000 }),
      maxMs,
      40_000,
      80_000,
    ],
    ['one that is longer does', dead('40000', { ranMs: 600_001 }), maxMs, 0, 10_000],
    [
      'a container that never started proves nothing',
      dead('40000', { startedAt: 5, finishedAt: 5 }),
      maxMs,
      40_000,
      80_000,
    ],
    ['without the annotation the restart count is the witness: 0', dead(undefined), maxMs, 0, 10_000],
    ['1', dead(undefined, { attempt: 1 }), maxMs, 10_000, 20_000],
    ['4', dead(undefined, { attempt: 4 }), maxMs, 80_000, 160_000],
    ['5000', dead(undefined, { attempt: 5000 }), maxMs, 300_000, 300_000],
    ['so it is when the annotation is no number', dead('soon', { attempt: 1 }), maxMs, 10_000, 20_000],
    ['or below zero', dead('-5', { attempt: 1 }), maxMs, 10_000, 20_000],
  ];
  for (const [what, container, max, delayMs, nextBackoffMs] of table) {
    it(`${what}: ${delayMs} ms, then ${nextBackoffMs} ms`, () => {
      assert.deepEqual(restartBackoff(container, { maxRestartBackoffMs: max }), {
        startAt: container.finishedAt! + delayMs,
        delayMs,
        nextBackoffMs,
      });
    });
  }

  it('counts from the start or the creation where the end is unknown', () => {
    const { finishedAt: _, ...running } = dead('10000');
    assert.equal(restartBackoff(running, { maxRestartBackoffMs: maxMs }).startAt, 12_000);
    const { startedAt: __, ...created } = running;
    assert.equal(restartBackoff(created, { maxRestartBackoffMs: maxMs }).startAt, 11_000);
  });

  it('never shrinks without a run that proves health, and never passes the maximum', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 2 * maxMs }), { minLength: 2, maxLength: 20 }),
        fc.constantFrom(1000, 60_000, maxMs),
        (runs, max) => {
          let backoff = 0;
          let former = 0;
          for (const ranMs of runs.map((ran) => Math.min(ran, 2 * max))) {
            const { delayMs, nextBackoffMs } = restartBackoff(dead(String(backoff), { ranMs }), {
              maxRestartBackoffMs: max,
            });
            assert.ok(delayMs >= former && delayMs <= max);
            assert.ok(nextBackoffMs >= delayMs);
            former = delayMs;
            backoff = nextBackoffMs;
          }
        },
      ),
    );
  });

  it('waits from the end on, but not for a time that a clock set back has yet to reach', () => {
    const backoff = { startAt: 100_000, delayMs: 40_000 };
    const waits = (now: number) => isWaiting(backoff, now);
    assert.deepEqual([100_000, 99_999, 60_000, 59_999.4, 58_999].map(waits), [
      false,
      true,
      true,
      true,
      false,
    ]);
  });

  it('begins as low as the node has it', () => {
    const rules = { initialRestartBackoffMs: 1000, maxRestartBackoffMs: maxMs };
    assert.equal(restartBackoff(dead('0'), rules).nextBackoffMs, 1000);
    assert.equal(restartBackoff(dead(undefined, { attempt: 2 }), rules).delayMs, 2000);
  });

  it('is carried from instance to instance', () => {
    assert.equal(carriedBackoff(dead('40000')), 40_000);
  });
});

describe('the delay of an action that fails', () => {
  it('doubles from one second to thirty', () => {
    assert.deepEqual(
      [1, 2, 3, 4, 5, 6, 7, 1000].map(retryDelay),
      [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000],
    );
  });
});
