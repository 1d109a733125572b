import assert from 'node:assert/strict';
import { it } from 'node:test';
import { matchesLabels } from './label-selector.ts';

const labels = { app: 'web', tier: 'front' };

for (const [what, selector, expected] of [
  ['no selector', undefined, false],
  ['an empty selector', {}, true],
  ['labels that are there', { matchLabels: { app: 'web' } }, true],
  ['a label of another value', { matchLabels: { app: 'web', tier: 'back' } }, false],
  ['In', { matchExpressions: [{ key: 'app', operator: 'In', values: ['db', 'web'] }] }, true],
  ['In without the label', { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }, false],
  ['NotIn', { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }, false],
  [
    'NotIn without the label',
    { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] },
    true,
  ],
  ['Exists', { matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true],
  ['DoesNotExist', { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, false],
  ['an unknown operator', { matchExpressions: [{ key: 'app', operator: 'Like', values: ['w'] }] }, false],
] as const) {
  it(`${what}: ${expected ? 'fits' : 'does not fit'}`, () => {
    assert.equal(matchesLabels(selector as Parameters<typeof matchesLabels>[0], labels), expected);
  });
}
