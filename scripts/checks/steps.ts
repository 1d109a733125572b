/** The steps of `./check` in their order, cheap ones first. */
import { globSync } from 'node:fs';

export interface Step {
  name: string;
  /** For people: what it makes sure of. */
  title: string;
  /** `check`: one pass or failure by exit code. `tests`: counts are read from the output. */
  kind: 'check' | 'tests';
  command: readonly string[];
  /** Seconds after which it is ended and has failed. */
  limit: number;
}

function testFiles(...patterns: string[]): string[] {
  return globSync(patterns).toSorted();
}

/** Tests that need a containerd or a kernel of their own; they have steps of their own. */
const elsewhere = /^test\/(e2e\/|conformance\/runtime\/|vm\/inside\/|contract\/containerd\.)/;

const nodeTest = ['node', '--no-warnings', '--test', '--test-reporter=spec'];

/** What needs a real containerd, wherever it runs. */
const containerdTests = ['test/e2e/**/*.test.ts', 'test/contract/containerd.test.ts'];

/** What Kubernetes' suites say in titles, on a real containerd; the other titles are among the steps' tests. */
const conformanceTests = ['test/conformance/runtime/**/*.test.ts'];

const endToEnd = ['node', '--no-warnings', 'scripts/end-to-end.ts'];
const virtualMachine = ['node', '--no-warnings', 'test/vm/run.ts', '--time-limit', '2300', '--'];

/** Every step; the current directory is the checkout. */
export function checkSteps(): Step[] {
  const check = (name: string, title: string, ...command: string[]): Step => ({
    name,
    title,
    kind: 'check',
    command,
    limit: 300,
  });
  const tests = (name: string, title: string, limit: number, ...command: string[]): Step => ({
    name,
    title,
    kind: 'tests',
    command,
    limit,
  });
  const unit = testFiles('src/**/*.test.ts', 'scripts/**/*.test.ts');
  const fixtures = testFiles('test/**/*.test.ts').filter((file) => !elsewhere.test(file));
  const onContainerd = testFiles(...containerdTests);
  // What makes no difference to the kernel's cgroups is not run again on an emulated machine.
  const inVirtualMachine = [
    ...onContainerd.filter((file) => /pod-life|recovery|command-line|stats/.test(file)),
    ...testFiles('test/vm/inside/**/*.test.ts'),
  ];
  return [
    check('types', 'the compiler accepts every file', 'tsc'),
    check('lint', 'no floating promise, no any, no import cycle', 'oxlint', '--type-aware'),
    check('format', 'files are formatted', 'biome', 'ci'),
    check('rooms', 'lower floors import no higher ones', 'node', 'scripts/check-rooms.ts'),
    check('unused', 'no unused file, export or dependency', 'knip'),
    check('generated', 'generated code equals its sources', 'node', 'scripts/generate-protos.ts', '--check'),
    check('build', 'dist/kubelet is built', 'node', 'scripts/build.ts'),
    // One process for all: starting one for each file takes several times as long as the tests.
    tests('unit', 'tests beside the code', 600, ...nodeTest, '--test-isolation=none', ...unit),
    tests('fixtures', 'tests across rooms', 900, ...nodeTest, '--test-concurrency=1', ...fixtures),
    tests('e2e', "real containerd on this machine's cgroups", 1200, ...endToEnd, ...onContainerd),
    // Two files at a time: pods wait more than they work, and a file keeps few of them at once.
    tests(
      'conformance',
      "what the titles of Kubernetes' suites say, on real containerd",
      900,
      ...endToEnd,
      '--concurrency',
      '2',
      ...testFiles(...conformanceTests),
    ),
    tests(
      'vm',
      'real containerd on a cgroup v2 kernel',
      2400,
      ...virtualMachine,
      ...endToEnd,
      ...inVirtualMachine,
    ),
  ];
}

/** The steps that the words of `--only` and `--skip` leave; throws on a name that no step has. */
export function chooseSteps(
  steps: readonly Step[],
  only: readonly string[],
  skip: readonly string[],
  others: readonly string[],
): Step[] {
  const known = [...steps.map(({ name }) => name), ...others];
  for (const name of [...only, ...skip]) {
    if (!known.includes(name)) throw new Error(`there is no step ${name}; there are ${known.join(', ')}`);
  }
  return steps.filter(({ name }) => (only.length === 0 || only.includes(name)) && !skip.includes(name));
}
