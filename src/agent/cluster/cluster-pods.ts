/** Pods between node and cluster: which ones the cluster wants here, and what it is told of all of them. */
import type { ApiClient } from '../../client/api-client.ts';
import type { ReflectorFactory } from '../../client/reflector.ts';
import type { Clock } from '../../concurrency/clock.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { recordedEnd } from '../../pods/api-state.ts';
import type { PodReport } from '../../pods/pod-worker-ports.ts';
import { MirrorPods } from '../../pods/report/mirror-pods.ts';
import { PodObjects } from '../../pods/report/pod-objects.ts';
import { StatusReporter } from '../../pods/report/status-reporter.ts';
import { ApiSource } from '../../sources/api-source.ts';
import type { DesiredChange } from '../../sources/desired-pods.ts';
import type { PodSource } from '../../sources/pod-source.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { AttachedRooms, PodMembership } from './membership.ts';

export interface ClusterPodsOptions {
  readonly client: ApiClient;
  readonly createReflector: ReflectorFactory;
  readonly nodeName: string;
  readonly nodeUid: () => string | undefined;
  /** Told of pods that may need objects of the cluster, and of those that need them no more. */
  readonly references: { register(pod: Pod): void; unregister(podUid: string): void };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export class ClusterPods implements PodMembership {
  readonly objects: StatusReporter;
  readonly #options: ClusterPodsOptions;
  readonly #known = new PodObjects();
  #rooms: AttachedRooms | undefined;
  #mirrors: MirrorPods | undefined;
  #wasReady = false;

  constructor(options: ClusterPodsOptions) {
    this.#options = options;
    const { client: api, clock, logger, metrics } = options;
    this.objects = new StatusReporter({ api, objects: this.#known, clock, logger, metrics });
  }

  attach(rooms: AttachedRooms): void {
    const { client: api, nodeName, nodeUid, clock, logger, metrics } = this.#options;
    this.#rooms = rooms;
    this.#mirrors = new MirrorPods({
      api,
      objects: this.#known,
      pods: rooms.workers,
      nodeName,
      nodeUid,
      onMade: (object) => this.objects.objectsChanged({ set: [object], removed: [] }),
      clock,
      logger,
      metrics,
    });
  }

  sources(remembered: readonly Pod[]): PodSource[] {
    const { nodeName, createReflector, clock } = this.#options;
    const source = new ApiSource({
      nodeName,
      clock,
      remembered,
      reflector: (options) => createReflector(options),
      onObjects: (change) => {
        this.#known.follow(change);
        this.objects.objectsChanged(change);
        this.#mirrors?.objectsChanged(change);
      },
    });
    return [source];
  }

  /** The Node object is another one now: mirrors belong to it. */
  nodeChanged(): void {
    this.#mirrors?.refresh();
  }

  /** Labels or taints of the node may be others: pods may wait for them. */
  placementChanged(): void {
    this.#rooms?.workers.reconsider();
  }

  /** Statuses and probes of pods show the addresses of the node. */
  hostIpsChanged(): void {
    this.#rooms?.workers.wakeAll();
  }

  wanted({ set }: DesiredChange): void {
    for (const pod of set) {
      const worker = this.#rooms?.workers.get(pod.metadata.uid);
      if (worker?.memory.terminal ?? recordedEnd(pod)) continue;
      this.#options.references.register(pod);
      // The pod's own labels and annotations are in files of its volumes as well.
      if (worker) this.#refreshVolumes(pod);
    }
  }

  handedOver({ ready }: DesiredChange): void {
    // Not before the workers know: a mirror counts as an orphan only once every source has spoken.
    if (ready && !this.#wasReady) this.#mirrors?.refresh();
    this.#wasReady = ready;
  }

  /** Objects that these pods refer to are others now. */
  referencesChanged(podUids: readonly string[]): void {
    for (const uid of podUids) {
      const worker = this.#rooms?.workers.get(uid);
      if (!worker) continue;
      worker.retryObjects();
      this.#refreshVolumes(worker.pod);
    }
  }

  report(report: PodReport): void {
    this.objects.report(report);
    const { pod, view } = report;
    this.#mirrors?.podChanged({ pod, intent: view.intent });
    // A pod that has come to its end reads nothing any more.
    if (view.memory.terminal) this.#options.references.unregister(pod.metadata.uid);
  }

  gone(pod: Pod): void {
    const { uid } = pod.metadata;
    this.objects.forget(uid);
    this.#mirrors?.podGone(pod);
    this.#options.references.unregister(uid);
  }

  close(): void {
    this.objects.close();
    this.#mirrors?.close();
  }

  #refreshVolumes(pod: Pod): void {
    this.#rooms?.volumes.refresh(pod).catch((error: unknown) => {
      this.#options.logger.warn('Volumes of a pod are not up to date; the files in them are as they were', {
        pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
        podUID: pod.metadata.uid,
        err: error instanceof Error ? error.message : String(error),
      });
    });
  }
}
