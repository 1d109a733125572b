/**
 * The objects a reflector knows, and how a list or an event changes them. Pure but for its own map.
 *
 * Guarantees: objects of any shape are either taken in, or refused by `identify` returning nothing; what is
 * reported as set or removed is exactly the difference between before and after.
 */
interface Metadata {
  readonly name?: unknown;
  readonly namespace?: unknown;
  readonly uid?: unknown;
  readonly resourceVersion?: unknown;
  readonly annotations?: unknown;
}

export interface CacheChange<T> {
  readonly set: readonly T[];
  readonly removed: readonly T[];
}

/** The metadata of anything; empty when it has none. */
export function metadataOf(object: unknown): Metadata {
  const metadata = (object as { metadata?: unknown } | null | undefined)?.metadata;
  return typeof metadata === 'object' && metadata !== null ? metadata : {};
}

/** `namespace/name`, or the name alone; nothing when there is no name. */
export function identify(object: unknown): string | undefined {
  const { name, namespace } = metadataOf(object);
  if (typeof name !== 'string' || name === '') return undefined;
  if (namespace === undefined || namespace === '') return name;
  return typeof namespace === 'string' ? `${namespace}/${name}` : undefined;
}

export class ReflectorCache<T> {
  readonly #objects = new Map<string, T>();

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): Iterable<T> {
    return this.#objects.values();
  }

  /** Takes in one object. An object of the same name and another uid was a former one, and is gone. */
  set(key: string, object: T): CacheChange<T> {
    const former = this.#objects.get(key);
    this.#objects.set(key, object);
    const replaced = former !== undefined && metadataOf(former).uid !== metadataOf(object).uid;
    return { set: [object], removed: replaced ? [former] : [] };
  }

  /** `last`: the object as it was when it was deleted. */
  remove(key: string, last: T): CacheChange<T> {
    const former = this.#objects.get(key);
    if (former === undefined) return { set: [], removed: [] };
    this.#objects.delete(key);
    const same = metadataOf(former).uid === metadataOf(last).uid;
    return { set: [], removed: [same ? last : former] };
  }

  /** Takes in a whole list. What has the same uid and resource version as before is not reported. */
  replace(objects: ReadonlyMap<string, T>): CacheChange<T> {
    const set: T[] = [];
    const removed: T[] = [];
    for (const [key, former] of this.#objects) {
      if (objects.has(key)) continue;
      removed.push(former);
      this.#objects.delete(key);
    }
    for (const [key, object] of objects) {
      const former = this.#objects.get(key);
      const before = metadataOf(former);
      const after = metadataOf(object);
      const same = before.uid === after.uid && before.resourceVersion === after.resourceVersion;
      if (former !== undefined && same && after.resourceVersion !== undefined) continue;
      if (former !== undefined && before.uid !== after.uid) removed.push(former);
      this.#objects.set(key, object);
      set.push(object);
    }
    return { set, removed };
  }
}
