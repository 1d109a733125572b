import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tolerates } from './tolerations.ts';
import type { Toleration } from './types.ts';

const taint = { key: 'k', value: '5', effect: 'NoExecute' };

test('which tolerations cover a taint', () => {
  const cases: [toleration: Toleration, covered: boolean][] = [
    [{ key: 'k', value: '5', effect: 'NoExecute' }, true],
    [{ key: 'k', operator: 'Equal', value: '5' }, true],
    [{ key: 'k', value: '6' }, false],
    [{ key: 'k' }, false],
    [{ key: 'k', operator: 'Exists' }, true],
    [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }, false],
    [{ key: 'other', operator: 'Exists' }, false],
    [{ operator: 'Exists' }, true],
    [{ operator: 'Exists', effect: 'NoExecute' }, true],
    [{ value: '5' }, false],
    [{ key: 'k', operator: 'Gt', value: '4' }, false],
    [{ key: 'k', operator: 'Like', value: '5' }, false],
  ];
  for (const [toleration, covered] of cases)
    assert.equal(tolerates([toleration], taint), covered, JSON.stringify(toleration));
  assert.equal(tolerates(undefined, taint), false);
  assert.equal(tolerates([{ key: 'a' }, { key: 'k', operator: 'Exists' }], taint), true);
});

test('comparisons, where the gate lets them', () => {
  const compared = (operator: string, value: string) =>
    tolerates([{ key: 'k', operator, value }], taint, { comparisons: true });
  assert.equal(compared('Gt', '4'), true);
  assert.equal(compared('Gt', '5'), false);
  assert.equal(compared('Lt', '6'), true);
  assert.equal(compared('Lt', '5'), false);
  assert.equal(compared('Lt', 'six'), false);
});
