/**
 * A cgroup for one agent and all its pods (`--cgroup-root`), in every hierarchy of the machine: what is
 * below it can be removed as a whole, and nothing else of the machine is touched.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeCgroupTree } from './teardown.ts';

/** A mounted hierarchy. */
export interface Hierarchy {
  mountPoint: string;
  version: 1 | 2;
}

/** The cgroup mounts in the text of `/proc/self/mountinfo`. */
export function cgroupHierarchies(mountinfo: string): Hierarchy[] {
  return mountinfo.split('\n').flatMap((line): Hierarchy[] => {
    const [left = '', right = ''] = line.split(' - ');
    const mountPoint = left.split(' ')[4];
    const type = right.split(' ')[0];
    if (mountPoint === undefined || (type !== 'cgroup' && type !== 'cgroup2')) return [];
    return [{ mountPoint, version: type === 'cgroup' ? 1 : 2 }];
  });
}

function currentHierarchies(): Hierarchy[] {
  return cgroupHierarchies(readFileSync('/proc/self/mountinfo', 'utf8'));
}

function read(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
}

/** A cpuset of version 1 starts empty and takes no process until it has CPUs and memory nodes. */
function inheritCpuset(parent: string, child: string): void {
  for (const name of ['cpuset.cpus', 'cpuset.mems']) {
    const file = join(child, name);
    if (existsSync(file) && read(file) === '') writeFileSync(file, read(join(parent, name)));
  }
}

/** Version 2 gives a child only the controllers that each cgroup above it hands down. */
function handDownControllers(path: string): void {
  for (const controller of read(join(path, 'cgroup.controllers')).split(' ')) {
    if (controller === '') continue;
    try {
      writeFileSync(join(path, 'cgroup.subtree_control'), `+${controller}`);
    } catch {
      // Held back by this kernel or machine; the agent reports what it lacks.
    }
  }
}

/** Makes `/<name>` in every hierarchy; safe to repeat. */
export function createOwnCgroup(name: string): void {
  const all = currentHierarchies();
  const pureVersionTwo = all.every(({ version }) => version === 2);
  for (const { mountPoint, version } of all) {
    const path = join(mountPoint, name);
    if (pureVersionTwo) handDownControllers(mountPoint);
    mkdirSync(path, { recursive: true });
    if (version === 1) inheritCpuset(mountPoint, path);
    else if (pureVersionTwo) handDownControllers(path);
  }
}

function processesBelow(path: string): number[] {
  if (!existsSync(path)) return [];
  const own = read(join(path, 'cgroup.procs'))
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
  const children = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [...own, ...children.flatMap((entry) => processesBelow(join(path, entry.name)))];
}

/** Kills what still runs in `/<name>` and removes it from every hierarchy; safe to repeat. */
export async function removeOwnCgroup(name: string): Promise<void> {
  const paths = currentHierarchies().map(({ mountPoint }) => join(mountPoint, name));
  const deadline = Date.now() + 10_000;
  for (;;) {
    for (const pid of new Set(paths.flatMap(processesBelow))) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
    const left = paths.filter((path) => !removeCgroupTree(path));
    if (left.length === 0) return;
    if (Date.now() > deadline) throw new Error(`these cgroups cannot be removed: ${left.join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
