/**
 * RuntimeClasses of the cluster: which handler of the container runtime a pod wants, and what a pod of the
 * class costs beside its containers. They are followed from the first pod that names one, and a pod that came
 * before its class is told of it.
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

export interface RuntimeClassesOptions extends SyncedObjectsOptions {
  /** The classes these pods were refused for are there now. */
  readonly onChange: (podUids: readonly string[]) => void;
}

export class RuntimeClasses {
  readonly #classes: SyncedObjects<RuntimeClass>;
  /** By pod: the name of the class it has not got. */
  readonly #missing = new Map<string, string>();

  constructor(options: RuntimeClassesOptions) {
    this.#classes = new SyncedObjects({
      ...options,
      path: '/apis/node.k8s.io/v1/runtimeclasses',
      what: 'runtime classes',
      onObjects: () => {
        const found = [...this.#missing].filter(([, name]) => this.#classes.current()?.get(name));
        const uids = found.map(([uid]) => uid);
        for (const uid of uids) this.#missing.delete(uid);
        if (uids.length > 0) options.onChange(uids);
      },
    });
  }

  /** Nothing is left of the pod. */
  forget(podUid: string): void {
    this.#missing.delete(podUid);
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
    const { uid } = pod.metadata;
    this.#missing.set(uid, name);
    const found = (await this.#classes.objects(signal)).get(name);
    if (!found) throw new RuntimeClassNotFoundError(name);
    this.#missing.delete(uid);
    return found;
  }
}
