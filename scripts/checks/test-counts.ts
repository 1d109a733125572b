/** Counts of tests: read from what Node's test runner prints, added up, and written as the last line. Pure. */

export interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

export const noTests: TestCounts = { passed: 0, failed: 0, skipped: 0 };

/**
 * Reads the closing lines of Node's runner (`ℹ pass 3` or `# pass 3`); the last ones count when several runs
 * wrote to one output. Undefined when there are none, so that a runner that died is not taken for a success.
 */
export function readTestCounts(output: string): TestCounts | undefined {
  const last = (name: string): number | undefined => {
    const found = [...output.matchAll(new RegExp(`^(?:ℹ|#) ${name} (\\d+)\\s*$`, 'gmu'))].at(-1)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const passed = last('pass');
  const failed = last('fail');
  if (passed === undefined || failed === undefined) return undefined;
  // A cancelled test, for instance by its time limit, is no success; "todo" tests are not done.
  return {
    passed,
    failed: failed + (last('cancelled') ?? 0),
    skipped: (last('skipped') ?? 0) + (last('todo') ?? 0),
  };
}

/**
 * The counts of a step of tests from its output and exit code: an exit code that the counts do not explain,
 * or a run of no test at all, is one more failure.
 */
export function judgeTestStep(output: string, exitCode: number): TestCounts {
  const counts = readTestCounts(output) ?? noTests;
  const unexplained = exitCode !== 0 && counts.failed === 0;
  const empty = counts.passed + counts.failed + counts.skipped === 0;
  return unexplained || (empty && counts.failed === 0) ? { ...counts, failed: counts.failed + 1 } : counts;
}

export function addCounts(a: TestCounts, b: TestCounts): TestCounts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** `N passed, N failed`, with the skipped ones when there are any. */
export function closingLine({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
