/** secret: the keys of a Secret as files, in memory only. */
import type { Volume } from '../kubernetes/types.ts';
import { FileVolumes, type RefreshableKind } from './file-volumes.ts';
import type { MemoryFileSystems } from './memory-file-systems.ts';
import { defaultFileMode, objectFiles } from './object-files.ts';
import type { VolumeContents } from './volume-contents.ts';

export type SecretVolumeSource = NonNullable<Volume['secret']>;

export function secretVolumes(options: {
  contents: VolumeContents;
  memory: MemoryFileSystems;
}): RefreshableKind<SecretVolumeSource> {
  const { contents, memory } = options;
  return new FileVolumes({
    kind: 'secret',
    plugin: 'kubernetes.io/secret',
    memory,
    files: async ({ pod, name: volume, source }, signal) => {
      const { secretName: name = '', items, optional, defaultMode = defaultFileMode } = source;
      const entries = await contents.secret(pod.metadata.namespace, name, signal);
      return objectFiles({ kind: 'secret', name, volume, entries, items, optional, defaultMode });
    },
  });
}
