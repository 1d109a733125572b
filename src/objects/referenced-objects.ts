/**
 * The config maps and secrets that pods of this node refer to (`configMapAndSecretChangeDetectionStrategy`).
 *
 * Guarantees: an object is followed once, however many pods refer to it, and by nobody when none does; what
 * is known is answered at once; whoever refers to an object is told when it changes, appears or goes.
 */
import { type ApiClient, ApiError } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import { errorText } from '../telemetry/error-text.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { FollowedObject } from './followed-object.ts';
import {
  type CreateReflector,
  kindNames,
  type ObjectKind,
  type ObjectKinds,
  type ObjectReference,
  ObjectUnavailableError,
} from './object-types.ts';
import { PolledObject } from './polled-object.ts';
import { podReferences, referenceKey } from './references.ts';
import { WatchedObject } from './watched-object.ts';

export type ChangeDetection = 'Watch' | 'Cache' | 'Get';

export interface ReferencedObjectsOptions {
  readonly client: Pick<ApiClient, 'request'>;
  readonly createReflector: CreateReflector;
  readonly strategy: ChangeDetection;
  /** For `Cache`: how long an answer serves, milliseconds; from the node's annotation, 1 minute without. */
  readonly cacheTtlMs?: (() => number) | undefined;
  /** For `Cache` and `Get`: `syncFrequency`, milliseconds between two looks for changes. */
  readonly syncMs?: number | undefined;
  /** Pods that refer to an object that has changed, appeared or gone. Called once for each change. */
  readonly onChange: (podUids: readonly string[], reference: ObjectReference) => void;
  /** Keeps what was told, for when the API server does not answer. */
  readonly memory?: ObjectMemory | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Objects as they were told last. */
export interface ObjectMemory {
  remember(reference: ObjectReference, object: unknown): void;
  /** What stands in for the answer that failed with `error`; `undefined` for nothing. */
  recall(reference: ObjectReference, error: ObjectUnavailableError): unknown;
  /** There is no such object, or nobody refers to it any more. */
  forget(reference: ObjectReference): void;
}

/** Bounds one question to the API server. */
const readTimeoutMs = 10_000;

/**
 * An object stays followed this long after the last pod that refers to it.
 * Differs from the kubelet, which lets go at once: pods that follow each other (jobs, replaced pods) would
 * each cost a watch for every object they share, above all for the certificates every pod has.
 */
const lingerMs = 30_000;

interface Entry {
  readonly reference: ObjectReference;
  readonly followed: FollowedObject<unknown>;
  readonly pods: Set<string>;
  cancelLinger?: (() => void) | undefined;
}

export class ReferencedObjects {
  readonly #options: ReferencedObjectsOptions;
  readonly #entries = new Map<string, Entry>();
  /** By pod: the keys of what it refers to. */
  readonly #pods = new Map<string, Set<string>>();

  constructor(options: ReferencedObjectsOptions) {
    this.#options = options;
  }

  /** Follows what the pod refers to. Called again for a changed pod, it follows the difference. */
  register(pod: Pod): void {
    const { uid } = pod.metadata;
    const references = new Map(podReferences(pod).map((one) => [referenceKey(one), one]));
    const before = this.#pods.get(uid);
    this.#pods.set(uid, new Set(references.keys()));
    for (const [key, reference] of references) if (!before?.has(key)) this.#use(key, reference, uid);
    for (const key of before ?? []) if (!references.has(key)) this.#leave(key, uid);
  }

  /** The pod is gone. */
  unregister(podUid: string): void {
    const keys = this.#pods.get(podUid) ?? [];
    this.#pods.delete(podUid);
    for (const key of keys) this.#leave(key, podUid);
  }

