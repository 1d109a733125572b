import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from './command.ts';
import {
  endProcess,
  endProcessesOf,
  mountsBelow,
  parseCrunStatus,
  parseRuncState,
  readProcess,
  unmountBelow,
  withDescendants,
} from './teardown.ts';

const entry = (pid: number, parent: number) => ({ pid, parent, started: '1', command: [] });

test('descendants are found in whatever order processes are listed', () => {
  const all = [entry(5, 4), entry(4, 3), entry(3, 2), entry(9, 1), entry(2, 1)];
  const pids = withDescendants(all, [entry(3, 2)]).map(({ pid }) => pid);
  assert.deepEqual(pids, [3, 4, 5]);
});

test('mounts at and below a directory are found, a sibling with the same beginning is not', () => {
  const mountinfo = ['1 0 0:1 / /a rw', '2 1 0:2 / /a/b\\040c rw', '3 0 0:3 / /ab rw', ''].join('\n');
  assert.deepEqual(mountsBelow(mountinfo, '/a'), ['/a', '/a/b c']);
});

test('runc and crun records give the first process and its cgroups', () => {
  const runc = {
    init_process_pid: 7,
    init_process_start: 42,
    cgroup_paths: { cpu: '/c/cpu/x', memory: '/c/memory/x' },
  };
  assert.deepEqual(parseRuncState(runc), {
    init: { pid: 7, started: '42' },
    cgroups: ['/c/cpu/x', '/c/memory/x'],
  });
  const crun = { pid: 7, 'process-start-time': 42, 'cgroup-path': '/kubepods/x' };
  assert.deepEqual(parseCrunStatus(crun, ['/sys/fs/cgroup']), {
    init: { pid: 7, started: '42' },
    cgroups: ['/sys/fs/cgroup/kubepods/x'],
  });
  assert.deepEqual(parseCrunStatus({ pid: 7 }, ['/sys/fs/cgroup']).cgroups, []);
});

test('a process that ignores TERM is killed, one that has gone is no error', async () => {
  const child = spawn('sh', ['-c', 'trap "" TERM; echo ready; while :; do sleep 1; done'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exit = once(child, 'exit');
  await once(child.stdout, 'data');
  const process = readProcess(child.pid ?? 0);
  assert.ok(process !== undefined);
  await endProcess(process, 50);
  assert.deepEqual(await exit, [null, 'SIGKILL']);
  await endProcess(process, 50);
});

test('stacked and busy mounts are unmounted', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubelet-ts-mounts-'));
  const inner = join(directory, 'in ner');
  await runCommand('mount', ['-t', 'tmpfs', 'tmpfs', directory]);
  mkdirSync(inner);
  await runCommand('mount', ['-t', 'tmpfs', 'tmpfs', inner]);
  await runCommand('mount', ['-t', 'tmpfs', 'tmpfs', inner]);
  const user = spawn('sleep', ['60'], { cwd: inner, stdio: 'ignore' });
  await once(user, 'spawn');
  try {
    await unmountBelow(directory);
    assert.deepEqual(mountsBelow(readFileSync('/proc/self/mountinfo', 'utf8'), directory), []);
  } finally {
    user.kill('SIGKILL');
    await once(user, 'exit');
    rmSync(directory, { recursive: true });
  }
});

test('processes that name a directory in their command or environment are killed, and no others', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubelet-ts-teardown-'));
  const start = (name: string, env: NodeJS.ProcessEnv = {}) =>
    spawn('sh', ['-c', 'echo ready; read line', name], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { PATH: process.env['PATH'], ...env },
    });
  const children = [
    start(`--root-dir=${directory}/agent`),
    start('test', { DIRECTORY: `${directory}/work` }),
    start('somebody else'),
  ];
  try {
    const exits = children.map((child) => once(child, 'exit'));
    await Promise.all(children.map((child) => once(child.stdout, 'data')));
    await endProcessesOf(directory);
    assert.deepEqual(await exits[0], [null, 'SIGKILL']);
    assert.deepEqual(await exits[1], [null, 'SIGKILL']);
    assert.ok(readProcess(children[2]?.pid ?? 0) !== undefined);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  }
});
