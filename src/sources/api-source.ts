/**
 * The pods that the API server has bound to this node, as a source.
 *
 * Guarantees: what comes over the watch may have any shape; an object that is no usable pod is reported and
 * changes nothing but itself. A pod whose object is unusable in its new form goes on as it was. Pods are
 * delivered only when something changed that pods are run by: the echo of a status the node has reported
 * ends here. The API server's copies of static pods are not pods of this source; `onObjects` tells of them
 * and of every object as it is.
 *
 * Differs from the kubelet, which takes any object that decodes: a pod is checked against the rules that
 * running it relies on (names, required fields). What a newer API server may know better, fields and values
 * of enumerations, is let through.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Reflector, ReflectorOptions } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import { isKubeletCondition } from '../kubernetes/kubelet-conditions.ts';
import { defaultPod } from '../kubernetes/pod-defaults.ts';
import { isMirrorPod, podAnnotations, podKey } from '../kubernetes/pod-identity.ts';
import {
  type FieldError,
  formatFieldError,
  validatePod,
} from '../kubernetes/pod-validation/pod-validation.ts';
import type { Pod, PodManifest, PodStatus } from '../kubernetes/types.ts';
import { type ManifestError, sameManifestError } from './manifest-error.ts';
import type { PodSource, SourceUpdate } from './pod-source.ts';

/** A pod's object as the API server has it, known to have its identity. */
export interface ApiPodObject {
  readonly metadata: Pod['metadata'];
  readonly status?: PodStatus;
}

/** Objects that have changed, pods and mirrors of static pods alike. */
export interface ApiPodChange {
  readonly set: readonly ApiPodObject[];
  readonly removed: readonly ApiPodObject[];
  /** True once the server has told all there is. */
  readonly synced: boolean;
}

export interface ApiSourceOptions {
  readonly nodeName: string;
  readonly clock: Clock;
  /** Makes the cache that follows the pods of this node. */
  readonly reflector: (options: ReflectorOptions<PodManifest>) => Pick<Reflector<PodManifest>, 'run'>;
  /** Told of every change before the pods that come of it are delivered. */
  readonly onObjects?: (change: ApiPodChange) => void;
  /** Pods of an earlier run, wanted until the API server has spoken. */
  readonly remembered?: readonly Pod[];
}

interface Known {
  readonly uid: string;
  readonly object: unknown;
  readonly pod: Pod | undefined;
  readonly error: ManifestError | undefined;
}

export class ApiSource implements PodSource {
  readonly name = 'api';
  readonly #options: ApiSourceOptions;
  /** By `namespace/name`. */
  readonly #known = new Map<string, Known>();
  /** Set once an object came that cannot even be named. */
  #nameless: ManifestError | undefined;
  #delivered = false;

  constructor(options: ApiSourceOptions) {
    this.#options = options;
  }

  async run(listener: (update: SourceUpdate) => void, signal: AbortSignal): Promise<void> {
    const { nodeName, remembered = [], reflector } = this.#options;
    if (remembered.length > 0) {
      listener({ source: this.name, pods: remembered, errors: [], complete: false });
    }
    const pods = reflector({
      path: '/api/v1/pods',
      query: { fieldSelector: `spec.nodeName=${nodeName}` },
      onChange: (change) => this.#take(change, listener),
    });
    await pods.run(signal);
  }

