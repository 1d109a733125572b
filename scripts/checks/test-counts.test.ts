import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addCounts, closingLine, judgeTestStep, noTests, readTestCounts } from './test-counts.ts';

const summary = (
  mark: string,
  pass: number,
  fail: number,
  { cancelled = 0, skipped = 0, todo = 0 } = {},
): string =>
  [
    `tests 9`,
    `suites 0`,
    `pass ${pass}`,
    `fail ${fail}`,
    `cancelled ${cancelled}`,
    `skipped ${skipped}`,
    `todo ${todo}`,
  ]
    .map((line) => `${mark} ${line}\n`)
    .join('');

test('the closing lines of both reporters are read, the last ones when there are several', () => {
  assert.deepEqual(readTestCounts(summary('ℹ', 3, 1)), { passed: 3, failed: 1, skipped: 0 });
  assert.deepEqual(readTestCounts(`${summary('#', 1, 0)}noise\n${summary('#', 5, 0, { skipped: 2 })}`), {
    passed: 5,
    failed: 0,
    skipped: 2,
  });
  // A serial console ends its lines with CR LF.
  assert.deepEqual(readTestCounts(summary('ℹ', 3, 0).replaceAll('\n', '\r\n')), {
    passed: 3,
    failed: 0,
    skipped: 0,
  });
});

test('cancelled tests failed, tests to do were skipped', () => {
  assert.deepEqual(readTestCounts(summary('ℹ', 1, 0, { cancelled: 2, todo: 3 })), {
    passed: 1,
    failed: 2,
    skipped: 3,
  });
});

test('a runner without closing lines, or with an exit code they do not explain, has failed', () => {
  assert.equal(readTestCounts('killed'), undefined);
  assert.deepEqual(judgeTestStep('killed', 0), { passed: 0, failed: 1, skipped: 0 });
  assert.deepEqual(judgeTestStep(summary('ℹ', 4, 0), 1), { passed: 4, failed: 1, skipped: 0 });
  assert.deepEqual(judgeTestStep(summary('ℹ', 4, 2), 1), { passed: 4, failed: 2, skipped: 0 });
});

test('a run of no test at all has failed', () => {
  assert.deepEqual(judgeTestStep(summary('ℹ', 0, 0), 0), { passed: 0, failed: 1, skipped: 0 });
});

test('the last line has the agreed form', () => {
  assert.equal(closingLine({ passed: 12, failed: 0, skipped: 0 }), '12 passed, 0 failed');
  const sum = addCounts({ passed: 1, failed: 2, skipped: 3 }, { ...noTests, skipped: 1 });
  assert.equal(closingLine(sum), '1 passed, 2 failed, 4 skipped');
});
