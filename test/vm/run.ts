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
import { execFileSync } from 'node:child_process';
import { existsSync, linkSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { prepareBaseImage } from './base-image.ts';
import { commandScript } from './command-script.ts';
import { withLock } from './lock.ts';
import { prepareProjectImage } from './project-image.ts';
import { runVirtualMachine, VirtualMachineError } from './qemu.ts';

const checkout = join(import.meta.dirname, '../..');
const cache = join(checkout, '.cache/vm');
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
  const keep = values['keep-image'];
  const folder = join(cache, `${keep ? 'kept' : 'run'}-${process.pid}`);
  try {
    const { base, disks } = await withLock(join(cache, 'lock'), () => {
      removeLeftovers();
      const base = prepareBaseImage(cache, process.execPath);
      const projectDisk = prepareProjectImage(cache, checkout, base);
      return { base, disks: ownDisks(folder, [base.disk, projectDisk], keep) };
    });
    const result = await runVirtualMachine({
      base,
      disks,
      keepWrites: keep,
      project: checkout,
      script: commandScript(positionals),
      output: process.stdout,
      timeLimitMs,
      signal: stop.signal,
    });
    const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
    const how = `${result.accelerator}, booted in ${seconds(result.bootMs)}`;
    console.error(`vm: exit code ${result.exitCode} after ${seconds(result.totalMs)} (${how})`);
    return result.exitCode;
  } finally {
    if (keep)
      console.error(`vm: the disks are kept in ${folder}; look at one with: mount -o loop DISK FOLDER`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

/** Removes the disks of runs that were killed. */
function removeLeftovers(): void {
  for (const name of readdirSync(cache)) {
    const pid = /^run-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join(cache, name), { recursive: true });
  }
}

/**
 * Disks of this run's own: links to the images, which another run may replace meanwhile, or copies to keep.
 */
function ownDisks(folder: string, images: readonly string[], keep: boolean): string[] {
  mkdirSync(folder);
  return images.map((image) => {
    const disk = join(folder, basename(image));
    if (keep) execFileSync('cp', ['--sparse=always', image, disk]);
    else linkSync(image, disk);
    return disk;
  });
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
