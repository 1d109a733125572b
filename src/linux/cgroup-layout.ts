/**
 * Where this machine's cgroup controllers are mounted, found in the mount table. Pure.
 */
import type { Mount } from './mount-table.ts';

/**
 * `v2`: one tree for everything. `v1`: a tree for each controller. `hybrid`: v1 trees plus a v2 tree beside
 * them; runtimes treat such a machine as v1, and so does this program.
 */
type CgroupMode = 'v1' | 'v2' | 'hybrid';

export interface CgroupLayout {
  readonly mode: CgroupMode;
  /** Mount point of the v2 tree, where there is one. */
  readonly unified?: string;
  /**
   * v1 controllers by name (`cpu`, `memory`, …) and named hierarchies (`name=systemd`) with the mount point
   * of their tree. Empty on v2.
   */
  readonly trees: ReadonlyMap<string, string>;
}

/** Mount options of a v1 tree that are not controllers. */
const plainOptions = new Set([
  'rw',
  'ro',
  'noprefix',
  'clone_children',
  'xattr',
  'cpuset_v2_mode',
  'all',
  'none',
]);

/** The machine has no cgroup file system that could be used. */
export class NoCgroupsError extends Error {
  override readonly name = 'NoCgroupsError';
  constructor() {
    super(
      'No cgroup file system is mounted; mount cgroup2 on /sys/fs/cgroup (mount -t cgroup2 none /sys/fs/cgroup)',
    );
  }
}

/**
 * Reads the layout out of the mount table and /proc/cgroups (which names the controllers the kernel knows,
 * so that other mount options are not mistaken for one). Trees that only a bind mount shows in part lose to
 * whole ones. Throws {@link NoCgroupsError} when there is nothing.
 */
export function detectCgroups(mounts: readonly Mount[], procCgroups: string): CgroupLayout {
  const known = new Set(
    procCgroups
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.split(/\s+/)[0]!),
  );
  const trees = new Map<string, Mount>();
  let unified: Mount | undefined;
  const better = (candidate: Mount, present: Mount | undefined) =>
    present === undefined ||
    (present.mountPoint.startsWith('/sys/fs/cgroup') ? 0 : 2) + (present.root === '/' ? 0 : 1) >
      (candidate.mountPoint.startsWith('/sys/fs/cgroup') ? 0 : 2) + (candidate.root === '/' ? 0 : 1);
  for (const candidate of mounts) {
    if (candidate.type === 'cgroup2') {
      if (better(candidate, unified)) unified = candidate;
    } else if (candidate.type === 'cgroup') {
      for (const option of candidate.superOptions) {
        const isController = option.startsWith('name=') || (known.has(option) && !plainOptions.has(option));
        if (isController && better(candidate, trees.get(option))) trees.set(option, candidate);
      }
    }
  }
  const controllers = [...trees.keys()].filter((name) => !name.startsWith('name='));
  if (controllers.length === 0) {
    if (unified === undefined) throw new NoCgroupsError();
    return { mode: 'v2', unified: unified.mountPoint, trees: new Map() };
  }
  return {
    mode: unified === undefined ? 'v1' : 'hybrid',
    ...(unified === undefined ? {} : { unified: unified.mountPoint }),
    trees: new Map([...trees].map(([name, tree]) => [name, tree.mountPoint])),
  };
}
