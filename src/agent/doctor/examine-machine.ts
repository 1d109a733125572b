/** Gathers what {@link machineFindings} judges. Changes nothing, also not on a machine that is no node yet. */
import { readFile, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { CgroupHierarchy } from '../../linux/cgroupfs.ts';
import { readOnlineCpus, readSwaps } from '../../linux/procfs.ts';
import { examinedSysctls, type MachineHealth } from './machine-findings.ts';

export async function examineMachine(
  hierarchy: CgroupHierarchy,
  rootDirectory: string,
): Promise<MachineHealth> {
  const [controllers, onlineCpus, swaps, disk, values] = await Promise.all([
    hierarchy.controllers(),
    readOnlineCpus(),
    readSwaps(),
    space(rootDirectory),
    Promise.all(examinedSysctls.map(readSysctl)),
  ]);
  return {
    uid: process.getuid?.() ?? 0,
    cgroupVersion: hierarchy.version,
    controllers,
    onlineCpus,
    swaps,
    disk,
    sysctls: Object.fromEntries(examinedSysctls.map((name, index) => [name, values[index]])),
  };
}

async function readSysctl(name: string): Promise<string | undefined> {
  const text = await readFile(`/proc/sys/${name.replaceAll('.', '/')}`, 'utf8').catch(() => undefined);
  return text?.trim();
}

/** Of the file system that the directory is on, or will be made on. */
async function space(directory: string): Promise<MachineHealth['disk']> {
  for (let path = directory; ; path = dirname(path)) {
    const found = await statfs(path).catch(() => undefined);
    if (found) {
      const { bavail, blocks, bsize, ffree, files } = found;
      return {
        path,
        bytes: { free: bavail * bsize, total: blocks * bsize },
        inodes: { free: ffree, total: files },
      };
    }
    if (path === dirname(path)) return undefined;
  }
}
