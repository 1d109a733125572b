/**
 * RuntimeClasses of the cluster: which handler of the container runtime a pod wants, and what a pod of the
 * class costs beside its containers. They are followed from the first pod that names one.
 */
import type { Pod } from '../kubernetes/types.ts';
import type { RuntimeClass } from './object-types.ts';
import { SyncedObjects, type SyncedObjectsOptions } from './synced-objects.ts';

/** There is no RuntimeClass of the name; the sandbox cannot be made. */
export class RuntimeClassNotFoundError extends Error {
  override readonly name = 'RuntimeClassNotFoundError';
  constructor(runtimeClass: string) {
    super(`RuntimeClass "${runtimeClass}" not found`);
  }
}

export class RuntimeClasses {
  readonly #classes: SyncedObjects<RuntimeClass>;

  constructor(options: SyncedObjectsOptions) {
    const path = '/apis/node.k8s.io/v1/runtimeclasses';
    this.#classes = new SyncedObjects({ ...options, path, what: 'runtime classes' });
  }

  stop(): void {
    this.#classes.stop();
  }

  /**
   * The handler a pod's sandbox is made with; the empty text for the default one. Rejects with
   * {@link RuntimeClassNotFoundError}, or with `NotSyncedError` while the classes are not known.
   */
  async handler(pod: Pod, signal: AbortSignal): Promise<string> {
    return (await this.#ofPod(pod, signal))?.handler ?? '';
  }

  /** Resource name to quantity, as `overhead.podFixed` says; empty without a class. Rejects as `handler`. */
  async overhead(pod: Pod, signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    return (await this.#ofPod(pod, signal))?.overhead?.podFixed ?? {};
  }

  async #ofPod(pod: Pod, signal: AbortSignal): Promise<RuntimeClass | undefined> {
    const name = pod.spec.runtimeClassName;
    if (!name) return undefined;
    const found = (await this.#classes.objects(signal)).get(name);
    if (!found) throw new RuntimeClassNotFoundError(name);
    return found;
  }
}
