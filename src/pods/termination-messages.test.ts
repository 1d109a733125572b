import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ObservedContainer, ObservedPod } from '../runtime/observed-pod.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { testPod } from './fixtures/pod-model.ts';
import { TerminationMessages } from './termination-messages.ts';

const pod = testPod();

function observed(states: Readonly<Record<string, ObservedContainer['state']>>): ObservedPod {
  const containers = Object.entries(states).map(([id, state]) => ({ id, state }) as ObservedContainer);
  return { uid: 'uid-1', name: 'web', namespace: 'default', sandboxes: [], containers };
}

describe('termination messages', () => {
  it('are read once, of containers that have ended', async () => {
    const asked: (readonly string[])[] = [];
    const readMessages = async (_: unknown, ids: readonly string[]) => (asked.push(ids), { a: 'bye' });
    const messages = new TerminationMessages({ readMessages, logger: silentLogger });
    const now = observed({ a: 'Exited', b: 'Exited', c: 'Running' });
    assert.equal(await messages.learn(pod, now), true);
    assert.equal(await messages.learn(pod, now), false);
    assert.deepEqual(asked, [['a', 'b']]);
    assert.deepEqual(messages.known, { a: 'bye', b: '' });
  });

  it('are forgotten with their containers', async () => {
    const readMessages = async (_: unknown, ids: readonly string[]) =>
      Object.fromEntries(ids.map((id) => [id, `of ${id}`]));
    const messages = new TerminationMessages({ readMessages, logger: silentLogger });
    await messages.learn(pod, observed({ a: 'Exited' }));
    await messages.learn(pod, observed({ b: 'Exited' }));
    assert.deepEqual(messages.known, { b: 'of b' });
  });

  it('that cannot be read are empty, and do not hold the pod up', async () => {
    const readMessages = () => Promise.reject(new Error('no such file'));
    const messages = new TerminationMessages({ readMessages, logger: silentLogger });
    assert.equal(await messages.learn(pod, observed({ a: 'Exited' })), true);
    assert.deepEqual(messages.known, { a: '' });
  });
});
