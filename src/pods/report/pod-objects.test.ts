import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type PodObject, PodObjects } from './pod-objects.ts';

const object = (uid: string, resourceVersion: string, phase = 'Running'): PodObject => ({
  metadata: { name: 'web', namespace: 'default', uid, resourceVersion },
  status: { phase },
});
const key = 'default/web';

it('an answer that is newer than the watch stands against it', () => {
  const objects = new PodObjects();
  objects.follow({ set: [object('one', '5', 'Pending')], removed: [] });
  objects.answered(object('one', '9'));
  objects.follow({ set: [object('one', '7', 'Pending')], removed: [] });
  assert.equal(objects.get(key)?.status?.phase, 'Running');
});

it('a late answer about an object that was made again under its name changes nothing', () => {
  const objects = new PodObjects();
  objects.follow({ set: [object('one', '5')], removed: [] });
  objects.follow({ set: [object('two', '8')], removed: [object('one', '7')] });
  objects.answered(object('one', '6'));
  objects.learn(object('one', '6'));
  assert.equal(objects.get(key)?.metadata.uid, 'two');
});

it('a late answer about an object that is gone does not bring it back', () => {
  const objects = new PodObjects();
  objects.follow({ set: [object('one', '5')], removed: [] });
  objects.follow({ set: [], removed: [object('one', '7')] });
  objects.answered(object('one', '6'));
  assert.equal(objects.get(key), undefined);
});
