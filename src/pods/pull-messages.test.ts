import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PullMessages } from './pull-messages.ts';

test('a container that waits is told now and then how far its pull is, until it ends', () => {
  const changed: string[] = [];
  const messages = new PullMessages((uid) => changed.push(uid));
  const web = messages.follow('u', 'web', 'x');
  for (const elapsedMs of [1000, 2000, 5999, 6000]) web.onProgress({ elapsedMs });
  assert.deepEqual(messages.of('u'), { web: 'Pulling image "x" for 6s' });
  assert.deepEqual(changed, ['u', 'u']);
  web.end();
  assert.deepEqual(messages.of('u'), {});
});
