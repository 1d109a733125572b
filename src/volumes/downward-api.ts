/** downwardAPI: what a pod says about itself as files, in memory. */
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import type { Volume } from '../kubernetes/types.ts';
import { downwardFiles } from './downward-files.ts';
import { FileVolumes, type RefreshableKind } from './file-volumes.ts';
import type { MemoryFileSystems } from './memory-file-systems.ts';
import { defaultFileMode } from './object-files.ts';

export type DownwardApiVolumeSource = NonNullable<Volume['downwardAPI']>;

export function downwardApiVolumes(options: {
  nodeAllocatable: ResourceAmounts;
  memory: MemoryFileSystems;
}): RefreshableKind<DownwardApiVolumeSource> {
  const { nodeAllocatable, memory } = options;
  return new FileVolumes({
    kind: 'downwardAPI',
    plugin: 'kubernetes.io/downward-api',
    memory,
    files: ({ pod, name: volume, source }) => {
      const { items = [], defaultMode = defaultFileMode } = source;
      return Promise.resolve(downwardFiles({ pod, volume, items, defaultMode, nodeAllocatable }));
    },
  });
}
