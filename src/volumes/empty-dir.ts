/**
 * emptyDir: a directory that lives as long as its pod, on disk, in memory (tmpfs) or in huge pages
 * (hugetlbfs).
 *
 * A `ready` marker beside the volume says that it is complete. Without it everything is checked and done
 * again; with it the volume is left alone, because containers may have changed it.
 */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { podRequests } from '../kubernetes/pod-resources.ts';
import { parseQuantity, quantityValue } from '../kubernetes/quantity.ts';
import type { EmptyDirVolumeSource } from '../kubernetes/types.ts';
import { mountAt } from '../linux/mount-table.ts';
import { mountHugetlbfs } from '../linux/mounts.ts';
import { pathExists } from '../linux/path-exists.ts';
import { type EventRecorder, podEventObject } from '../telemetry/events.ts';
import { applyFsGroup } from './fs-group.ts';
import type { MemoryFileSystems } from './memory-file-systems.ts';
import { volumeDirectory, volumeNotesDirectory } from './pod-volume-paths.ts';
import { type MountedVolume, VolumeError, type VolumeKind, type VolumeSetUp } from './volume-kind.ts';

export const emptyDirPlugin = 'kubernetes.io/empty-dir';

type SetUp = VolumeSetUp<EmptyDirVolumeSource>;

export class EmptyDirVolumes implements VolumeKind<EmptyDirVolumeSource> {
  readonly #memory: MemoryFileSystems;

  readonly #clock: Clock;
  readonly #events: EventRecorder;

  constructor(options: { memory: MemoryFileSystems; clock: Clock; events: EventRecorder }) {
    this.#memory = options.memory;
    this.#clock = options.clock;
    this.#events = options.events;
  }

  async setUp(volume: SetUp, signal: AbortSignal): Promise<MountedVolume> {
    const { name, podDirectory, pod, source } = volume;
    const directory = volumeDirectory(podDirectory, emptyDirPlugin, name);
    const notes = volumeNotesDirectory(podDirectory, emptyDirPlugin, name);
    const fileSystem = fileSystemOf(volume);
    const mounted: MountedVolume = {
      name,
      kind: 'emptyDir',
      hostPath: directory,
      readOnly: false,
      relabels: true,
    };
    // After a reboot the marker of a memory volume is still there, the memory is not.
    const complete = (await pathExists(join(notes, 'ready'))) && (await isThere(directory, fileSystem));
    if (complete) return mounted;

    signal.throwIfAborted();
    await mkdir(directory, { recursive: true, mode: 0o750 });
    if (fileSystem === undefined) {
      // Not by mkdir's mode: the umask would cut it.
      await chmod(directory, 0o777);
    } else if (fileSystem === 'tmpfs') {
      await this.#memory.mount(directory, pod.spec, source);
    } else {
      await mountHugetlbfs(directory, [`pagesize=${hugePageSize(volume)}`]);
      await chmod(directory, 0o777);
    }
    const group = pod.spec.securityContext?.fsGroup;
    if (group !== undefined) {
      // Whatever the pod's fsGroupChangePolicy: only what the agent itself has made is there yet.
      const onProgress = (message: string) =>
        this.#events.event(podEventObject(pod), 'Warning', 'VolumePermissionChangeInProgress', message);
      await applyFsGroup({ directory, group, onProgress, clock: this.#clock }, signal);
    }
    await mkdir(notes, { recursive: true, mode: 0o750 });
    await writeFile(join(notes, 'ready'), '');
    return mounted;
  }
}

/** The file system a medium needs to have mounted; none for the default medium. */
function fileSystemOf(volume: SetUp): 'tmpfs' | 'hugetlbfs' | undefined {
  const medium = volume.source.medium ?? '';
  if (medium === '') return undefined;
  if (medium === 'Memory') return 'tmpfs';
  if (medium === 'HugePages' || medium.startsWith('HugePages-')) return 'hugetlbfs';
  throw new VolumeError(
    volume.name,
    `volume "${volume.name}": unknown storage medium "${medium}"; use "", Memory, HugePages or HugePages-<size>`,
  );
}

/** Bytes of a page: the one of the medium, or the single size the pod asks for. */
function hugePageSize(volume: SetUp): number {
  const { name, pod, source } = volume;
  const requested = [...podRequests(pod.spec)]
    .filter(([resource, amount]) => resource.startsWith('hugepages-') && amount.nano > 0n)
    .map(([resource]) => quantityValue(parseQuantity(resource.slice('hugepages-'.length))));
  if (source.medium === 'HugePages') {
    if (requested.length === 1) return requested[0]!;
    const problem = requested.length === 0 ? 'no huge pages' : 'huge pages of several sizes';
    throw new VolumeError(
      name,
      `volume "${name}": the medium HugePages needs one page size, but the pod requests ${problem}; use the medium HugePages-<size>`,
    );
  }
  const text = source.medium!.slice('HugePages-'.length);
  const size = quantityValue(parseQuantity(text));
  if (requested.includes(size)) return size;
  throw new VolumeError(
    name,
    `volume "${name}": the medium ${source.medium} needs a container that requests hugepages-${text}`,
  );
}

async function isThere(directory: string, fileSystem: string | undefined): Promise<boolean> {
  return fileSystem === undefined
    ? await pathExists(directory)
    : (await mountAt(directory))?.type === fileSystem;
}
