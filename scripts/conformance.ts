/**
 * Runs every test that carries a title of Kubernetes' conformance suites, and prints for each area how many
 * titles there are, how many are covered, how many of those pass, and what the others need.
 *
 *     npm run conformance                 (needs root: it starts a private containerd)
 *     npm run conformance -- --list       (counts only, runs nothing)
 *
 * Exits with 1 when a covered title does not pass.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { conformanceTitles, titlesIn } from '../test/conformance/titles.ts';
import { type AreaLine, areaLines, readTestResult, type TestResult } from './conformance/results.ts';

const checkout = join(import.meta.dirname, '..');

/** Test files that carry titles, apart by what they need: nothing, a containerd to share, one of their own. */
function testFiles(): { alone: string[]; sharing: string[]; oneByOne: string[] } {
  const files = globSync('test/**/*.test.ts', { cwd: checkout })
    .filter((file) => titlesIn(readFileSync(join(checkout, file), 'utf8')).length > 0)
    .toSorted();
  const sharing = files.filter((file) => file.startsWith('test/conformance/runtime/'));
  const oneByOne = files.filter((file) => file.startsWith('test/e2e/'));
  return {
    alone: files.filter((file) => !sharing.includes(file) && !oneByOne.includes(file)),
    sharing,
    oneByOne,
  };
}

/** Runs a command, shows what it prints, and gathers the results of its tests by their names. */
async function run(args: readonly string[], results: Map<string, TestResult>): Promise<void> {
  const child = spawn(process.execPath, ['--no-warnings', ...args], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  for await (const line of createInterface({ input: child.stdout })) {
    console.log(line);
    const found = readTestResult(line);
    // What has failed once has failed; the runner repeats failures at its end.
    if (found && results.get(found.name) !== 'failed') results.set(found.name, found.result);
  }
  await ended;
}

function print(lines: readonly AreaLine[]): void {
  const rows = [['area', 'titles', 'covered', 'passed', 'skipped', 'needs'], ...lines.map(cells)];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  for (const row of rows) {
    const [area = '', ...rest] = row.map((cell, column) => cell.padEnd(widths[column]!));
    console.log([area, ...rest].join('  ').trimEnd());
  }
}

function cells({ area, titles, covered, passed, skipped, needs }: AreaLine): string[] {
  const wanted = Object.entries(needs).map(([need, count]) => `${count} ${need.replace(/^needs-/, '')}`);
  return [area, `${titles}`, `${covered}`, `${passed}`, `${skipped}`, wanted.join(', ')];
}

async function main(): Promise<number> {
  const isList = process.argv.includes('--list');
  const results = new Map<string, TestResult>();
  if (!isList) {
    const { alone, sharing, oneByOne } = testFiles();
    await run(['scripts/build.ts'], results);
    await run(['--test', '--test-concurrency=1', '--test-reporter=spec', ...alone], results);
    await run(['scripts/end-to-end.ts', '--concurrency', '2', ...sharing], results);
    await run(['scripts/end-to-end.ts', ...oneByOne], results);
  }
  const titles = conformanceTitles().map(({ area, title, rules }) => ({
    area,
    title,
    class: rules[0]?.class ?? 'unclassified',
  }));
  const lines = areaLines(titles, results);
  print(lines);
  if (isList) return 0;
  const failing = titles.filter(
    ({ title, class: is }) => is === 'covered' && !['passed', 'skipped'].includes(results.get(title) ?? ''),
  );
  for (const { title } of failing) console.log(`not passed: ${title}`);
  return failing.length === 0 ? 0 : 1;
}

process.exitCode = await main();
