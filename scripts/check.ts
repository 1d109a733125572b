/**
 * `./check`: runs every step, one after the other, and closes with one line `N passed, N failed`. A step that
 * cannot run has failed, and so has a run that leaves something behind on the machine.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { leftovers, type MachineState, readMachineState } from '../test/machine/leftovers.ts';
import { checkSteps, chooseSteps, type Step } from './checks/steps.ts';
import { addCounts, closingLine, judgeTestStep, noTests, type TestCounts } from './checks/test-counts.ts';
import { containerdRequirements, installPackages } from './machine/install-packages.ts';
import { staticBusybox } from './machine/static-busybox.ts';
import { unmountBelow } from './machine/teardown.ts';

const usage = `Usage: sudo ./check [--only STEP[,STEP…]] [--skip STEP[,STEP…]]

Steps: STEPS
The last line is "N passed, N failed"; the exit code is 1 when something failed.
`;

const clean = 'clean';
const checkout = join(import.meta.dirname, '..');

interface StepRun {
  exitCode: number;
  output: string;
  seconds: number;
}

/** Runs one step in a process group of its own; all of it is ended at the time limit or by `stop`. */
function runStep(step: Step, env: NodeJS.ProcessEnv, stop: AbortSignal): Promise<StepRun> {
  const started = Date.now();
  const [program = '', ...args] = step.command;
  return new Promise((resolve) => {
    const parts: string[] = [];
    const take = (text: string): void => {
      parts.push(text);
      if (step.kind === 'tests') process.stdout.write(text);
    };
    const child = spawn(program, args, {
      cwd: checkout,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    let kill: NodeJS.Timeout | undefined;
    const signalGroup = (name: NodeJS.Signals): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, name);
      } catch {
        // The whole group has ended.
      }
    };
    const end = (reason: string): void => {
      take(`\n${step.name}: ${reason}\n`);
      signalGroup('SIGTERM');
      // Long enough for a step to take down what it started.
      kill = setTimeout(() => signalGroup('SIGKILL'), 60_000);
    };
    const onStop = (): void => end('ended, since the whole run is');
    stop.addEventListener('abort', onStop);
    const limit = setTimeout(() => end(`ended after its limit of ${step.limit} s`), step.limit * 1000);
    const finish = (exitCode: number): void => {
      clearTimeout(limit);
      clearTimeout(kill);
      stop.removeEventListener('abort', onStop);
      resolve({ exitCode, output: parts.join(''), seconds: (Date.now() - started) / 1000 });
    };
    child.once('error', (error) => {
      take(`${step.name}: ${program} did not start: ${error.message}\n`);
      finish(127);
    });
    child.once('close', (code) => finish(code ?? 1));
  });
}

function judge(step: Step, run: StepRun): TestCounts {
  if (step.kind === 'tests') return judgeTestStep(run.output, run.exitCode);
  return run.exitCode === 0 ? { ...noTests, passed: 1 } : { ...noTests, failed: 1 };
}

/** What is left behind; things that take a moment to go (namespaces, veth pairs) get five seconds. */
async function lookForLeftovers(before: MachineState, marker: string): Promise<string[]> {
  const deadline = Date.now() + 5000;
  for (;;) {
    const left = leftovers(before, await readMachineState(marker));
    if (left.length === 0 || Date.now() > deadline) return left;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

async function main(): Promise<number> {
  process.chdir(checkout);
  const steps = checkSteps();
  const names = [...steps.map(({ name }) => name), clean];
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      skip: { type: 'string', default: '' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(usage.replace('STEPS', names.join(', ')));
    return 0;
  }
  const words = (text: string): string[] => text.split(',').filter((word) => word !== '');
  const chosen = chooseSteps(steps, words(values.only), words(values.skip), [clean]);
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stop.abort());

  const mark = randomUUID();
  const temporary = mkdtempSync(join(tmpdir(), 'kubelet-ts-check-'));
  const env = {
    ...process.env,
    PATH: `${join(checkout, 'node_modules/.bin')}${delimiter}${process.env.PATH ?? ''}`,
    TMPDIR: temporary,
    KUBELET_TS_CHECK: mark,
    // The runner's closing lines are read, and logs of CI have no colours.
    NO_COLOR: '1',
    FORCE_COLOR: undefined,
  };
  const marker = `KUBELET_TS_CHECK=${mark}`;
  const rows: string[] = [];
  let total = noTests;
  const account = (name: string, counts: TestCounts, seconds: number): void => {
    total = addCounts(total, counts);
    const verdict = counts.failed === 0 ? 'ok    ' : 'FAILED';
    rows.push(`${verdict} ${name.padEnd(11)} ${seconds.toFixed(1).padStart(7)} s  ${closingLine(counts)}`);
  };
  try {
    await installPackages(containerdRequirements, (text) => console.log(text));
    await staticBusybox();
    const before = await readMachineState(marker);
    for (const step of chosen) {
      if (stop.signal.aborted) break;
      console.log(`── ${step.name}: ${step.title}`);
      const run = await runStep(step, env, stop.signal);
      const counts = judge(step, run);
      if (step.kind === 'check' && counts.failed > 0) console.log(run.output.trimEnd());
      account(step.name, counts, run.seconds);
      console.log(rows.at(-1));
    }
    if (!words(values.skip).includes(clean)) {
      console.log(`── ${clean}: nothing is left behind`);
      const started = Date.now();
      const left = await lookForLeftovers(before, marker);
      for (const line of left) console.log(`left behind: ${line}`);
      const counts = { ...noTests, passed: left.length === 0 ? 1 : 0, failed: left.length === 0 ? 0 : 1 };
      account(clean, counts, (Date.now() - started) / 1000);
    }
  } catch (error) {
    console.log(error instanceof Error ? error.message : String(error));
    account('set-up', { ...noTests, failed: 1 }, 0);
  } finally {
    // First the mounts: removing files must never reach through one.
    await unmountBelow(temporary);
    rmSync(temporary, { recursive: true, force: true });
  }
  if (stop.signal.aborted) account('ended', { ...noTests, failed: 1 }, 0);
  console.log(`\n${rows.join('\n')}\n\n${closingLine(total)}`);
  return total.failed === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`./check: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
}
