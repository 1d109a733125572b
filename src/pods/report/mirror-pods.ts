/**
 * Keeps a mirror of every static pod in the API server, so that the cluster sees what runs on the node.
 *
 * Guarantees: a mirror is that of the version that runs; one that was deleted or belongs to another version
 * is replaced, one without a pod is deleted. No mirror is touched before the API server has told all there
 * is, and none is taken for an orphan before every source has spoken and the pod's last process is gone.
 * Trouble with a mirror never touches the pod itself.
 *
 * One name is one matter: it is looked at when its pod or its mirror changes, and compared as a whole.
 */
import { type ApiClient, ApiError } from '../../client/api-client.ts';
import type { Clock } from '../../concurrency/clock.ts';
import { Limiter } from '../../concurrency/limiter.ts';
import { isMirrorPod, isStaticPod, podKey } from '../../kubernetes/pod-identity.ts';
import type { Pod } from '../../kubernetes/types.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { PodIntent } from '../pod-view.ts';
import { isMirrorOf, mirrorOf } from './mirror-object.ts';
import type { PodObject, PodObjects, PodObjectsChange } from './pod-objects.ts';

/** A pod that somebody on this node looks after. */
export interface HeldPod {
  readonly pod: Pod;
  readonly intent: PodIntent;
}

/** The static pods, and the API server they are shown in. */
export interface MirrorPodsOptions {
  readonly api: Pick<ApiClient, 'request'>;
  readonly objects: PodObjects;
  readonly pods: {
    all(): Iterable<HeldPod>;
    /** The pod that has this `namespace/name` on the node now. */
    named(key: string): HeldPod | undefined;
    /** True once every source has told all it has. */
    readonly ready: boolean;
  };
  readonly nodeName: string;
  /** Uid of the node's object; `undefined` until it is registered. Call {@link MirrorPods.refresh} when it changes. */
  readonly nodeUid: () => string | undefined;
  /** Told of a mirror that was made, before the watch tells of it. */
  readonly onMade?: (mirror: PodObject) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

interface Matter {
  state: 'running' | 'running-again' | 'waiting';
  failures: number;
  cancel: (() => void) | undefined;
}

const firstRetryMs = 1000;
const longestRetryMs = 60_000;

/** Keeps a mirror pod for each static pod, and no others of this node. */
export class MirrorPods {
  readonly #options: MirrorPodsOptions;
  readonly #logger: Logger;
  readonly #requests = new Limiter(4);
  readonly #matters = new Map<string, Matter>();
  /** By name: what was seen of the pod last, so that a mere change of status is no matter. */
  readonly #seen = new Map<string, string>();
  readonly #ending = new AbortController();
  #synced = false;

  constructor(options: MirrorPodsOptions) {
    this.#options = options;
    this.#logger = options.logger.with({ logger: 'mirrors' });
    options.metrics.observedGauge(
      {
        name: 'kubelet_mirror_pods',
        help: '[ALPHA] The number of mirror pods the kubelet will try to create (one per admitted static pod).',
      },
      () => [{ value: [...options.pods.all()].filter(({ pod }) => isStaticPod(pod)).length }],
    );
  }

