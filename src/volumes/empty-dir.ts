/**
 * emptyDir: a directory that lives as long as its pod, on disk, in memory (tmpfs) or in huge pages
 * (hugetlbfs).
 *
 * A `ready` marker beside the volume says that it is complete. Without it everything is checked and done
 * again; with it the volume is left alone, because containers may have changed it.
 */
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesOf, podIsLimited, podLimits, podRequests } from '../kubernetes/pod-resources.ts';
import { parseQuantity, quantityValue } from '../kubernetes/quantity.ts';
import type { EmptyDirVolumeSource, PodSpec } from '../kubernetes/types.ts';
import { mountAt } from '../linux/mount-table.ts';
import { mountHugetlbfs, mountTmpfs } from '../linux/mounts.ts';
import { SystemCallError } from '../linux/syscalls.ts';
import { applyFsGroup } from './fs-group.ts';
import { volumeDirectory, volumeNotesDirectory } from './pod-volume-paths.ts';
import { type MountedVolume, VolumeError, type VolumeKind, type VolumeSetUp } from './volume-kind.ts';

const emptyDirPlugin = 'kubernetes.io/empty-dir';

type SetUp = VolumeSetUp<EmptyDirVolumeSource>;

export class EmptyDirVolumes implements VolumeKind<EmptyDirVolumeSource> {
  /** Bytes of memory all pods together may have; 0 while unknown. */
  readonly #nodeAllocatableMemory: () => number;
  /** Whether this kernel's tmpfs knows `noswap` (Linux 6.4); found out by the first mount. */
  #noSwap: 'unknown' | 'known' | 'missing' = 'unknown';

  constructor(options: { nodeAllocatableMemory: () => number }) {
    this.#nodeAllocatableMemory = options.nodeAllocatableMemory;
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
    const complete = (await exists(join(notes, 'ready'))) && (await isThere(directory, fileSystem));
    if (complete) return mounted;

    signal.throwIfAborted();
    await mkdir(directory, { recursive: true, mode: 0o750 });
    if (fileSystem === undefined) {
      // Not by mkdir's mode: the umask would cut it.
      await chmod(directory, 0o777);
    } else if (fileSystem === 'tmpfs') {
      await this.#mountMemory(directory, memorySize(pod.spec, source, this.#nodeAllocatableMemory()));
    } else {
      await mountHugetlbfs(directory, [`pagesize=${hugePageSize(volume)}`]);
      await chmod(directory, 0o777);
    }
    const group = pod.spec.securityContext?.fsGroup;
    if (group !== undefined) await applyFsGroup(directory, group, signal);
    await mkdir(notes, { recursive: true, mode: 0o750 });
    await writeFile(join(notes, 'ready'), '');
    return mounted;
  }

  async #mountMemory(directory: string, size: number | undefined): Promise<void> {
    const options = size === undefined ? [] : [`size=${size}`];
    if (this.#noSwap !== 'missing') {
      try {
        await mountTmpfs(directory, [...options, 'noswap']);
        this.#noSwap = 'known';
        return;
      } catch (error) {
        const refused = error instanceof SystemCallError && error.code === 'EINVAL';
        if (!refused || this.#noSwap === 'known') throw error;
      }
    }
    await mountTmpfs(directory, options);
    this.#noSwap = 'missing';
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

/**
 * The size of a memory volume in bytes: the least of what all pods may use, what the pod may use (its cgroup
 * limit) and `sizeLimit`, each only when above 0.
 */
export function memorySize(
  spec: PodSpec,
  source: EmptyDirVolumeSource,
  nodeAllocatable: number,
): number | undefined {
  const podLimit = podIsLimited(spec, 'memory') ? bytesOf(podLimits(spec)) : 0;
  const sizeLimit = source.sizeLimit === undefined ? 0 : quantityValue(parseQuantity(source.sizeLimit));
  const bounds = [nodeAllocatable, podLimit, sizeLimit].filter((bound) => bound > 0);
  return bounds.length === 0 ? undefined : Math.min(...bounds);
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

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

async function isThere(directory: string, fileSystem: string | undefined): Promise<boolean> {
  return fileSystem === undefined ? await exists(directory) : (await mountAt(directory))?.type === fileSystem;
}