  #take(
    { set, removed, synced }: { set: readonly unknown[]; removed: readonly unknown[]; synced: boolean },
    listener: (update: SourceUpdate) => void,
  ): void {
    const deliver = () => {
      if (synced) listener(this.#update());
    };
    this.#options.onObjects?.({ set: set.filter(hasIdentity), removed: removed.filter(hasIdentity), synced });
    let changed = synced && !this.#delivered;
    const last = removed.filter((object) => hasIdentity(object)).filter((object) => this.#get(object));
    // A forced deletion shows only in the object's last state: how long the pod may take to end.
    const shortened = last.filter((object) => this.#shortens(object));
    if (shortened.length > 0) {
      for (const object of shortened) this.#set(object);
      deliver();
    }
    for (const object of last) changed = this.#known.delete(podKey(object)) || changed;
    for (const object of set) changed = this.#set(object) || changed;
    if (!changed) return;
    deliver();
    this.#delivered ||= synced;
  }

  #get(object: ApiPodObject): Known | undefined {
    const known = this.#known.get(podKey(object));
    return known?.uid === object.metadata.uid ? known : undefined;
  }

  #shortens(object: ApiPodObject): boolean {
    const pod = this.#get(object)?.pod;
    const { deletionGracePeriodSeconds } = object.metadata;
    if (!pod || deletionGracePeriodSeconds === undefined) return false;
    const before = pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds;
    return deletionGracePeriodSeconds < before;
  }

  #update(): SourceUpdate {
    const known = [...this.#known.values()];
    return {
      source: this.name,
      pods: known.flatMap(({ pod }) => pod ?? []),
      errors: [...known.flatMap(({ error }) => error ?? []), ...(this.#nameless ? [this.#nameless] : [])],
      complete: true,
    };
  }

  /** Answers whether the change has to be delivered. */
  #set(object: unknown): boolean {
    if (!hasIdentity(object)) {
      const reason = 'the object has no usable metadata: name, namespace and uid must be texts';
      const isFirst = this.#nameless === undefined;
      this.#nameless ??= unusable(undefined, [{ reason }]);
      return isFirst;
    }
    if (isMirrorPod(object)) return false;
    const key = podKey(object);
    const before = this.#known.get(key);
    // A pod that was made again under the name of a former one has nothing to do with that one.
    const known = this.#read(object, this.#get(object));
    if (!known.pod && !known.error) return this.#known.delete(key);
    this.#known.set(key, known);
    return before?.pod !== known.pod || !sameManifestError(before?.error, known.error);
  }

  #read(object: ApiPodObject & { readonly spec?: unknown }, before: Known | undefined): Known {
    const { uid } = object.metadata;
    try {
      if (isRecord(object.spec) && object.spec['nodeName'] !== this.#options.nodeName) {
        return { uid, object, pod: undefined, error: undefined };
      }
      if (before?.pod && !before.error) {
        const old = before.object as typeof object;
        if (sameWish(old, object)) return { uid, object, pod: before.pod, error: undefined };
        // Most changes leave the spec alone, and checking it is what costs.
        if (isDeepStrictEqual(old.spec, object.spec)) {
          return { uid, object, pod: this.#pod(object, before.pod.spec), error: undefined };
        }
      }
      const { spec, problems } = readSpec(object);
      if (spec) return { uid, object, pod: this.#pod(object, spec), error: undefined };
      return this.#refused(object, before, problems);
    } catch (error) {
      // Nothing a server sends may end the agent; this object is out of order in a way nobody foresaw.
      return this.#refused(object, before, [`cannot be read: ${String(error)}`]);
    }
  }

  /** The last usable form stays; a pod that is to go may go without one. */
  #refused(object: ApiPodObject, before: Known | undefined, problems: readonly string[]): Known {
    const isGoing = object.metadata.deletionTimestamp !== undefined;
    const spec = before?.pod?.spec ?? (isGoing ? emptySpec : undefined);
    const keepsLastGood = before?.pod !== undefined;
    const error = unusable(
      object,
      problems.map((reason) => ({ reason })),
      keepsLastGood,
    );
    return { uid: object.metadata.uid, object, pod: spec && this.#pod(object, spec), error };
  }

  #pod({ metadata, status }: ApiPodObject, spec: Pod['spec']): Pod {
    const { managedFields: _, deletionTimestamp, deletionGracePeriodSeconds: grace, ...kept } = metadata;
    const before = this.#get({ metadata })?.pod;
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...kept,
        ...(deletionTimestamp && { deletionTimestamp }),
        ...(Number.isInteger(grace) && { deletionGracePeriodSeconds: grace }),
        annotations: {
          ...(isRecord(kept.annotations) ? kept.annotations : {}),
          [podAnnotations.configSource]: this.name,
          [podAnnotations.configSeen]:
            before?.metadata.annotations?.[podAnnotations.configSeen] ??
            new Date(this.#options.clock.now()).toISOString(),
        },
      },
      spec,
      status: readStatus(status),
    };
  }
}

