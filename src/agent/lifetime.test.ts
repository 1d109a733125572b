import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Lifetime } from './lifetime.ts';

describe('the lifetime of what was started', () => {
  it('ends with the last first, whatever becomes of a step', async () => {
    const lifetime = new Lifetime();
    const taken: string[] = [];
    lifetime.onEnd(() => taken.push('first'));
    lifetime.onEnd(() => {
      taken.push('second');
      throw new Error('no');
    });
    lifetime.onEnd(() => taken.push(`third, aborted: ${lifetime.signal.aborted}`));
    await assert.rejects(lifetime.end(), { message: 'no' });
    assert.deepEqual(taken, ['third, aborted: true', 'second', 'first']);
    await lifetime.end();
    assert.equal(taken.length, 3);
  });

  it('gives up what is being started when it is told to stop', () => {
    const stop = new AbortController();
    const lifetime = new Lifetime(stop.signal);
    assert.equal(lifetime.signal.aborted, false);
    stop.abort(new Error('SIGTERM'));
    assert.equal((lifetime.signal.reason as Error).message, 'SIGTERM');
    assert.equal(new Lifetime(stop.signal).signal.aborted, true);
  });
});
