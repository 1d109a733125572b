/**
 * What the runtime shows of every pod, kept up to date by change and not by polling.
 *
 * Three things teach it: answers to the agent's own actions (the `refresh…` calls), the runtime's events,
 * and a full relist at start, after a gap in the events, and slowly ever after. A relist asks in detail
 * only about what has changed. Answers that were overtaken by newer knowledge are dropped.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import { Limiter } from '../concurrency/limiter.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { runtimeLabels } from '../kubernetes/pod-identity.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { ContainerRuntime } from './container-runtime.ts';
import type { Container, PodSandbox } from './generated/cri.ts';
import type { ObservedContainer, ObservedPod, ObservedSandbox } from './observed-pod.ts';
import { RelistMetrics } from './relist-metrics.ts';
import { isNotFound } from './runtime-call-error.ts';
import type { RuntimeEvent, RuntimeEventSource } from './runtime-event.ts';
import { containerState, observeContainer, observeSandbox, sandboxState } from './translation/observation.ts';

export interface RuntimeObserverOptions {
  readonly runtime: ContainerRuntime;
  readonly events: RuntimeEventSource | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with the pod's uid whenever something about the pod has changed. */
  readonly onChange: (uid: string) => void;
  readonly metrics?: Metrics;
  /** Called with the container's id when the kernel killed something in its memory cgroup. */
  readonly onOom?: (containerId: string) => void;
  /** The runtime has been seen whole. */
  readonly onRelisted?: () => void;
}

/** The safety net's mesh: wide where events tell of every exit, narrow where nothing does. */
const relistEveryMs = { withEvents: 60_000, withoutEvents: 1000, afterFailure: 1000 };

/** How long an end that was told is looked for; after that the relist finds it. */
const followEndMs = 20_000;

type PodName = Pick<ObservedPod, 'uid' | 'name' | 'namespace'> & {
  /** Annotations of the newest sandbox: whose pod it is. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
};

interface Known<T> {
  readonly podUid: string;
  readonly value: T;
  /** Counts up with everything learned; tells old news from new. */
  readonly learnedAt: number;
}

type Lived = Pick<ObservedContainer | ObservedSandbox, 'state'>;

const stages = { Created: 0, Ready: 1, Unknown: 1, Running: 1, Exited: 2, NotReady: 2 } as const;
const stage = ({ state }: Lived) => stages[state];

/** What the runtime has, pod by pod, as events, own actions and relists have shown it. */
export class RuntimeObserver {
  readonly #options: RuntimeObserverOptions;
  readonly #metrics: RelistMetrics | undefined;
  readonly #sandboxes = new Map<string, Known<ObservedSandbox>>();
  readonly #containers = new Map<string, Known<ObservedContainer>>();
  readonly #names = new Map<string, PodName>();
  readonly #snapshots = new Map<string, ObservedPod>();
  readonly #idsOfPod = new Map<string, Set<string>>();
  readonly #relists = new SingleFlight<void>();
  /** Details are asked for a few at a time: a runtime answers no faster when it is flooded. */
  readonly #details = new Limiter(8);
  /** Questions that are on their way, by when they were asked, oldest first. */
  readonly #asking = new Set<number>();
  /** When ids were found gone, as long as an older answer may still come and tell of them. */
  readonly #gone = new Map<string, number>();
  /** Whose end was told and does not show yet. */
  readonly #ending = new Set<string>();
  #sequence = 0;
  #lastRelist: number | undefined;
  #wakeRelist: (() => void) | undefined;

  constructor(options: RuntimeObserverOptions) {
    this.#options = options;
    this.#metrics = options.metrics && new RelistMetrics(options.metrics);
  }

  /** When the runtime was last seen whole, epoch milliseconds. */
  get lastRelist(): number | undefined {
    return this.#lastRelist;
  }

