/** Reads what Node's test runner prints, and adds titles and results up by area. Pure. */

export type TestResult = 'passed' | 'failed' | 'skipped';

const marks: Readonly<Record<string, TestResult>> = { '✔': 'passed', '✖': 'failed', '﹣': 'skipped' };

/** The name and the result in a line of the `spec` reporter; undefined for any other line. */
export function readTestResult(line: string): { name: string; result: TestResult } | undefined {
  const found = /^\s*([✔✖﹣]) (.*?) \(\d+(?:\.\d+)?ms\)(?: # .*)?$/u.exec(line);
  const result = marks[found?.[1] ?? ''];
  return result && { name: found?.[2] ?? '', result };
}

export interface ClassifiedTitle {
  readonly area: string;
  readonly title: string;
  /** `covered`, or what it needs. */
  readonly class: string;
}

export interface AreaLine {
  readonly area: string;
  readonly titles: number;
  readonly covered: number;
  readonly passed: number;
  readonly skipped: number;
  /** Titles by what they need. */
  readonly needs: Readonly<Record<string, number>>;
}

/** One line for each area in the order of the titles, and the sum of all as the last. */
export function areaLines(
  titles: readonly ClassifiedTitle[],
  results: ReadonlyMap<string, TestResult>,
): AreaLine[] {
  const line = (area: string, own: readonly ClassifiedTitle[]): AreaLine => {
    const covered = own.filter(({ class: is }) => is === 'covered');
    const count = (wanted: TestResult) => covered.filter(({ title }) => results.get(title) === wanted).length;
    const needs: Record<string, number> = {};
    for (const { class: is } of own) if (is !== 'covered') needs[is] = (needs[is] ?? 0) + 1;
    return {
      area,
      titles: own.length,
      covered: covered.length,
      passed: count('passed'),
      skipped: count('skipped'),
      needs,
    };
  };
  const areas = [...new Set(titles.map(({ area }) => area))];
  const each = areas.map((area) =>
    line(
      area,
      titles.filter((title) => title.area === area),
    ),
  );
  return [...each, line('all', titles)];
}
