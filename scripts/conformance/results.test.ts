import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { areaLines, readTestResult } from './results.ts';

describe('results of a run', () => {
  const cases: [line: string, expected: ReturnType<typeof readTestResult>][] = [
    ['  ✔ [sig-node] A pod (b) runs (12.3ms)', { name: '[sig-node] A pod (b) runs', result: 'passed' }],
    ['✖ a container (7ms)', { name: 'a container', result: 'failed' }],
    ['    ﹣ elsewhere (0.1ms) # this kernel has none', { name: 'elsewhere', result: 'skipped' }],
    ['▶ a group', undefined],
    ['ℹ pass 3', undefined],
    ['  code(137) and reason (Error)', undefined],
  ];
  for (const [line, expected] of cases) {
    it(`reads "${line.trim()}"`, () => assert.deepEqual(readTestResult(line), expected));
  }

  it('are added up by area, with the sum of all', () => {
    const titles = [
      { area: 'a', title: 'one', class: 'covered' },
      { area: 'a', title: 'two', class: 'covered' },
      { area: 'a', title: 'three', class: 'needs-x' },
      { area: 'b', title: 'four', class: 'covered' },
    ];
    const results = new Map([
      ['one', 'passed'],
      ['two', 'failed'],
      ['four', 'skipped'],
    ] as const);
    assert.deepEqual(areaLines(titles, results), [
      { area: 'a', titles: 3, covered: 2, passed: 1, skipped: 0, needs: { 'needs-x': 1 } },
      { area: 'b', titles: 1, covered: 1, passed: 0, skipped: 1, needs: {} },
      { area: 'all', titles: 4, covered: 3, passed: 1, skipped: 1, needs: { 'needs-x': 1 } },
    ]);
  });
});