  /** Follows events and relists until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { events } = this.#options;
    const following = events?.run((event) => this.#onEvent(event, signal), signal);
    await Promise.all([following, this.#relistSteadily(signal)]);
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

  /** The pod a container or sandbox belongs to. */
  podOf(id: string): string | undefined {
    return (this.#containers.get(id) ?? this.#sandboxes.get(id))?.podUid;
  }

  /** Asks for one container; `sandboxId` saves a call when the container is new. */
  async refreshContainer(
    id: string,
    options: { sandboxId?: string; signal?: AbortSignal } = {},
  ): Promise<void> {
    const { signal } = options;
    const askedAt = this.#ask();
    try {
      const { status } = await this.#options.runtime.containerStatus(
        { containerId: id, verbose: false },
        { signal },
      );
      const podUid = status?.labels[runtimeLabels.podUid];
      if (!status || !podUid) return;
      const sandboxId =
        options.sandboxId ?? this.#containers.get(id)?.value.sandboxId ?? (await this.#sandboxOf(id, signal));
      if (sandboxId === undefined) return;
      const news = { podUid, value: observeContainer(status, sandboxId), learnedAt: askedAt };
      if (!this.#isNews(this.#containers, id, news)) return;
      this.#learnName(podUid, status.labels);
      this.#learn(this.#containers, id, news);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#forget(this.#containers, id);
    } finally {
      this.#answered(askedAt);
    }
  }

  /** Takes what the agent itself has just made, without asking for it. */
  learnContainer(podUid: string, container: ObservedContainer): void {
    this.#learn(this.#containers, container.id, { podUid, value: container, learnedAt: ++this.#sequence });
  }

  /** Takes it that the runtime has removed a sandbox, and with it every container in it. */
  removedSandbox(id: string): void {
    for (const [containerId, { value }] of this.#containers) {
      if (value.sandboxId === id) this.#forget(this.#containers, containerId);
    }
    this.#forget(this.#sandboxes, id);
  }

  removedContainer(id: string): void {
    this.#forget(this.#containers, id);
  }

  #ask(): number {
    const askedAt = ++this.#sequence;
    this.#asking.add(askedAt);
    return askedAt;
  }

