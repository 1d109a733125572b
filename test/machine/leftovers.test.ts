import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../../scripts/machine/command.ts';
import { interestingMounts, leftovers, type MachineState, readMachineState } from './leftovers.ts';

const clean: MachineState = {
  processes: new Set(),
  mounts: new Set(['/run/netns/old']),
  cgroups: new Set(),
  interfaces: new Set(),
  rules: new Set(),
  files: new Set(),
};

test('what was there before is not blamed on the run', () => {
  assert.deepEqual(leftovers(clean, clean), []);
});

test('every kind of thing that is new is named with its kind', () => {
  const after: MachineState = {
    processes: new Set(['7 (containerd), started at tick 9']),
    mounts: new Set(['/run/netns/old', '/var/lib/kubelet/x']),
    cgroups: new Set(['/sys/fs/cgroup/kubepods']),
    interfaces: new Set(['kts-1']),
    rules: new Set(['-A CNI-X -j ACCEPT']),
    files: new Set(['/run/netns/a']),
  };
  assert.deepEqual(leftovers(clean, after), [
    'process 7 (containerd), started at tick 9',
    'mount /var/lib/kubelet/x',
    'cgroup /sys/fs/cgroup/kubepods',
    'network interface kts-1',
    'iptables rule -A CNI-X -j ACCEPT',
    'file /run/netns/a',
  ]);
});

test('only mounts of agents and runtimes count, with their escapes undone', () => {
  const mountinfo = [
    '1 0 254:0 / / rw - ext4 /dev/vda rw',
    '2 1 0:5 / /run/containerd/a\\040b rw - tmpfs t rw',
    '3 1 0:6 / /home/media rw - tmpfs t rw',
    '',
  ].join('\n');
  assert.deepEqual(interestingMounts(mountinfo), ['/run/containerd/a b']);
});

test('a mount and a marked process of this machine are seen, and gone when they are gone', async () => {
  const marker = `KUBELET_TS_LEFTOVER_TEST=${process.pid}`;
  const directory = mkdtempSync(join(tmpdir(), 'kubelet-ts-leftovers-'));
  const before = await readMachineState(marker);
  await runCommand('mount', ['-t', 'tmpfs', 'tmpfs', directory]);
  const child = spawn('sleep', ['60'], {
    env: { ...process.env, KUBELET_TS_LEFTOVER_TEST: String(process.pid) },
  });
  await once(child, 'spawn');
  try {
    const found = leftovers(before, await readMachineState(marker));
    assert.ok(found.includes(`mount ${directory}`), found.join('\n'));
    assert.ok(
      found.some((line) => line.startsWith(`process ${child.pid} (sleep 60)`)),
      found.join('\n'),
    );
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
    await runCommand('umount', [directory]);
    rmSync(directory, { recursive: true });
  }
  const after = leftovers(before, await readMachineState(marker));
  assert.deepEqual(
    after.filter((line) => line.includes(directory) || line.includes(`process ${child.pid} `)),
    [],
  );
});
