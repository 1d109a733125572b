/**
 * What the runtime shows of every pod, kept up to date by change and not by polling.
 *
 * Three things teach it: answers to the agent's own actions (the `refresh…` calls), the runtime's events,
 * and a full relist at start, after a gap in the events, and slowly ever after. A relist asks in detail
 * only about what has changed. What they teach is kept in {@link RuntimeKnowledge}.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import { Limiter } from '../concurrency/limiter.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { runtimeLabels } from '../kubernetes/pod-identity.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { ContainerRuntime } from './container-runtime.ts';
import type { ObservedContainer, ObservedPod } from './observed-pod.ts';
import { RelistMetrics } from './relist-metrics.ts';
import { isNotFound } from './runtime-call-error.ts';
import type { RuntimeEvent, RuntimeEventSource } from './runtime-event.ts';
import { type PodName, RuntimeKnowledge } from './runtime-knowledge.ts';
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

/** What the runtime has, pod by pod, as events, own actions and relists have shown it. */
export class RuntimeObserver {
  readonly #options: RuntimeObserverOptions;
  readonly #metrics: RelistMetrics | undefined;
  readonly #known: RuntimeKnowledge;
  readonly #relists = new SingleFlight<void>();
  /** Details are asked for a few at a time: a runtime answers no faster when it is flooded. */
  readonly #details = new Limiter(8);
  /** Whose end was told and does not show yet. */
  readonly #ending = new Set<string>();
  #lastRelist: number | undefined;
  #wakeRelist: (() => void) | undefined;

  constructor(options: RuntimeObserverOptions) {
    this.#options = options;
    this.#known = new RuntimeKnowledge(options.onChange);
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
    return this.#known.pod(uid);
  }

  /** Uids of all pods the runtime has anything of. */
  pods(): readonly string[] {
    return this.#known.pods();
  }

  /** Ids of every container that is known. */
  containers(): Iterable<string> {
    return this.#known.containers();
  }

  /** Name, labels and annotations of a pod as the runtime has them. */
  identity(uid: string): PodName | undefined {
    return this.#known.identity(uid);
  }

  /** The pod a container or sandbox belongs to. */
  podOf(id: string): string | undefined {
    return this.#known.podOf(id);
  }

  /** Asks for one container; `sandboxId` saves a call when the container is new. */
  async refreshContainer(
    id: string,
    options: { sandboxId?: string; signal?: AbortSignal } = {},
  ): Promise<void> {
    const { signal } = options;
    const askedAt = this.#known.ask();
    try {
      const { status } = await this.#options.runtime.containerStatus(
        { containerId: id, verbose: false },
        { signal },
      );
      const podUid = status?.labels[runtimeLabels.podUid];
      if (!status || !podUid) return;
      const sandboxId =
        options.sandboxId ?? this.#known.container(id)?.sandboxId ?? (await this.#sandboxOf(id, signal));
      if (sandboxId === undefined) return;
      const value = observeContainer(status, sandboxId);
      this.#known.learnContainer({ podUid, value, learnedAt: askedAt, labels: status.labels });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#known.forgetContainer(id);
    } finally {
      this.#known.answered(askedAt);
    }
  }

  /** Takes what the agent itself has just made, without asking for it. */
  learnContainer(podUid: string, container: ObservedContainer): void {
    this.#known.learnContainer({ podUid, value: container, learnedAt: this.#known.moment() });
  }

  /** Takes it that the runtime has removed a sandbox, and with it every container in it. */
  removedSandbox(id: string): void {
    this.#known.forgetSandboxWithContainers(id);
  }

  removedContainer(id: string): void {
    this.#known.forgetContainer(id);
  }

  /** The status of a container does not tell its sandbox; the list does. */
  async #sandboxOf(containerId: string, signal?: AbortSignal): Promise<string | undefined> {
    const filter = { id: containerId, podSandboxId: '', state: undefined, labelSelector: {} };
    const { containers } = await this.#options.runtime.listContainers({ filter }, { signal });
    return containers[0]?.podSandboxId;
  }

  async refreshSandbox(id: string, signal?: AbortSignal): Promise<void> {
    const askedAt = this.#known.ask();
    try {
      const { status } = await this.#options.runtime.podSandboxStatus(
        { podSandboxId: id, verbose: false },
        { signal },
      );
      const podUid = status?.labels[runtimeLabels.podUid];
      if (!status || !podUid) return;
      const { labels, annotations } = status;
      this.#known.learnSandbox({
        podUid,
        value: observeSandbox(status),
        learnedAt: askedAt,
        labels,
        annotations,
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#known.forgetSandbox(id);
    } finally {
      this.#known.answered(askedAt);
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
    const askedAt = this.#known.moment();
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
    const ids = (seen: readonly { id: string }[]) => new Set(seen.map(({ id }) => id));
    this.#known.forgetUnlisted(
      { sandboxes: ids(sandboxesSeen), containers: ids(containersSeen) },
      askedAt,
      uid,
    );
    await Promise.all([
      ...sandboxesSeen
        .filter(({ id, state }) => this.#known.sandboxDiffers({ id, state: sandboxState(state) }, askedAt))
        .map(({ id }) => this.#details.run(() => this.refreshSandbox(id, signal), { signal })),
      ...containersSeen
        .filter(({ id, state }) =>
          this.#known.containerDiffers({ id, state: containerState(state) }, askedAt),
        )
        .map(({ id, podSandboxId }) =>
          this.#details.run(() => this.refreshContainer(id, { sandboxId: podSandboxId, signal }), { signal }),
        ),
    ]);
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
        const seen = this.#known.container(id) ?? this.#known.sandbox(id);
        if (!seen || seen.state === 'Exited' || seen.state === 'NotReady') return;
        await sleep(this.#options.clock, waitMs, signal);
        waited += waitMs;
      }
    } finally {
      this.#ending.delete(id);
    }
  }

  #refresh(id: string, signal: AbortSignal): Promise<void> {
    return this.#known.sandbox(id) ? this.refreshSandbox(id, signal) : this.refreshContainer(id, { signal });
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
}
