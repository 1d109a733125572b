/**
 * How full volumes are. Asked of the file system where the volume is one of its own (memory, huge pages, later
 * network and block volumes), walked at a bounded pace where it is a directory of a larger one. No process is
 * started, and nothing here is on the way to a container's start.
 */
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { directoryUsage } from '../linux/directory-usage.ts';
import type { MountedVolume, VolumeSourceName } from './volume-kind.ts';

/** One volume of a pod, as statistics tell it. */
export interface VolumeStats {
  /** The volume's name in the pod. */
  readonly name: string;
  /** When it was measured, epoch milliseconds. */
  readonly time: number;
  /** Bytes the volume occupies. */
  readonly usedBytes: number;
  /** Bytes of the file system it lies on. */
  readonly capacityBytes: number;
  /** Bytes that are left for others than root. */
  readonly availableBytes: number;
  /** Files and directories of the volume. */
  readonly inodesUsed: number;
  /** Of the file system; 0 where it has no fixed number. */
  readonly inodes: number;
  readonly inodesFree: number;
}

/** Kinds that are not measured: a path of the node is nobody's volume, and images are the runtime's. */
const unmeasured: readonly VolumeSourceName[] = ['hostPath', 'image'];

export interface MeasureOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** How many files are looked at in a second. */
  readonly entriesPerSecond?: number;
  /** Told how long measuring took: by asking the file system, or by walking the directory. */
  readonly onMeasured?: (source: 'statfs' | 'du', tookMs: number) => void;
}

/** `undefined` for a kind that is not measured, and for a volume that is gone. */
export async function volumeUsage(
  { name, kind, hostPath }: MountedVolume,
  options: MeasureOptions,
): Promise<VolumeStats | undefined> {
  if (unmeasured.includes(kind)) return undefined;
  const began = options.clock.now();
  try {
    const [itself, around, whole] = await Promise.all([
      stat(hostPath),
      stat(dirname(hostPath)),
      statfs(hostPath),
    ]);
    const isMount = itself.dev !== around.dev;
    const used = isMount
      ? { bytes: (whole.blocks - whole.bfree) * whole.bsize, inodes: whole.files - whole.ffree }
      : await directoryUsage(hostPath, options);
    options.onMeasured?.(isMount ? 'statfs' : 'du', options.clock.now() - began);
    return {
      name,
      time: options.clock.now(),
      usedBytes: used.bytes,
      capacityBytes: whole.blocks * whole.bsize,
      availableBytes: whole.bavail * whole.bsize,
      inodesUsed: used.inodes,
      inodes: whole.files,
      inodesFree: whole.ffree,
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