const emptySpec: Pod['spec'] = {
  restartPolicy: 'Never',
  dnsPolicy: 'Default',
  terminationGracePeriodSeconds: 30,
  containers: [],
};

/** Fields of metadata that change without anybody wishing anything of the pod. */
function wishes({ resourceVersion: _, managedFields: __, ...wished }: Pod['metadata']): object {
  return wished;
}

/** True when the two objects differ at most in what this node itself has reported. */
function sameWish(a: ApiPodObject & { spec?: unknown }, b: ApiPodObject & { spec?: unknown }): boolean {
  return (
    isDeepStrictEqual(wishes(a.metadata), wishes(b.metadata)) &&
    isDeepStrictEqual(a.spec, b.spec) &&
    isDeepStrictEqual(foreignPart(a.status), foreignPart(b.status))
  );
}

function foreignPart(status: unknown): unknown {
  const { phase, conditions = [] } = readStatus(status);
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  return [isOver ? phase : '', conditions.filter((condition) => !isKubeletCondition(condition))];
}

/** The status, with nothing in it that would trip who reads it. */
function readStatus(status: unknown): PodStatus {
  if (!isRecord(status)) return {};
  const lists = ['conditions', 'containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'];
  const read: Record<string, unknown> = { ...status };
  for (const name of lists) {
    const list = read[name];
    if (list === undefined) continue;
    const key = name === 'conditions' ? 'type' : 'name';
    read[name] = Array.isArray(list)
      ? list.filter((item: unknown) => isRecord(item) && typeof item[key] === 'string')
      : [];
  }
  return read;
}

function readSpec(object: ApiPodObject & { readonly spec?: unknown }): {
  readonly spec?: Pod['spec'];
  readonly problems: readonly string[];
} {
  const { managedFields: _, ...metadata } = object.metadata;
  const drafted = defaultPod({ metadata, spec: object.spec } as PodManifest);
  const found = validatePod(drafted, { allowEphemeralContainers: true, featureEnabled: () => true });
  const problems = found.filter(matters).map(formatFieldError);
  return problems.length > 0 ? { problems } : { spec: drafted.spec as Pod['spec'], problems };
}

/** What running the pod relies on; unknown fields and values are a newer server's business. */
function matters({ type }: FieldError): boolean {
  return type === 'Required' || type === 'Invalid' || type === 'Duplicate';
}

function unusable(
  object: ApiPodObject | undefined,
  problems: ManifestError['problems'],
  keepsLastGood = false,
): ManifestError {
  const { name = '', namespace = '', uid = '' } = object?.metadata ?? {};
  return {
    source: 'api',
    origin: object ? `the API server's pod ${namespace}/${name}` : 'the API server',
    ...(object && { pod: { name, namespace, uid } }),
    problems,
    remedy: 'Change or delete the pod; this node ignores it as it is',
    keepsLastGood,
  };
}

/** What names directories. */
const namePattern = /^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;
const uidPattern = /^[A-Za-z0-9](?:[-.A-Za-z0-9]{0,126}[A-Za-z0-9])?$/;

function hasIdentity(object: unknown): object is ApiPodObject {
  if (!isRecord(object) || !isRecord(object['metadata'])) return false;
  const { name, namespace, uid } = object['metadata'];
  return (
    typeof name === 'string' &&
    namePattern.test(name) &&
    typeof namespace === 'string' &&
    namePattern.test(namespace) &&
    typeof uid === 'string' &&
    uidPattern.test(uid)
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
