/**
 * The kinds of volumes there are, by the name of their source.
 */
import { type Clock, systemClock } from '../concurrency/clock.ts';
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import type { Volume } from '../kubernetes/types.ts';
import { type EventRecorder, silentEvents } from '../telemetry/events.ts';
import { configMapVolumes } from './config-map.ts';
import { downwardApiVolumes } from './downward-api.ts';
import { EmptyDirVolumes } from './empty-dir.ts';
import type { RefreshableKind } from './file-volumes.ts';
import { HostPathVolumes } from './host-path.ts';
import { imageVolumes } from './image.ts';
import { MemoryFileSystems } from './memory-file-systems.ts';
import { projectedVolumes } from './projected.ts';
import { secretVolumes } from './secret.ts';
import type { VolumeContents } from './volume-contents.ts';
import {
  type MountedVolume,
  NeedsApiServerError,
  UnsupportedVolumeError,
  type VolumeKind,
  type VolumeSetUp,
  type VolumeSourceName,
} from './volume-kind.ts';

type Source<Name extends VolumeSourceName> = NonNullable<Volume[Name]>;

/** Every supported source with its kind; the compiler holds each kind to its source. */
export type VolumeKinds = {
  readonly [Name in 'emptyDir' | 'hostPath' | 'image']: VolumeKind<Source<Name>>;
} & {
  readonly [Name in 'downwardAPI' | 'projected']: RefreshableKind<Source<Name>>;
} & {
  /** Absent without an API server. */
  readonly [Name in 'configMap' | 'secret']: RefreshableKind<Source<Name>> | undefined;
};

export interface VolumeKindsOptions {
  /** Bytes of memory all pods together may have; 0 while unknown. */
  readonly nodeAllocatableMemory: () => number;
  /** What stands in the downward API for limits that are not set. */
  readonly nodeAllocatable?: ResourceAmounts;
  /** Absent without an API server. */
  readonly contents?: VolumeContents | undefined;
  /** Told of what takes long. */
  readonly events?: EventRecorder;
  readonly clock?: Clock;
}

export function createVolumeKinds(options: VolumeKindsOptions): VolumeKinds {
  const { nodeAllocatable = new Map(), contents, events = silentEvents, clock = systemClock } = options;
  const memory = new MemoryFileSystems(options);
  return {
    emptyDir: new EmptyDirVolumes({ memory, clock, events }),
    hostPath: new HostPathVolumes(),
    image: imageVolumes,
    configMap: contents && configMapVolumes({ contents }),
    secret: contents && secretVolumes({ contents, memory }),
    downwardAPI: downwardApiVolumes({ nodeAllocatable, memory }),
    projected: projectedVolumes({ contents, nodeAllocatable, memory }),
  };
}

/** The name of a volume's source. A volume without one is an emptyDir, as the API defaults it. */
export function volumeSourceName(volume: Volume): VolumeSourceName {
  for (const [name, source] of Object.entries(volume)) {
    if (name !== 'name' && source !== undefined && source !== null) return name as VolumeSourceName;
  }
  return 'emptyDir';
}

type Place = Pick<VolumeSetUp<unknown>, 'pod' | 'podDirectory'>;

/** Sets a volume up by its kind. Throws {@link UnsupportedVolumeError} for a kind not in the table. */
export async function setUpVolume(
  kinds: VolumeKinds,
  volume: Volume,
  place: Place,
  signal: AbortSignal,
): Promise<MountedVolume> {
  const sourceName = volumeSourceName(volume);
  const { name } = volume;
  switch (sourceName) {
    case 'emptyDir':
      return await kinds.emptyDir.setUp({ ...place, name, source: volume.emptyDir ?? {} }, signal);
    case 'hostPath':
      return await kinds.hostPath.setUp({ ...place, name, source: volume.hostPath! }, signal);
    case 'image':
      return await kinds.image.setUp({ ...place, name, source: volume.image! }, signal);
    default: {
      const refreshable = refreshableVolume(kinds, volume, place);
      if (!refreshable) throw new UnsupportedVolumeError(name, sourceName);
      return await refreshable.setUp(signal);
    }
  }
}

/** A volume whose files can be brought up to date, with its kind and place; `undefined` for any other. */
export function refreshableVolume(kinds: VolumeKinds, volume: Volume, place: Place) {
  const { name, configMap, secret, downwardAPI, projected } = volume;
  if (configMap) return bound(kinds.configMap, { ...place, name, source: configMap }, 'configMap');
  if (secret) return bound(kinds.secret, { ...place, name, source: secret }, 'secret');
  if (downwardAPI) return bound(kinds.downwardAPI, { ...place, name, source: downwardAPI }, 'downwardAPI');
  if (projected) return bound(kinds.projected, { ...place, name, source: projected }, 'projected');
  return undefined;
}

function bound<S>(kind: RefreshableKind<S> | undefined, volume: VolumeSetUp<S>, name: VolumeSourceName) {
  return {
    plugin: kind?.plugin ?? '',
    setUp: async (signal: AbortSignal): Promise<MountedVolume> => {
      if (!kind) throw new NeedsApiServerError(volume.name, name);
      return await kind.setUp(volume, signal);
    },
    refresh: async (signal: AbortSignal): Promise<void> => await kind?.refresh(volume, signal),
  };
}
