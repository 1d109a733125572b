/**
 * What is known of the runtime's sandboxes and containers, pod by pod. Bookkeeping only: asks nothing, waits
 * for nothing.
 *
 * Guarantees: an answer that was overtaken by newer knowledge changes nothing; what is gone stays gone,
 * whatever late answers say; nothing is kept of a pod that the runtime has nothing of.
 */
import { runtimeLabels } from '../kubernetes/pod-identity.ts';
import type { ObservedContainer, ObservedPod, ObservedSandbox } from './observed-pod.ts';

/** A pod as the runtime's labels name it. */
export type PodName = Pick<ObservedPod, 'uid' | 'name' | 'namespace'> & {
  /** Annotations of the newest sandbox: whose pod it is. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
};

/** Something the runtime was seen to have. */
interface Known<T> {
  readonly podUid: string;
  readonly value: T;
  /** When it was asked for, by {@link RuntimeKnowledge.moment}; tells old news from new. */
  readonly learnedAt: number;
}

/** What was learned, with the labels and annotations that name its pod, where they were seen. */
export interface News<T> extends Known<T> {
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
}

type Lived = Pick<ObservedContainer | ObservedSandbox, 'id' | 'state'>;

const stages = { Created: 0, Ready: 1, Unknown: 1, Running: 1, Exited: 2, NotReady: 2 } as const;
const stage = ({ state }: Lived) => stages[state];

export class RuntimeKnowledge {
  readonly #onChange: (uid: string) => void;
  readonly #sandboxes = new Map<string, Known<ObservedSandbox>>();
  readonly #containers = new Map<string, Known<ObservedContainer>>();
  readonly #names = new Map<string, PodName>();
  readonly #snapshots = new Map<string, ObservedPod>();
  readonly #idsOfPod = new Map<string, Set<string>>();
  /** Questions that are on their way, by when they were asked, oldest first. */
  readonly #asking = new Set<number>();
  /** When ids were found gone, as long as an older answer may still come and tell of them. */
  readonly #gone = new Map<string, number>();
  #moment = 0;

  /** `onChange` is called with the pod's uid whenever something about the pod has changed. */
  constructor(onChange: (uid: string) => void) {
    this.#onChange = onChange;
  }

  pod(uid: string): ObservedPod {
    const known = this.#snapshots.get(uid);
    if (known) return known;
    const name = this.#names.get(uid);
    const snapshot: ObservedPod = {
      uid,
      name: name?.name ?? '',
      namespace: name?.namespace ?? '',
      sandboxes: [...this.#of(uid, this.#sandboxes)].sort((a, b) => b.createdAt - a.createdAt),
      containers: [...this.#of(uid, this.#containers)].sort((a, b) => b.createdAt - a.createdAt),
    };
    // Of a pod the runtime has nothing of, nothing is kept either.
    if (this.#idsOfPod.has(uid)) this.#snapshots.set(uid, snapshot);
    return snapshot;
  }

  /** Uids of all pods the runtime has anything of. */
  pods(): readonly string[] {
    return [...this.#idsOfPod.keys()];
  }

  /** Ids of every container that is known. */
  containers(): Iterable<string> {
    return this.#containers.keys();
  }

  /** Name, labels and annotations of a pod as the runtime has them. */
  identity(uid: string): PodName | undefined {
    return this.#names.get(uid);
  }

  container(id: string): ObservedContainer | undefined {
    return this.#containers.get(id)?.value;
  }

  sandbox(id: string): ObservedSandbox | undefined {
    return this.#sandboxes.get(id)?.value;
  }

  /** The pod a container or sandbox belongs to. */
  podOf(id: string): string | undefined {
    return (this.#containers.get(id) ?? this.#sandboxes.get(id))?.podUid;
  }

  /** A number greater than all before: stamps knowledge, so that old and new can be told apart. */
  moment(): number {
    return ++this.#moment;
  }

  /** A question goes out; its answer counts as of now. {@link answered} must follow, however it ends. */
  ask(): number {
    const askedAt = this.moment();
    this.#asking.add(askedAt);
    return askedAt;
  }

  answered(askedAt: number): void {
    this.#asking.delete(askedAt);
    const [oldest = Number.POSITIVE_INFINITY] = this.#asking;
    for (const [id, goneAt] of this.#gone) {
      if (goneAt > oldest) return;
      this.#gone.delete(id);
    }
  }

  learnSandbox(news: News<ObservedSandbox>): void {
    this.#learn(this.#sandboxes, news);
  }

  learnContainer(news: News<ObservedContainer>): void {
    this.#learn(this.#containers, news);
  }

  /** Whether a list that was asked for at `askedAt` shows a sandbox otherwise than it is known. */
  sandboxDiffers({ id, state }: Pick<ObservedSandbox, 'id' | 'state'>, askedAt: number): boolean {
    const known = this.#sandboxes.get(id);
    return !known || (known.learnedAt < askedAt && known.value.state !== state);
  }

  containerDiffers({ id, state }: Pick<ObservedContainer, 'id' | 'state'>, askedAt: number): boolean {
    const known = this.#containers.get(id);
    return !known || (known.learnedAt < askedAt && known.value.state !== state);
  }

  forgetSandbox(id: string): void {
    this.#forget(this.#sandboxes, id);
  }

  forgetContainer(id: string): void {
    this.#forget(this.#containers, id);
  }

  /** The runtime removes a sandbox with every container in it. */
  forgetSandboxWithContainers(id: string): void {
    for (const [containerId, { value }] of this.#containers) {
      if (value.sandboxId === id) this.#forget(this.#containers, containerId);
    }
    this.#forget(this.#sandboxes, id);
  }

  /** Forgets what lists that were asked for at `askedAt` do not name; with `uid`, of that pod alone. */
  forgetUnlisted(
    listed: { readonly sandboxes: ReadonlySet<string>; readonly containers: ReadonlySet<string> },
    askedAt: number,
    uid?: string,
  ): void {
    const forget = <T>(known: Map<string, Known<T>>, ids: ReadonlySet<string>) => {
      for (const [id, { podUid }] of known) {
        if (!ids.has(id) && (uid === undefined || podUid === uid)) this.#forget(known, id, askedAt);
      }
    };
    forget(this.#sandboxes, listed.sandboxes);
    forget(this.#containers, listed.containers);
  }

  #learn<T extends Lived>(known: Map<string, Known<T>>, { labels, annotations, ...news }: News<T>): void {
    const { podUid, value } = news;
    if (!this.#isNews(known, news)) return;
    if (labels) this.#learnName(podUid, labels, annotations);
    const before = known.get(value.id);
    known.set(value.id, news);
    let ids = this.#idsOfPod.get(podUid);
    if (!ids) this.#idsOfPod.set(podUid, (ids = new Set()));
    ids.add(value.id);
    if (!before || JSON.stringify(before.value) !== JSON.stringify(value)) this.#changed(podUid);
  }

  /**
   * Answers may overtake each other. The one asked for last counts, unless an older one saw more of a life
   * that only ever goes forward: an end must not be unlearned, least of all that an object is gone.
   */
  #isNews<T extends Lived>(known: ReadonlyMap<string, Known<T>>, news: Known<T>): boolean {
    const { id } = news.value;
    if (this.#gone.has(id)) return false;
    const before = known.get(id);
    return !before || before.learnedAt <= news.learnedAt || stage(news.value) > stage(before.value);
  }

  #learnName(uid: string, labels: Record<string, string>, annotations?: Record<string, string>): void {
    const known = this.#names.get(uid);
    if (known && !annotations) return;
    this.#names.set(uid, {
      uid,
      name: labels[runtimeLabels.podName] ?? '',
      namespace: labels[runtimeLabels.podNamespace] ?? '',
      labels: annotations ? labels : {},
      annotations: annotations ?? {},
    });
  }

  /** Ids are never used twice: what the runtime denies is gone; what a list lacks may be newer than it. */
  #forget<T>(known: Map<string, Known<T>>, id: string, askedAt = Number.POSITIVE_INFINITY): void {
    const before = known.get(id);
    if (before && before.learnedAt > askedAt) return;
    if (this.#asking.size > 0) this.#gone.set(id, this.moment());
    if (!before) return;
    known.delete(id);
    const ids = this.#idsOfPod.get(before.podUid);
    ids?.delete(id);
    if (ids?.size === 0) {
      this.#idsOfPod.delete(before.podUid);
      this.#names.delete(before.podUid);
    }
    this.#changed(before.podUid);
    if (!this.#idsOfPod.has(before.podUid)) this.#snapshots.delete(before.podUid);
  }

  #changed(uid: string): void {
    this.#snapshots.delete(uid);
    this.#onChange(uid);
  }

  *#of<T>(uid: string, known: Map<string, Known<T>>): Generator<T> {
    for (const id of this.#idsOfPod.get(uid) ?? []) {
      const item = known.get(id);
      if (item) yield item.value;
    }
  }
}
