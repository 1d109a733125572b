/** configMap: the keys of a ConfigMap as files, in a directory on disk. */
import type { Volume } from '../kubernetes/types.ts';
import { FileVolumes, type RefreshableKind } from './file-volumes.ts';
import { defaultFileMode, objectFiles } from './object-files.ts';
import type { VolumeContents } from './volume-contents.ts';

export type ConfigMapVolumeSource = NonNullable<Volume['configMap']>;

export function configMapVolumes(options: {
  contents: VolumeContents;
}): RefreshableKind<ConfigMapVolumeSource> {
  const { contents } = options;
  return new FileVolumes({
    kind: 'configMap',
    plugin: 'kubernetes.io/configmap',
    files: async ({ pod, name: volume, source }, signal) => {
      const { name = '', items, optional, defaultMode = defaultFileMode } = source;
      const entries = await contents.configMap(pod.metadata.namespace, name, signal);
      return objectFiles({ kind: 'configmap', name, volume, entries, items, optional, defaultMode });
    },
  });
}