  /**
   * The object, or `undefined` when there is none such; at once for one that a registered pod refers to and
   * that is known. Rejects with {@link ObjectUnavailableError} when the API server cannot say.
   */
  async get<Kind extends ObjectKind>(
    kind: Kind,
    namespace: string,
    name: string,
    signal: AbortSignal = neverAborted,
  ): Promise<ObjectKinds[Kind] | undefined> {
    const reference = { kind, namespace, name };
    const entry = this.#entries.get(referenceKey(reference));
    const { memory } = this.#options;
    let object: unknown;
    try {
      object = entry ? await entry.followed.get(signal) : await this.#read(reference, signal);
      if (object === undefined) memory?.forget(reference);
      else if (entry) memory?.remember(reference, object);
    } catch (error) {
      object = error instanceof ObjectUnavailableError ? memory?.recall(reference, error) : undefined;
      if (object === undefined) throw error;
    }
    return object as ObjectKinds[Kind] | undefined;
  }

  /** Lets go of everything. */
  close(): void {
    for (const { followed, cancelLinger } of this.#entries.values()) {
      cancelLinger?.();
      followed.stop();
    }
    this.#entries.clear();
    this.#pods.clear();
  }

  #use(key: string, reference: ObjectReference, podUid: string): void {
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = { reference, followed: this.#follow(key, reference), pods: new Set() };
      this.#entries.set(key, entry);
    }
    entry.cancelLinger?.();
    entry.cancelLinger = undefined;
    entry.pods.add(podUid);
    entry.followed.used();
  }

  #leave(key: string, podUid: string): void {
    const entry = this.#entries.get(key);
    if (!entry?.pods.delete(podUid) || entry.pods.size > 0) return;
    entry.cancelLinger = this.#options.clock.after(lingerMs, () => this.#letGo(key, entry));
  }

  #letGo(key: string, entry: Entry): void {
    this.#entries.delete(key);
    entry.cancelLinger?.();
    entry.followed.stop();
    this.#options.memory?.forget(entry.reference);
  }

  /**
   * A node may follow only what its pods refer to, so a watch that has to begin anew after the last of them
   * is refused. The next pod is not to be shown what was known before that.
   */
  #refused(key: string): void {
    const entry = this.#entries.get(key);
    if (entry?.pods.size === 0) this.#letGo(key, entry);
  }

  #follow(key: string, reference: ObjectReference): FollowedObject<unknown> {
    const { strategy, createReflector, cacheTtlMs = oneMinute, syncMs = oneMinute(), clock } = this.#options;
    const { namespace, name } = reference;
    const read = (signal: AbortSignal) => this.#read(reference, signal);
    const onChange = () => this.#changed(key);
    if (strategy === 'Watch') {
      const path = collectionPath(reference);
      const { logger } = this.#options;
      const onRefused = () => this.#refused(key);
      const told = { onChange, onRefused };
      return WatchedObject.start({ createReflector, path, namespace, name, read, ...told, clock, logger });
    }
    const serveMs = strategy === 'Cache' ? cacheTtlMs : () => 0;
    return PolledObject.start({ read, serveMs, pollMs: () => Math.max(serveMs(), syncMs), onChange, clock });
  }

  #changed(key: string): void {
    const entry = this.#entries.get(key);
    if (entry && entry.pods.size > 0) this.#options.onChange([...entry.pods], entry.reference);
  }

  async #read(reference: ObjectReference, signal: AbortSignal): Promise<ObjectKinds[ObjectKind] | undefined> {
    try {
      return await this.#options.client.request<ObjectKinds[ObjectKind]>({
        method: 'GET',
        path: `${collectionPath(reference)}/${encodeURIComponent(reference.name)}`,
        timeoutMs: readTimeoutMs,
        signal,
      });
    } catch (error) {
      if (error instanceof ApiError && error.notFound) return undefined;
      signal.throwIfAborted();
      throw new ObjectUnavailableError(reference, explain(error), { cause: error });
    }
  }
}

const neverAborted = new AbortController().signal;
const oneMinute = () => 60_000;

function collectionPath({ kind, namespace }: ObjectReference): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/${kindNames[kind].plural}`;
}

function explain(error: unknown): string {
  if (!(error instanceof ApiError)) return errorText(error);
  if (error.unreachable) return `the API server did not answer (${errorText(error)})`;
  return errorText(error);
}
