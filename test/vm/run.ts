/**
 * Runs tests, or any command, on a cgroup v2 kernel whatever the machine itself has:
 *
 *     node test/vm/run.ts [--keep-image] [--time-limit SECONDS] -- TEST_FILE…
 *     node test/vm/run.ts [--keep-image] [--time-limit SECONDS] -- COMMAND [ARGUMENT…]
 *
 * It boots a virtual machine (see docs/cgroup-v2-testing.md), runs the command there as root on a copy of the
 * checkout, passes on its output and ends with its exit code: 124 when the time limit is exceeded or the machine
 * fails. Files that all end in `.test.ts` go to Node's test runner. With --keep-image the disks stay as the command
 * left them, for a look at them.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { prepareBaseImage } from './base-image.ts';
import { withLock } from './lock.ts';
import { prepareProjectImage } from './project-image.ts';
import { runVirtualMachine, VirtualMachineError } from './qemu.ts';

const project = join(import.meta.dirname, '../..');
const cache = join(project, '.cache/vm');
const usage =
  'Usage: node test/vm/run.ts [--keep-image] [--time-limit SECONDS] -- TEST_FILE… | COMMAND [ARGUMENT…]';

/** @returns the exit code */
async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      'keep-image': { type: 'boolean', default: false },
      'time-limit': { type: 'string', default: '900' },
    },
    allowPositionals: true,
  });
  const timeLimitMs = Number(values['time-limit']) * 1000;
  if (positionals.length === 0 || !(timeLimitMs > 0)) throw new Error(usage);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => stop.abort(new Error(`ended by ${signal}`)));
  }
  const { base, disks } = await withLock(join(cache, 'lock'), () => {
    const base = prepareBaseImage(cache, process.execPath);
    const disks = [base.disk, prepareProjectImage(cache, project, base)] as const;
    return { base, disks: values['keep-image'] ? keptCopies(disks) : disks };
  });
  const result = await runVirtualMachine({
    base,
    disks,
    keepWrites: values['keep-image'],
    script: shellScript(positionals),
    output: process.stdout,
    timeLimitMs,
    signal: stop.signal,
  });
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  console.error(
    `vm: exit code ${result.exitCode} after ${seconds(result.totalMs)} (${result.accelerator}, booted in ${seconds(result.bootMs)})`,
  );
  if (values['keep-image'])
    console.error(`vm: look at the disks with mount -o loop FILE DIR: ${disks.join(' ')}`);
  return result.exitCode;
}

/** Arguments reach the command as they are, whatever they contain. */
function shellScript(command: readonly string[]): string {
  const tests = command.every((argument) => argument.endsWith('.test.ts'));
  const words = tests ? ['node', '--test', '--test-concurrency=1', ...command] : command;
  return `exec ${words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')}\n`;
}

function keptCopies([root, projectDisk]: readonly [string, string]): readonly [string, string] {
  const folder = join(cache, `kept-${process.pid}`);
  mkdirSync(folder);
  const copies = [join(folder, 'root.ext4'), join(folder, 'project.ext4')] as const;
  copyFileSync(root, copies[0]);
  copyFileSync(projectDisk, copies[1]);
  return copies;
}

main().then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error: unknown) => {
    console.error(`vm: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = error instanceof VirtualMachineError ? 124 : 1;
  },
);
