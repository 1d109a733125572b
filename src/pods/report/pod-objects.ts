/**
 * What the API server's objects of this node's pods are right now, as far as the watch and the answers to
 * own requests tell; so nothing ever has to be read.
 *
 * Guarantees: an answer that is newer than what the watch says is not overwritten by it, and one that is
 * older brings nothing back. An object is known by its uid: one that was made again under the same name is
 * another one.
 */
import { isMirrorPod, podAnnotations, podKey } from '../../kubernetes/pod-identity.ts';
import type { Pod, PodStatus } from '../../kubernetes/types.ts';

/** An object as the API server has it. */
export interface PodObject {
  readonly metadata: Pod['metadata'];
  readonly status?: PodStatus;
}

/** What has changed among the pods of the API server. */
export interface PodObjectsChange {
  readonly set: readonly PodObject[];
  readonly removed: readonly PodObject[];
  /** False while the server has not told all there is. */
  readonly synced?: boolean;
}

/** The API server's objects of this node's pods, as last seen. */
export class PodObjects {
  /** By `namespace/name`. */
  readonly #objects = new Map<string, PodObject>();
  readonly #told = Promise.withResolvers<void>();

  /** Resolves once the server has told all there is: from then on an object that is not known is not there. */
  get told(): Promise<void> {
    return this.#told.promise;
  }

  /** The object under this `namespace/name`. */
  get(key: string): PodObject | undefined {
    return this.#objects.get(key);
  }

  all(): Iterable<PodObject> {
    return this.#objects.values();
  }

  /** The object whose status is that of `pod`: the pod's own, or the mirror of this version of a static pod. */
  of(pod: Pod): PodObject | undefined {
    const object = this.#objects.get(podKey(pod));
    if (!object) return undefined;
    if (!isMirrorPod(object)) return object.metadata.uid === pod.metadata.uid ? object : undefined;
    const { annotations: mirror = {}, deletionTimestamp } = object.metadata;
    const hash = pod.metadata.annotations?.[podAnnotations.configHash];
    const isCurrent = hash !== undefined && mirror[podAnnotations.configMirror] === hash;
    return isCurrent && deletionTimestamp === undefined ? object : undefined;
  }

  /** Takes what the watch tells. */
  follow({ set, removed, synced = true }: PodObjectsChange): void {
    for (const object of removed) this.forget(object);
    for (const object of set) this.learn(object);
    if (synced) this.#told.resolve();
  }

  /** Takes one object, unless a newer state, or a newer object of its name, is known. */
  learn(object: PodObject): void {
    const key = podKey(object);
    const before = this.#objects.get(key);
    if (before && isOlder(object, before)) return;
    this.#objects.set(key, { metadata: object.metadata, status: object.status ?? {} });
  }

  /** Takes the answer to a change of an object; one that the watch has taken away meanwhile stays away. */
  answered(object: PodObject): void {
    if (this.#objects.get(podKey(object))?.metadata.uid === object.metadata.uid) this.learn(object);
  }

  /** Takes away an object that is there no more; another one of its name stays. */
  forget({ metadata }: Pick<PodObject, 'metadata'>): void {
    const key = podKey({ metadata });
    if (this.#objects.get(key)?.metadata.uid === metadata.uid) this.#objects.delete(key);
  }
}

/** Resource versions of Kubernetes grow; where one is no number, the later word counts. */
function isOlder({ metadata: a }: PodObject, { metadata: b }: PodObject): boolean {
  const decimal = /^\d+$/;
  const [left = '', right = ''] = [a.resourceVersion, b.resourceVersion];
  return decimal.test(left) && decimal.test(right) && BigInt(left) < BigInt(right);
}
