import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Clock } from '../concurrency/clock.ts';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { type DueItem, DueQueue } from './due-queue.ts';

const item = (fire: () => void): DueItem => ({ due: 0, slot: -1, fire });

describe('what is due', () => {
  it('fires everything in order of time, and nothing that was taken out', async () => {
    const operations = fc.array(
      fc.record({ name: fc.integer({ min: 0, max: 15 }), due: fc.option(fc.integer({ min: 0, max: 50 })) }),
    );
    await fc.assert(
      fc.asyncProperty(operations, async (all) => {
        const clock = new VirtualClock(0);
        const queue = new DueQueue(clock);
        const fired: [number, number][] = [];
        const items = Array.from({ length: 16 }, (_, name) => item(() => fired.push([name, clock.now()])));
        const expected = new Map<number, number>();
        for (const { name, due } of all) {
          if (due === null) {
            queue.remove(items[name]!);
            expected.delete(name);
          } else {
            queue.add(items[name]!, due);
            expected.set(name, due);
          }
          assert.equal(queue.size, expected.size);
        }
        await clock.advance(100);
        assert.deepEqual(new Map(fired), expected);
        assert.equal(fired.length, expected.size);
        assert.deepEqual(
          fired.map(([, at]) => at),
          [...expected.values()].sort((a, b) => a - b),
        );
        assert.equal(clock.nextTimer(), undefined);
      }),
      { numRuns: 50 },
    );
  });

  it('needs one timer however many wait', () => {
    let timers = 0;
    let waiting = 0;
    const clock: Clock = {
      now: () => 0,
      after: () => {
        timers++;
        waiting++;
        return () => waiting--;
      },
    };
    const queue = new DueQueue(clock);
    for (let due = 1; due <= 1000; due++)
      queue.add(
        item(() => {}),
        due,
      );
    assert.equal(timers, 1);
    queue.add(
      item(() => {}),
      0.5,
    );
    assert.deepEqual([timers, waiting], [2, 1]);
  });

  it('waits on when the wall clock is set back', async () => {
    const virtual = new VirtualClock(10_000_000);
    let back = 0;
    const clock: Clock = {
      now: () => virtual.now() - back,
      after: (ms, callback) => virtual.after(ms, callback),
    };
    const queue = new DueQueue(clock);
    const fired: string[] = [];
    queue.add(
      item(() => fired.push('first')),
      clock.now() + 5000,
    );
    queue.add(
      item(() => fired.push('second')),
      clock.now() + 7000,
    );
    back = 3_600_000;
    await virtual.advance(5000);
    assert.deepEqual(fired, ['first']);
    await virtual.advance(2000);
    assert.deepEqual(fired, ['first', 'second']);
  });

  it('takes the word of a timer that comes a millisecond before its time', async () => {
    const virtual = new VirtualClock(0);
    const clock: Clock = {
      now: () => virtual.now(),
      after: (ms, callback) => virtual.after(ms - 1, callback),
    };
    const queue = new DueQueue(clock);
    let fired = 0;
    queue.add(
      item(() => fired++),
      100,
    );
    await virtual.advance(99);
    assert.equal(fired, 1);
  });
});
