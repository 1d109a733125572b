import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearestName } from './nearest-name.ts';

test('finds slips of the pen, and nothing when the name is a stranger', () => {
  const names = ['max-pods', 'maximum-dead-containers', 'address', 'v'];
  assert.equal(nearestName('maxpods', names), 'max-pods');
  assert.equal(nearestName('MAX-POSD', names), 'max-pods');
  assert.equal(nearestName('adress', names), 'address');
  assert.equal(nearestName('kubernetes', names), undefined);
  assert.equal(nearestName('', names), undefined);
});

test('knows a field by its slips, and compares no text that is far too long', () => {
  const known = ['image', 'imagePullPolicy', 'name', 'ports', 'volumeMounts', 'livenessProbe'];
  for (const [name, nearest] of [
    ['imgae', 'image'],
    ['Image', 'image'],
    ['volumemount', 'volumeMounts'],
    ['livenesProbe', 'livenessProbe'],
    ['imagePullPolcy', 'imagePullPolicy'],
    ['xyz', undefined],
    ['somethingElse', undefined],
    ['i'.repeat(1000), undefined],
  ] as const) {
    assert.equal(nearestName(name, known), nearest, name.slice(0, 20));
  }
});
