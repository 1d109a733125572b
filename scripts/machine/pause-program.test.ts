import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findProgram } from './command.ts';
import { pauseProgram } from './pause-program.ts';
import { isStaticProgram } from './static-busybox.ts';
import { readProcess, readProcesses } from './teardown.ts';

function program(name: string): string {
  const file = findProgram(name);
  assert.ok(file !== undefined, `${name} is part of util-linux`);
  return file;
}

function withProgram<T>(use: (file: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'kubelet-ts-pause-'));
  const file = join(directory, 'pause');
  writeFileSync(file, pauseProgram(process.arch === 'arm64' ? 'arm64' : 'x64'), { mode: 0o755 });
  return use(file).finally(() => rmSync(directory, { recursive: true }));
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('not so within 10 s');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`the pause program waits, and exits 0 on ${signal}`, async () => {
    await withProgram(async (file) => {
      assert.ok(isStaticProgram(file));
      const child = spawn(file, [], { stdio: 'ignore' });
      await once(child, 'spawn');
      const exit = once(child, 'exit');
      // The signal must not come before the program has blocked it.
      await until(() => waitsForSignals(child.pid ?? 0));
      assert.equal(child.exitCode, null);
      child.kill(signal);
      assert.deepEqual(await exit, [0, null]);
    });
  });
}

function waitsForSignals(pid: number): boolean {
  const blocked = /^SigBlk:\s*(\w+)/m.exec(statusOf(pid))?.[1] ?? '0';
  return (BigInt(`0x${blocked}`) & 0x14002n) === 0x14002n || /^State:\tS/m.test(statusOf(pid));
}

function statusOf(pid: number): string {
  return readFileSync(`/proc/${pid}/status`, 'utf8');
}

test('as the first process of a pid namespace it reaps what is orphaned there', async () => {
  await withProgram(async (file) => {
    // The shell becomes the pause program, with two children that it never waited for.
    const script = `sleep 0 & sleep 0 & exec ${file}`;
    const child = spawn(program('unshare'), ['--pid', '--fork', '--kill-child', 'sh', '-c', script], {
      stdio: 'ignore',
    });
    await once(child, 'spawn');
    const exit = once(child, 'exit');
    let pause: number | undefined;
    await until(() => {
      pause = readProcesses().find(({ command }) => command[0] === file)?.pid;
      return pause !== undefined && waitsForSignals(pause);
    });
    // A grandchild from outside: entered into the namespace, orphaned, ended.
    const enter = spawn(program('nsenter'), [
      '--target',
      String(pause),
      '--pid',
      'sh',
      '-c',
      'sleep 0.05 & exit 0',
    ]);
    await once(enter, 'exit');
    const children = (): string[] =>
      readFileSync(`/proc/${pause}/task/${pause}/children`, 'utf8')
        .split(' ')
        .filter((text) => text !== '');
    await until(() => children().length === 0);
    assert.notEqual(readProcess(pause ?? 0), undefined);
    process.kill(pause ?? 0, 'SIGTERM');
    assert.deepEqual((await exit)[0], 0);
  });
});