  /** Takes notice of what a worker reports; anything but a static pod is none of its business. */
  podChanged({ pod, intent }: HeldPod): void {
    if (!isStaticPod(pod)) return;
    const key = podKey(pod);
    const seen = `${pod.metadata.uid} ${intent.kind}`;
    if (this.#seen.get(key) === seen) return;
    this.#seen.set(key, seen);
    this.#look(key);
  }

  /** Nothing is left of the pod. */
  podGone(pod: Pod): void {
    if (!isStaticPod(pod)) return;
    this.#seen.delete(podKey(pod));
    this.#look(podKey(pod));
  }

  /** Takes notice of what {@link PodObjects} has learned from the watch. */
  objectsChanged({ set, removed, synced }: PodObjectsChange & { readonly synced: boolean }): void {
    const isFirst = synced && !this.#synced;
    this.#synced ||= synced;
    if (isFirst) return this.refresh();
    for (const object of [...set, ...removed]) {
      const key = podKey(object);
      if (isMirrorPod(object) || this.#seen.has(key)) this.#look(key);
    }
  }

  /** Looks at every mirror and static pod: the sources have become ready, or the node's object is another. */
  refresh(): void {
    const { objects, pods } = this.#options;
    const keys = new Set([...objects.all()].filter(isMirrorPod).map((object) => podKey(object)));
    for (const { pod } of pods.all()) if (isStaticPod(pod)) keys.add(podKey(pod));
    for (const key of keys) this.#look(key);
  }

  close(): void {
    this.#ending.abort(new Error('the agent stops'));
    for (const { cancel } of this.#matters.values()) cancel?.();
  }

  #look(key: string): void {
    if (!this.#synced || this.#ending.signal.aborted) return;
    const matter = this.#matters.get(key);
    if (matter?.state === 'running') matter.state = 'running-again';
    if (matter && matter.state !== 'waiting') return;
    matter?.cancel?.();
    void this.#settle(key, matter?.failures ?? 0);
  }

  async #settle(key: string, failures: number): Promise<void> {
    const matter: Matter = { state: 'running', failures, cancel: undefined };
    this.#matters.set(key, matter);
    try {
      do {
        matter.state = 'running';
        await this.#requests.run(() => this.#reconcile(key), { signal: this.#ending.signal });
        matter.failures = 0;
        // `#look` may have changed it meanwhile, which the compiler cannot see.
      } while ((matter.state as string) === 'running-again');
      this.#matters.delete(key);
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      this.#retryLater(key, matter, error);
    }
  }

  #retryLater(key: string, matter: Matter, error: unknown): void {
    const wait = Math.min(firstRetryMs * 2 ** Math.min(matter.failures, 10), longestRetryMs);
    if (matter.failures++ === 0) {
      this.#logger.warn('The mirror of a static pod cannot be kept; the pod itself runs on', {
        pod: key,
        error: String(error),
      });
    }
    matter.state = 'waiting';
    matter.cancel = this.#options.clock.after(wait, () => this.#look(key));
  }

  /** Makes what there is under this name what there should be, in at most one deletion and one creation. */
  async #reconcile(key: string): Promise<void> {
    const { objects, pods, nodeUid } = this.#options;
    const held = pods.named(key);
    const object = objects.get(key);
    const mirror = object && isMirrorPod(object) ? object : undefined;
    if (!held || !isStaticPod(held.pod)) {
      if (mirror && pods.ready) await this.#delete(mirror, 'its static pod is gone');
      return;
    }
    const { pod, intent } = held;
    // A pod on its way out keeps the mirror it has, for whoever watches it end.
    if (intent.kind === 'terminate') return;
    if (mirror) {
      const isCurrent = isMirrorOf(mirror, pod, nodeUid());
      if (isCurrent && mirror.metadata.deletionTimestamp === undefined) return;
      await this.#delete(mirror, isCurrent ? 'somebody has deleted it' : 'it is that of another version');
    } else if (object) {
      this.#logger.v(2, 'A pod of the API server has the name of a static pod; there is no mirror', {
        pod: key,
      });
      return;
    }
    await this.#create(pod);
  }

  async #create(pod: Pod): Promise<void> {
    const { api, objects, nodeName, nodeUid, onMade } = this.#options;
    const uid = nodeUid();
    // The mirror has to have an owner; registering the node looks here again.
    if (uid === undefined) return;
    const made = await api.request<PodObject | undefined>({
      method: 'POST',
      path: `/api/v1/namespaces/${pod.metadata.namespace}/pods`,
      body: mirrorOf(pod, { name: nodeName, uid }),
      priority: 'status',
      signal: this.#ending.signal,
    });
    this.#logger.v(2, 'Made the mirror of a static pod', { pod: podKey(pod), podUID: pod.metadata.uid });
    if (!made?.metadata?.uid) return;
    objects.learn(made);
    onMade?.(made);
  }

  async #delete(mirror: PodObject, reason: string): Promise<void> {
    const { api, objects } = this.#options;
    const { name, namespace, uid } = mirror.metadata;
    try {
      await api.request({
        method: 'DELETE',
        path: `/api/v1/namespaces/${namespace}/pods/${name}`,
        body: { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, preconditions: { uid } },
        priority: 'status',
        signal: this.#ending.signal,
      });
    } catch (error) {
      if (!(error instanceof ApiError) || !error.notFound) throw error;
    }
    this.#logger.v(2, 'Deleted the mirror of a static pod', { pod: podKey(mirror), reason });
    objects.forget(mirror);
  }
}
