/** Volumes that are mounted inside of another volume. Pure. */
import { posix } from 'node:path';
import { podContainers } from '../kubernetes/init-containers.ts';
import type { PodSpec } from '../kubernetes/types.ts';

/**
 * Directories that the volume has to have because some container mounts something else inside of it: a
 * runtime cannot make them in a read-only mount. Relative to the volume, without `..`.
 */
export function nestedMountPoints(spec: PodSpec, volume: string): string[] {
  const found = new Set<string>();
  for (const { container } of podContainers(spec)) {
    const mounts = (container.volumeMounts ?? []).map(({ name, mountPath, subPath, subPathExpr }) => ({
      name,
      path: posix.join('/', mountPath),
      isWhole: !subPath && !subPathExpr,
    }));
    for (const outer of mounts) {
      if (outer.name !== volume || !outer.isWhole) continue;
      for (const inner of mounts) {
        const relative = posix.relative(outer.path, inner.path);
        if (inner !== outer && relative !== '' && !relative.startsWith('..')) found.add(relative);
      }
    }
  }
  return [...found].sort();
}
