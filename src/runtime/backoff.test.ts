import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { Backoff, type BackoffEntry, backoffEnd, nextBackoff } from './backoff.ts';

const rules = { initialMs: 10_000, maxMs: 300_000 };

suite('back-off', () => {
  test('doubles up to the maximum', () => {
    let entry: BackoffEntry | undefined;
    const delays: number[] = [];
    for (let failure = 0; failure < 7; failure++) {
      entry = nextBackoff(entry, failure * 1000, rules);
      delays.push(entry.delayMs);
    }
    assert.deepEqual(delays, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  });

  test('starts anew after twice the maximum', () => {
    const entry = { delayMs: 160_000, since: 0 };
    assert.equal(nextBackoff(entry, 600_000, rules).delayMs, 300_000);
    assert.equal(nextBackoff(entry, 600_001, rules).delayMs, 10_000);
  });

  test('keys wait independently', async () => {
    const clock = new VirtualClock(0);
    const backoff = new Backoff(rules, clock);
    assert.equal(backoff.waiting('a'), undefined);
    assert.equal(backoff.fail('a', 'refused'), 10_000);
    await clock.advance(5000);
    assert.equal(backoff.fail('b', 'broken'), 15_000);
    assert.deepEqual(backoff.waiting('a'), { until: 10_000, cause: 'refused' });
    await clock.advance(5000);
    assert.equal(backoff.waiting('a'), undefined);
    assert.deepEqual(backoff.waiting('b'), { until: 15_000, cause: 'broken' });
    assert.equal(backoff.fail('a', 'refused'), 30_000);
    backoff.forget('a');
    assert.equal(backoff.fail('a', 'refused'), 20_000);
  });

  test('quiet keys are collected', async () => {
    const clock = new VirtualClock(0);
    const backoff = new Backoff(rules, clock);
    backoff.fail('a', 'refused');
    await clock.advance(600_000);
    backoff.fail('b', 'broken');
    backoff.collect();
    assert.equal(backoff.size, 2);
    await clock.advance(1);
    backoff.collect();
    assert.equal(backoff.size, 1);
  });

  test('a clock set back ends the wait instead of stretching it', () => {
    assert.equal(backoffEnd({ delayMs: 10_000, since: 1_000_000 }, 500_000), undefined);
  });

  test('a delay is never below the first nor above the maximum', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000_000)), (gaps) => {
        let now = 0;
        let entry: BackoffEntry | undefined;
        for (const gap of gaps) {
          now += gap;
          entry = nextBackoff(entry, now, rules);
          assert.ok(entry.delayMs >= rules.initialMs && entry.delayMs <= rules.maxMs);
          assert.equal(backoffEnd(entry, now), now + entry.delayMs);
          assert.equal(backoffEnd(entry, now + entry.delayMs), undefined);
        }
      }),
    );
  });
});
