import assert from 'node:assert/strict';
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

test('no test file is left out: what has a step of its own is in no other', () => {
  const files = checkSteps().flatMap(({ command }) => command.filter((word) => word.endsWith('.test.ts')));
  const inMachine = files.filter((file) => /^test\/(e2e|vm\/inside)\//.test(file));
  assert.ok(files.includes('scripts/checks/steps.test.ts'));
  assert.equal(new Set(files).size, files.length - (inMachine.length - new Set(inMachine).size));
});
