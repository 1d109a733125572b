import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Limiter } from './limiter.ts';
import { settle, VirtualClock } from './virtual-clock.ts';

function gate(): { promise: Promise<void>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, open: resolve };
}

describe('Limiter', () => {
  it('runs no more than its limit and lets the most important one in next', async () => {
    const limiter = new Limiter(1);
    const first = gate();
    const order: string[] = [];
    const task = (name: string) => async () => void order.push(name);
    const all = [
      limiter.run(() => first.promise),
      limiter.run(task('low'), { priority: 0 }),
      limiter.run(task('high'), { priority: 2 }),
      limiter.run(task('high too'), { priority: 2 }),
    ];
    await settle();
    assert.deepEqual([limiter.running, limiter.waiting, order], [1, 3, []]);
    first.open();
    await Promise.all(all);
    assert.deepEqual(order, ['high', 'high too', 'low']);
    assert.equal(limiter.running, 0);
  });

  it('never starts a task that is aborted while it waits, and keeps its place count', async () => {
    const limiter = new Limiter(1);
    const first = gate();
    const holder = limiter.run(() => first.promise);
    const abort = new AbortController();
    const waiting = limiter.run(() => assert.fail('started'), { signal: abort.signal });
    abort.abort(new Error('no longer wanted'));
    await assert.rejects(waiting, /no longer wanted/);
    first.open();
    await holder;
    assert.equal(limiter.running, 0);
  });

  it('gives the place of a slow task to the next one, once', async () => {
    const clock = new VirtualClock();
    const limiter = new Limiter({ limit: 1, holdMs: 500, clock });
    const slow = gate();
    const hung = limiter.run(() => slow.promise);
    let ran = false;
    const next = limiter.run(async () => void (ran = true));
    await clock.advance(499);
    assert.equal(ran, false);
    await clock.advance(1);
    assert.equal(ran, true);
    slow.open();
    await Promise.all([hung, next]);
    assert.equal(limiter.running, 0);
  });

  it('lets tasks keep their place longer where such tasks take longer, up to a limit', async () => {
    const clock = new VirtualClock();
    const limiter = new Limiter({ limit: 1, holdMs: 500, longestHoldMs: 5000, clock });
    /** Milliseconds after which the next task got the place of one that takes so long. */
    const keptFor = async (tookMs: number, fails = false) => {
      const slow = gate();
      const began = clock.now();
      const holder = limiter.run(async () => {
        await slow.promise;
        if (fails) throw new Error('failed');
      });
      let next: number | undefined;
      const waiting = limiter.run(async () => void (next = clock.now() - began), { priority: 1 });
      for (let ms = 0; ms < tookMs; ms += 100) await clock.advance(100);
      slow.open();
      await holder.catch(() => {});
      await waiting;
      return next;
    };
    assert.equal(await keptFor(20_000, true), 500);
    assert.equal(await keptFor(1000), 500, 'a failure teaches nothing');
    assert.equal(await keptFor(1000), 1000, 'the whole time is usual by now');
    assert.equal(await keptFor(6000), 4000, 'four times what is usual');
    assert.equal(await keptFor(20_000), 5000);
  });

  it('frees the place of a task that fails', async () => {
    const limiter = new Limiter(1);
    await assert.rejects(limiter.run(() => Promise.reject(new Error('failed'))));
    assert.equal(await limiter.run(async () => 'next'), 'next');
  });
});
