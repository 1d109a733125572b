import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { SharedCalls } from './shared-calls.ts';

/** A task that is settled by hand and counts its starts. */
function task() {
  const state = {
    starts: 0,
    signal: undefined as AbortSignal | undefined,
    settle: (_value: string) => {},
    fail: (_error: Error) => {},
  };
  const start = (signal: AbortSignal) => {
    state.starts++;
    state.signal = signal;
    return new Promise<string>((resolve, reject) => {
      state.settle = resolve;
      state.fail = reject;
    });
  };
  return { state, start };
}

suite('shared calls', () => {
  test('callers with one key share a call and its result', async () => {
    const calls = new SharedCalls<string>();
    const { state, start } = task();
    const { signal } = new AbortController();
    const both = [calls.run('k', start, signal), calls.run('k', start, signal)];
    assert.equal(state.starts, 1);
    state.settle('done');
    assert.deepEqual(await Promise.all(both), ['done', 'done']);
    assert.equal(calls.size, 0);
    const again = calls.run('k', start, signal);
    assert.equal(state.starts, 2);
    state.fail(new Error('broken'));
    await assert.rejects(again, /broken/);
    assert.equal(calls.size, 0);
  });

  test('one that gives up leaves the call to the others', async () => {
    const calls = new SharedCalls<string>();
    const { state, start } = task();
    const leaver = new AbortController();
    const leaving = calls.run('k', start, leaver.signal);
    const staying = calls.run('k', start, new AbortController().signal);
    leaver.abort(new Error('gone'));
    await assert.rejects(leaving, /gone/);
    assert.equal(state.signal?.aborted, false);
    state.settle('done');
    assert.equal(await staying, 'done');
    assert.equal(state.starts, 1);
  });

  test('the last one to give up aborts the call, and the next caller starts anew', async () => {
    const calls = new SharedCalls<string>();
    const { state, start } = task();
    const leaver = new AbortController();
    const leaving = calls.run('k', start, leaver.signal);
    leaver.abort(new Error('gone'));
    await assert.rejects(leaving, /gone/);
    assert.equal(state.signal?.aborted, true);
    const next = calls.run('k', start, new AbortController().signal);
    assert.equal(state.starts, 2);
    state.settle('second');
    assert.equal(await next, 'second');
  });

  test('an aborted caller starts nothing', async () => {
    const { state, start } = task();
    await assert.rejects(
      new SharedCalls<string>().run('k', start, AbortSignal.abort(new Error('early'))),
      /early/,
    );
    assert.equal(state.starts, 0);
  });
});
