import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCpuSet } from './cpu-set.ts';

test('CPU lists', () => {
  assert.deepEqual(parseCpuSet(''), []);
  assert.deepEqual(parseCpuSet('8,0-2,2'), [0, 1, 2, 8]);
  for (const wrong of ['3-1', 'a', '1,', '-1', '1-', '0-99999', '1--2'])
    assert.equal(parseCpuSet(wrong), undefined, wrong);
});
