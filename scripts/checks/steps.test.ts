import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import { checkSteps, chooseSteps } from './steps.ts';

const names = (only: string[], skip: string[]): string[] =>
  chooseSteps(checkSteps(), only, skip, ['clean']).map(({ name }) => name);

test('without a choice every step is run, in one order', () => {
  const all = checkSteps().map(({ name }) => name);
  assert.deepEqual(names([], []), all);
  assert.equal(new Set(all).size, all.length);
});

test('steps are chosen and left out by name', () => {
  assert.deepEqual(names(['unit', 'types'], []), ['types', 'unit']);
  assert.ok(!names([], ['vm']).includes('vm'));
});

test('a name that no step has is refused, since a typing error would skip tests in silence', () => {
  assert.throws(() => names(['unti'], []), /no step unti; there are types, /);
  assert.doesNotThrow(() => names([], ['clean']));
});

test('every test file is in a step, and in one only, but for those that also run on the other kernel', () => {
  const inStep = (name: string): string[] =>
    (checkSteps().find((step) => step.name === name)?.command ?? []).filter((word) =>
      word.endsWith('.test.ts'),
    );
  const here = ['unit', 'fixtures', 'e2e', 'conformance'].flatMap(inStep);
  const inside = inStep('vm').filter((file) => file.startsWith('test/vm/inside/'));
  const all = globSync(['src/**/*.test.ts', 'scripts/**/*.test.ts', 'test/**/*.test.ts']);
  assert.deepEqual([...here, ...inside].toSorted(), all.toSorted());
  // The other kernel sees some of them again, and none that this one does not see.
  const again = inStep('vm').filter((file) => !inside.includes(file));
  assert.deepEqual(
    again.filter((file) => !inStep('e2e').includes(file)),
    [],
  );
});