  #answered(askedAt: number): void {
    this.#asking.delete(askedAt);
    const [oldest = Number.POSITIVE_INFINITY] = this.#asking;
    for (const [id, goneAt] of this.#gone) {
      if (goneAt > oldest) return;
      this.#gone.delete(id);
    }
  }

  /** The status of a container does not tell its sandbox; the list does. */
  async #sandboxOf(containerId: string, signal?: AbortSignal): Promise<string | undefined> {
    const filter = { id: containerId, podSandboxId: '', state: undefined, labelSelector: {} };
    const { containers } = await this.#options.runtime.listContainers({ filter }, { signal });
    return containers[0]?.podSandboxId;
  }

  async refreshSandbox(id: string, signal?: AbortSignal): Promise<void> {
    const askedAt = this.#ask();
    try {
      const { status } = await this.#options.runtime.podSandboxStatus(
        { podSandboxId: id, verbose: false },
        { signal },
      );
      const podUid = status?.labels[runtimeLabels.podUid];
      if (!status || !podUid) return;
      const news = { podUid, value: observeSandbox(status), learnedAt: askedAt };
      if (!this.#isNews(this.#sandboxes, id, news)) return;
      this.#learnName(podUid, status.labels, status.annotations);
      this.#learn(this.#sandboxes, id, news);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#forget(this.#sandboxes, id);
    } finally {
      this.#answered(askedAt);
    }
  }

  /** Looks at one pod anew, whatever was known: after an answer that never came. */
  async refreshPod(uid: string, signal?: AbortSignal): Promise<void> {
    const began = this.#options.clock.now();
    await this.#list({ [runtimeLabels.podUid]: uid }, signal, uid);
    this.#metrics?.podLooked(began, this.#options.clock.now());
  }

  /** Looks at everything; calls that come while one runs share it. */
  relist(signal?: AbortSignal): Promise<void> {
    return this.#relists.run('all', async () => {
      const { clock } = this.#options;
      const began = clock.now();
      this.#metrics?.relistBegins(began, this.#lastRelist);
      await this.#list({}, signal);
      this.#lastRelist = clock.now();
      this.#metrics?.relistEnds(began, this.#lastRelist);
      this.#options.onRelisted?.();
    });
  }

  async #list(labelSelector: Record<string, string>, signal?: AbortSignal, uid?: string): Promise<void> {
    const { runtime } = this.#options;
    const askedAt = ++this.#sequence;
    const [sandboxes, containers] = await Promise.all([
      runtime.listPodSandbox({ filter: { id: '', state: undefined, labelSelector } }, { signal }),
      runtime.listContainers(
        { filter: { id: '', podSandboxId: '', state: undefined, labelSelector } },
        { signal },
      ),
    ]);
    const ours = (listed: { labels: Record<string, string> }) =>
      listed.labels[runtimeLabels.podUid] !== undefined;
    const sandboxesSeen = sandboxes.items.filter(ours);
    const containersSeen = containers.containers.filter(ours);
    const gone = <T>(known: Map<string, Known<T>>, seen: readonly { id: string }[]) => {
      const ids = new Set(seen.map(({ id }) => id));
      for (const [id, { podUid }] of known) {
        if (!ids.has(id) && (uid === undefined || podUid === uid)) this.#forget(known, id, askedAt);
      }
    };
    gone(this.#sandboxes, sandboxesSeen);
    gone(this.#containers, containersSeen);
    await Promise.all([
      ...sandboxesSeen
        .filter((sandbox) => this.#sandboxChanged(sandbox, askedAt))
        .map(({ id }) => this.#details.run(() => this.refreshSandbox(id, signal), { signal })),
      ...containersSeen
        .filter((container) => this.#containerChanged(container, askedAt))
        .map(({ id, podSandboxId }) =>
          this.#details.run(() => this.refreshContainer(id, { sandboxId: podSandboxId, signal }), { signal }),
        ),
    ]);
  }

  #sandboxChanged(listed: PodSandbox, askedAt: number): boolean {
    const known = this.#sandboxes.get(listed.id);
    return !known || (known.learnedAt < askedAt && known.value.state !== sandboxState(listed.state));
  }

  #containerChanged(listed: Container, askedAt: number): boolean {
    const known = this.#containers.get(listed.id);
    return !known || (known.learnedAt < askedAt && known.value.state !== containerState(listed.state));
  }

  #onEvent(event: RuntimeEvent, signal: AbortSignal): void {
    if (event.kind === 'gap') {
      this.#wakeRelist?.();
      return;
    }
    if (event.kind === 'oom') this.#options.onOom?.(event.id);
    // What the agent starts and removes itself it knows from the answer; only ends come unasked.
    if (event.kind === 'changed' && !this.#ending.has(event.id)) return;
    const followed =
      event.kind === 'exited' ? this.#followEnd(event.id, signal) : this.#refresh(event.id, signal);
    followed.catch((error: unknown) => {
      if (signal.aborted) return;
      this.#options.logger.error('Looking at what has ended failed; a relist follows', error, {
        id: event.id,
      });
      this.#wakeRelist?.();
    });
  }

  /**
   * Looks until the end shows. The event tells of it when the process is gone, and the runtime's own books
   * may be a moment behind.
   */
  async #followEnd(id: string, signal: AbortSignal): Promise<void> {
    if (this.#ending.has(id)) return;
    this.#ending.add(id);
    try {
      for (let waitMs = 5, waited = 0; waited < followEndMs; waitMs = Math.min(2 * waitMs, 500)) {
        await this.#refresh(id, signal);
        const seen = this.#containers.get(id)?.value ?? this.#sandboxes.get(id)?.value;
        if (!seen || seen.state === 'Exited' || seen.state === 'NotReady') return;
        await sleep(this.#options.clock, waitMs, signal);
        waited += waitMs;
      }
    } finally {
      this.#ending.delete(id);
    }
  }

  #refresh(id: string, signal: AbortSignal): Promise<void> {
    return this.#sandboxes.has(id) ? this.refreshSandbox(id, signal) : this.refreshContainer(id, { signal });
  }

  async #relistSteadily(signal: AbortSignal): Promise<void> {
    const { clock, events, logger } = this.#options;
    while (!signal.aborted) {
      const wait = new AbortController();
      let asked = false;
      this.#wakeRelist = () => {
        asked = true;
        wait.abort();
      };
      try {
        await this.relist(signal);
      } catch (error) {
        if (signal.aborted) return;
        logger.error('Relisting the runtime failed; trying again', error);
        // Whoever asks meanwhile waits too: gaps must not make a hot loop of a runtime that is down.
        await sleep(clock, relistEveryMs.afterFailure, signal).catch(() => {});
        continue;
      }
      if (asked) continue;
      const every = events?.flowing ? relistEveryMs.withEvents : relistEveryMs.withoutEvents;
      await sleep(clock, every, AbortSignal.any([signal, wait.signal])).catch(() => {});
    }
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

  /**
   * Answers may overtake each other. The one asked for last counts, unless an older one saw more of a life
   * that only ever goes forward: an end must not be unlearned, least of all that an object is gone.
   */
  #isNews<T extends Lived>(known: ReadonlyMap<string, Known<T>>, id: string, news: Known<T>): boolean {
    if (this.#gone.has(id)) return false;
    const before = known.get(id);
    return !before || before.learnedAt <= news.learnedAt || stage(news.value) > stage(before.value);
  }

  #learn<T extends Lived>(known: Map<string, Known<T>>, id: string, news: Known<T>): void {
    const before = known.get(id);
    known.set(id, news);
    let ids = this.#idsOfPod.get(news.podUid);
    if (!ids) this.#idsOfPod.set(news.podUid, (ids = new Set()));
    ids.add(id);
    if (!before || JSON.stringify(before.value) !== JSON.stringify(news.value)) this.#changed(news.podUid);
  }

  /** Ids are never used twice: what the runtime denies is gone; what a list lacks may be newer than it. */
  #forget<T>(known: Map<string, Known<T>>, id: string, askedAt = Number.POSITIVE_INFINITY): void {
    const before = known.get(id);
    if (before && before.learnedAt > askedAt) return;
    if (this.#asking.size > 0) this.#gone.set(id, ++this.#sequence);
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
    this.#options.onChange(uid);
  }

  *#of<T>(uid: string, known: Map<string, Known<T>>): Generator<T> {
    for (const id of this.#idsOfPod.get(uid) ?? []) {
      const item = known.get(id);
      if (item) yield item.value;
    }
  }
}
