/**
 * What pods leave behind, cleared away once a minute: surplus dead containers, directories and logs of pods
 * that nobody knows any more, dead links to logs. Each kind is cleared whatever becomes of the others, and
 * nothing is decided from half a picture: a runtime that does not answer, or a source that has not been
 * heard, means that things stay.
 */
import { type Clock, sleep } from '../../concurrency/clock.ts';
import type { EventRecorder } from '../../telemetry/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Gauge, Metrics } from '../../telemetry/metrics.ts';
import type { ContainerRuntime } from '../container-runtime.ts';
import type { ObservedContainer } from '../observed-pod.ts';
import {
  type DeadContainerRules,
  type PodInstances,
  type SurplusContainer,
  surplusDeadContainers,
} from './dead-containers.ts';
import { removeDeadLinks } from './dead-links.ts';
import { releaseOrphanedVolumes } from './orphaned-volumes.ts';
import { decideOrphans, type PodFiles } from './orphans.ts';

export interface PodGarbageOptions {
  readonly runtime: Pick<ContainerRuntime, 'listPodSandbox' | 'listContainers'>;
  readonly rules: DeadContainerRules;
  /** The pods that are looked after, with every instance the runtime has of them. */
  readonly instances: () => readonly PodInstances<ObservedContainer>[];
  /** Removes one dead container with its log and link. */
  readonly removeContainer: (
    surplus: SurplusContainer<ObservedContainer>,
    signal: AbortSignal,
  ) => Promise<void>;
  /** Uids of the pods that sources want; undefined until every source has been heard. */
  readonly desired: () => ReadonlySet<string> | undefined;
  readonly isLookedAfter: (uid: string) => boolean;
  readonly directories: {
    podDirectory(uid: string): string;
    podsOnDisk(): Promise<readonly PodFiles[]>;
    eraseOrphan(uid: string): Promise<void>;
  };
  readonly volumes: { tearDown(uid: string, signal: AbortSignal): Promise<void> };
  readonly podLogsDirectory: string;
  readonly containerLogsDirectory: string;
  /** Label under which the runtime keeps a pod's uid. */
  readonly podUidLabel: string;
  readonly nodeName: string;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
}

const everyMs = 60_000;

/** Looks once a minute for dead containers beyond what is kept, and for what gone pods have left. */
export class PodGarbage {
  readonly #options: PodGarbageOptions;
  readonly #cleaned: Gauge;
  readonly #failed: Gauge;
  #since: ReadonlyMap<string, number> = new Map();
  /** Trouble that has been told; told again only when it changes. */
  readonly #told = new Map<string, string>();

  constructor(options: PodGarbageOptions) {
    this.#options = options;
    const { metrics } = options;
    this.#cleaned = metrics.gauge({
      name: 'kubelet_orphan_pod_cleaned_volumes',
      help: '[ALPHA] Pods nobody knows whose volumes the last round has cleared away.',
    });
    this.#failed = metrics.gauge({
      name: 'kubelet_orphan_pod_cleaned_volumes_errors',
      help: '[ALPHA] Pods nobody knows whose volumes the last round could not clear away.',
    });
  }

  /** Collects once a minute until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#options.clock, everyMs, signal).catch(() => {});
      if (!signal.aborted) await this.collect(signal);
    }
  }

  /** One round. Never rejects; trouble is told in the log, and containers' in an event. */
  async collect(signal: AbortSignal): Promise<void> {
    const { events, nodeName } = this.#options;
    await this.#attempt(
      'containers',
      signal,
      () => this.#removeContainers(signal),
      (message) => {
        events.event({ kind: 'Node', name: nodeName }, 'Warning', 'ContainerGCFailed', message);
      },
    );
    await this.#attempt('files', signal, () => this.#removeFiles(signal));
  }

  async #removeContainers(signal: AbortSignal): Promise<void> {
    const { rules, instances, removeContainer, clock, logger } = this.#options;
    const errors: Error[] = [];
    for (const surplus of surplusDeadContainers(instances(), rules, clock.now())) {
      signal.throwIfAborted();
      const { podUid, container } = surplus;
      try {
        await removeContainer(surplus, signal);
        logger.v(2, 'Removed a dead container', { podUID: podUid, containerName: container.name });
      } catch (error) {
        errors.push(error as Error);
      }
    }
    if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('; '));
  }

  async #removeFiles(signal: AbortSignal): Promise<void> {
    const { runtime, directories, desired, isLookedAfter, podUidLabel, clock, logger } = this.#options;
    // Files first: a pod that comes now has no file yet in this list.
    const onDisk = await directories.podsOnDisk();
    const [{ items }, { containers }] = await Promise.all([
      runtime.listPodSandbox({ filter: undefined }, { signal }),
      runtime.listContainers({ filter: undefined }, { signal }),
    ]);
    const uids = [...items, ...containers].map(({ labels }) => labels[podUidLabel] ?? '');
    const inRuntime = new Set(uids);
    const view = { onDisk, desired: desired(), isLookedAfter, inRuntime, since: this.#since };
    const { erase, since } = decideOrphans(view, clock.now());
    this.#since = since;
    let cleaned = 0;
    let failed = 0;
    for (const uid of erase) {
      signal.throwIfAborted();
      // Others were erased meanwhile, which may have taken long.
      if (isLookedAfter(uid) || desired()?.has(uid) !== false) continue;
      const erase = async () => {
        await this.#erase(uid, signal);
        cleaned++;
        logger.info('Removed what was left of a pod that nobody knows any more', { podUID: uid });
      };
      await this.#attempt(`orphan ${uid}`, signal, erase, () => failed++);
    }
    this.#cleaned.set(cleaned);
    this.#failed.set(failed);
    const ids = new Set(containers.map(({ id }) => id));
    await removeDeadLinks({
      ...this.#options,
      isKnownContainer: (id) => ids.has(id),
      isKnownPod: (uid) => inRuntime.has(uid),
    });
  }

  async #erase(uid: string, signal: AbortSignal): Promise<void> {
    const { directories, volumes } = this.#options;
    await releaseOrphanedVolumes(directories.podDirectory(uid), uid, signal);
    await volumes.tearDown(uid, signal);
    await directories.eraseOrphan(uid);
  }

  async #attempt(
    what: string,
    signal: AbortSignal,
    work: () => Promise<void>,
    onFailure?: (message: string) => void,
  ): Promise<void> {
    try {
      await work();
      this.#told.delete(what);
    } catch (error) {
      if (signal.aborted) return;
      const { message } = error as Error;
      onFailure?.(message);
      if (this.#told.get(what) === message) return;
      this.#told.set(what, message);
      this.#options.logger.error('Clearing away what pods left behind failed; trying again', error, { what });
    }
  }
}
