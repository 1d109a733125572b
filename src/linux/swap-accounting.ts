/**
 * Whether the kernel accounts for swap by cgroup, which not every kernel does: it may be built without
 * (CONFIG_SWAP, CONFIG_MEMCG_SWAP) or booted with `swapaccount=0`.
 */
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CgroupHierarchy } from './cgroupfs.ts';

/** What the kernel says beside its cgroups. */
export interface SwapEvidence {
  /** Text of /proc/self/cgroup. */
  readonly ownCgroups: string;
  /** Text of /proc/cmdline. */
  readonly commandLine: string;
  /** /proc/swaps is there: the kernel can swap at all. */
  readonly canSwap: boolean;
}

export async function readSwapEvidence(): Promise<SwapEvidence> {
  const [ownCgroups, commandLine, canSwap] = await Promise.all([
    readFile('/proc/self/cgroup', 'utf8'),
    readFile('/proc/cmdline', 'utf8').catch(() => ''),
    exists('/proc/swaps'),
  ]);
  return { ownCgroups, commandLine, canSwap };
}

/**
 * v1: by the file of the root cgroup. v2, whose root has no limits: by the own cgroup or any other that has
 * memory limits; where there is none yet, by what the kernel was built and booted with.
 */
export async function hasSwapAccounting(
  hierarchy: CgroupHierarchy,
  evidence: SwapEvidence,
): Promise<boolean> {
  if (hierarchy.version === 1) {
    const directory = hierarchy.directory('/', 'memory');
    return directory !== undefined && (await exists(join(directory, 'memory.memsw.limit_in_bytes')));
  }
  const own = /^0::(\/.*)$/m.exec(evidence.ownCgroups)?.[1];
  const siblings = (await hierarchy.children('/')).map((name) => `/${name}`);
  // A cgroup outside of the own cgroup namespace is shown as /../x and cannot be looked at.
  for (const cgroup of [...(own === undefined || own.includes('..') ? [] : [own]), ...siblings]) {
    const directory = hierarchy.directory(cgroup, 'memory')!;
    if (await exists(join(directory, 'memory.max'))) return await exists(join(directory, 'memory.swap.max'));
  }
  return evidence.canSwap && !/(^|\s)swapaccount=0(\s|$)/.test(evidence.commandLine);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
