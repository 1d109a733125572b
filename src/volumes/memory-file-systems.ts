/** tmpfs for volumes that live in memory, never swapped out where the kernel can promise that. */
import { bytesOf, podIsLimited, podLimits } from '../kubernetes/pod-resources.ts';
import { parseQuantity, quantityValue } from '../kubernetes/quantity.ts';
import type { EmptyDirVolumeSource, PodSpec } from '../kubernetes/types.ts';
import { mountTmpfs } from '../linux/mounts.ts';
import { SystemCallError } from '../linux/syscalls.ts';

export class MemoryFileSystems {
  /** Bytes of memory all pods together may have; 0 while unknown. */
  readonly #nodeAllocatableMemory: () => number;
  /** Whether this kernel's tmpfs knows `noswap` (Linux 6.4); found out by the first mount. */
  #noSwap: 'unknown' | 'known' | 'missing' = 'unknown';

  constructor(options: { nodeAllocatableMemory: () => number }) {
    this.#nodeAllocatableMemory = options.nodeAllocatableMemory;
  }

  /** Mounts a tmpfs on `directory` unless one is there. */
  async mount(directory: string, spec: PodSpec, source: EmptyDirVolumeSource = {}): Promise<void> {
    const size = memorySize(spec, source, this.#nodeAllocatableMemory());
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
