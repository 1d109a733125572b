/**
 * The kinds of volumes there are, by the name of their source.
 */
import type { Volume } from '../kubernetes/types.ts';
import { EmptyDirVolumes } from './empty-dir.ts';
import { HostPathVolumes } from './host-path.ts';
import {
  type MountedVolume,
  UnsupportedVolumeError,
  type VolumeKind,
  type VolumeSetUp,
  type VolumeSourceName,
} from './volume-kind.ts';

/** Every supported source with its kind; the compiler holds each kind to its source. */
export type VolumeKinds = {
  readonly [Name in 'emptyDir' | 'hostPath']: VolumeKind<NonNullable<Volume[Name]>>;
};

export function createVolumeKinds(options: { nodeAllocatableMemory: () => number }): VolumeKinds {
  return {
    emptyDir: new EmptyDirVolumes(options),
    hostPath: new HostPathVolumes(),
  };
}

/** The name of a volume's source. A volume without one is an emptyDir, as the API defaults it. */
function volumeSourceName(volume: Volume): VolumeSourceName {
  for (const [name, source] of Object.entries(volume)) {
    if (name !== 'name' && source !== undefined && source !== null) return name as VolumeSourceName;
  }
  return 'emptyDir';
}

/** Sets a volume up by its kind. Throws {@link UnsupportedVolumeError} for a kind not in the table. */
export async function setUpVolume(
  kinds: VolumeKinds,
  volume: Volume,
  place: Pick<VolumeSetUp<unknown>, 'pod' | 'podDirectory'>,
  signal: AbortSignal,
): Promise<MountedVolume> {
  const sourceName = volumeSourceName(volume);
  const { name } = volume;
  switch (sourceName) {
    case 'emptyDir':
      return await kinds.emptyDir.setUp({ ...place, name, source: volume.emptyDir ?? {} }, signal);
    case 'hostPath':
      return await kinds.hostPath.setUp({ ...place, name, source: volume.hostPath! }, signal);
    default:
      throw new UnsupportedVolumeError(name, sourceName);
  }
}
