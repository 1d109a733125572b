import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cgroupHierarchies, createOwnCgroup, removeOwnCgroup } from './own-cgroup.ts';

test('hierarchies of both versions are found among other mounts', () => {
  const mountinfo = [
    '25 1 0:22 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw',
    '26 25 0:23 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu',
    '27 25 0:24 / /sys/fs/cgroup/unified rw shared:5 - cgroup2 cgroup2 rw',
    '',
  ].join('\n');
  assert.deepEqual(cgroupHierarchies(mountinfo), [
    { mountPoint: '/sys/fs/cgroup/cpu', version: 1 },
    { mountPoint: '/sys/fs/cgroup/unified', version: 2 },
  ]);
});

test('a cgroup of our own exists everywhere, takes processes, and goes with them and what is below', async () => {
  const name = `kubelet-ts-unit-${process.pid}`;
  const paths = cgroupHierarchies(readFileSync('/proc/self/mountinfo', 'utf8')).map(({ mountPoint }) =>
    join(mountPoint, name),
  );
  createOwnCgroup(name);
  createOwnCgroup(name);
  assert.ok(paths.length > 0 && paths.every((path) => existsSync(path)));
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const exit = once(child, 'exit');
  await once(child, 'spawn');
  for (const path of paths) {
    mkdirSync(join(path, 'leaf'));
    // Version 2 allows no process beside cgroups that have controllers, so it goes into the leaf.
    const cpuset = ['cpuset.cpus', 'cpuset.mems'].filter((file) => existsSync(join(path, 'leaf', file)));
    for (const file of cpuset) writeFileSync(join(path, 'leaf', file), readFileSync(join(path, file)));
    writeFileSync(join(path, 'leaf/cgroup.procs'), String(child.pid));
  }
  await removeOwnCgroup(name);
  assert.deepEqual(await exit, [null, 'SIGKILL']);
  assert.ok(paths.every((path) => !existsSync(path)));
  await removeOwnCgroup(name);
});
