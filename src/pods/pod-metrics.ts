/**
 * What the life of pods adds to `/metrics`: how many were started and ended, and how long it took. Learns it
 * from the actions that are carried out and from the reports of the workers, and decides nothing.
 *
 * Containers that an earlier agent started are not counted again, and neither is their pods' start.
 */
import type { Clock } from '../concurrency/clock.ts';
import { findContainer } from '../kubernetes/init-containers.ts';
import { isStaticPod, podAnnotations } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { Counter, Gauge, Histogram, Metrics } from '../telemetry/metrics.ts';
import type { Action, ActionKind } from './action.ts';
import { newestInstance } from './instances.ts';
import type { PodReport, PodWorkerPorts } from './pod-worker-ports.ts';
import type { Outcome } from './remember.ts';

/** Buckets of most durations of a kubelet, seconds. */
const shortBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Buckets of the time a pod takes to start, seconds. */
const startBuckets = [
  0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700,
  3600,
];

/** What is known of one pod between its reports. Times are epoch milliseconds. */
interface Life {
  readonly seenAt: number;
  /** The start has been counted, or was not ours. */
  isStarted: boolean;
  hasWorked: boolean;
  pullBegan: number | undefined;
  pullEnded: number | undefined;
  /** Instances that were seen alive and have not been counted as ended. */
  readonly alive: Set<string>;
}

/** As a kubelet groups what its workers do. */
function operation(kind: ActionKind): 'create' | 'kill' | 'sync' {
  switch (kind) {
    case 'prepare-pod':
    case 'set-up-volumes':
    case 'ensure-image':
    case 'create-sandbox':
    case 'create-container':
    case 'start-container':
      return 'create';
    case 'run-pre-stop':
    case 'stop-container':
    case 'stop-sandbox':
    case 'tear-down':
      return 'kill';
    default:
      return 'sync';
  }
}

const typeNames = {
  regular: 'container',
  sidecar: 'init_container',
  init: 'init_container',
  ephemeral: 'ephemeral_container',
} as const;

function containerType({ spec }: Pod, name: string): string {
  return typeNames[findContainer(spec, name)?.kind ?? 'regular'];
}

export class PodMetrics {
  readonly #clock: Clock;
  readonly #lives = new Map<string, Life>();
  #networkSeen = false;

  readonly #work: Histogram;
  readonly #workStart: Histogram;
  readonly #podsStarted: Counter;
  readonly #podsFailed: Counter;
  readonly #userNamespacesStarted: Counter;
  readonly #userNamespacesFailed: Counter;
  readonly #containersStarted: Counter;
  readonly #containersFailed: Counter;
  readonly #containersEnded: Counter;
  readonly #containersPerPod: Histogram;
  readonly #start: Histogram;
  readonly #startTotal: Histogram;
  readonly #startSli: Histogram;
  readonly #firstNetworkStart: Gauge;
  readonly #orphaned: Counter;
  readonly #restarted: Counter;
  readonly #imageVolumes: Record<'requested' | 'mounted' | 'failed', Counter>;

  constructor({ metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock }) {
    this.#clock = clock;
    const counter = (name: string, help: string, labels: readonly string[] = []) =>
      metrics.counter({ name, help: `[ALPHA] ${help}`, labels });
    const histogram = (
      name: string,
      help: string,
      buckets: readonly number[],
      labels: readonly string[] = [],
    ) => metrics.histogram({ name, help: `[ALPHA] ${help}`, labels, buckets });
    this.#work = histogram(
      'kubelet_pod_worker_duration_seconds',
      'Time that one action for a pod took.',
      shortBuckets,
      ['operation_type'],
    );
    this.#workStart = histogram(
      'kubelet_pod_worker_start_duration_seconds',
      'Time from seeing a pod to the first action for it.',
      shortBuckets,
    );
    this.#podsStarted = counter('kubelet_started_pods_total', 'Sandboxes that were asked for.');
    this.#podsFailed = counter('kubelet_started_pods_errors_total', 'Sandboxes that could not be made.');
    this.#userNamespacesStarted = counter(
      'kubelet_started_user_namespaced_pods_total',
      'Sandboxes with a user namespace of their own that were asked for.',
    );
    this.#userNamespacesFailed = counter(
      'kubelet_started_user_namespaced_pods_errors_total',
      'Sandboxes with a user namespace of their own that could not be made.',
    );
    this.#containersStarted = counter(
      'kubelet_started_containers_total',
      'Containers that were to be started.',
      ['container_type'],
    );
    this.#containersFailed = counter(
      'kubelet_started_containers_errors_total',
      'Containers that could not be started, by reason.',
      ['code', 'container_type'],
    );
    this.#containersEnded = counter('kubelet_terminated_containers_total', 'Containers that have ended.', [
      'container_type',
      'exit_code',
      'reason',
    ]);
    this.#containersPerPod = histogram(
      'kubelet_containers_per_pod_count',
      'Containers of the pods that came to the node.',
      [1, 2, 4, 8, 16],
    );
    this.#start = histogram(
      'kubelet_pod_start_duration_seconds',
      'Time from seeing a pod to its containers running.',
      startBuckets,
    );
    this.#startTotal = histogram(
      'kubelet_pod_start_total_duration_seconds',
      'Time from the creation of a pod to its containers running, pulls and init containers included.',
      startBuckets,
    );
    this.#startSli = histogram(
      'kubelet_pod_start_sli_duration_seconds',
      'Time from the creation of a pod to its containers running, without pulls and init containers.',
      startBuckets,
    );
    this.#firstNetworkStart = metrics.gauge({
      name: 'kubelet_first_network_pod_start_sli_duration_seconds',
      help: '[INTERNAL] The same for the first pod with a network of its own.',
    });
    this.#orphaned = counter(
      'kubelet_orphaned_runtime_pods_total',
      'Pods found in the runtime that nobody knew of, and ended.',
    );
    this.#restarted = counter(
      'kubelet_restarted_pods_total',
      'Pods that came back, under the same uid, while they were being ended.',
      ['static'],
    );
    const imageVolumes = (name: string, help: string) =>
      metrics.counter({ name: `kubelet_image_volume_${name}_total`, help: `[BETA] ${help}` });
    this.#imageVolumes = {
      requested: imageVolumes('requested', 'Images that were to be mounted into containers.'),
      mounted: imageVolumes('mounted_succeed', 'Images that were mounted into containers.'),
      failed: imageVolumes('mounted_errors', 'Images of containers that could not be made.'),
    };
  }

  /** A pod that runs and that nobody knew of is ended. */
  orphaned(): void {
    this.#orphaned.inc();
  }

  /** A pod that was being ended is wanted again under the same uid. */
  restarted(pod: Pod): void {
    this.#restarted.inc({ static: isStaticPod(pod) ? 'true' : '' });
  }

  /** Counts and times what `execute` does. */
  around(execute: PodWorkerPorts['execute']): PodWorkerPorts['execute'] {
    return async (action, context) => {
      const { pod } = context;
      const life = this.#life(pod);
      const began = this.#clock.now();
      if (!life.hasWorked) {
        life.hasWorked = true;
        if (!life.isStarted) this.#workStart.observe(seconds(began - seenAt(pod, life)));
      }
      if (action.kind === 'ensure-image') life.pullBegan ??= began;
      const outcome = await execute(action, context);
      const ended = this.#clock.now();
      if (action.kind === 'ensure-image') life.pullEnded = ended;
      this.#work.observe(seconds(ended - began), { operation_type: operation(action.kind) });
      // What the worker itself cut off has not failed.
      if (outcome.ok || !context.signal.aborted) this.#count(action, pod, outcome);
      return outcome;
    };
  }

  /** Takes what a worker tells. */
  report({ pod, view: { observed, now } }: Pick<PodReport, 'pod' | 'view'>): void {
    const life = this.#life(pod, observed.containers.length > 0);
    for (const { id, name, state, exitCode, reason } of observed.containers) {
      if (state === 'Running') life.alive.add(id);
      else if (state === 'Exited' && life.alive.delete(id)) {
        this.#containersEnded.inc({
          container_type: containerType(pod, name),
          exit_code: String(exitCode ?? ''),
          reason: reason ?? '',
        });
      }
    }
    const isUp = pod.spec.containers.every(
      ({ name }) => newestInstance(observed, name)?.startedAt !== undefined,
    );
    if (life.isStarted || !isUp) return;
    life.isStarted = true;
    this.#start.observe(seconds(now - seenAt(pod, life)));
    if (!isStaticPod(pod)) this.#observeStartup(pod, life, observed.containers, now);
  }

  /** Nothing is left of the pod. */
  forget(uid: string): void {
    this.#lives.delete(uid);
  }

  /** Only the API server's pods have been waited for since their creation. */
  #observeStartup(
    pod: Pod,
    { pullBegan, pullEnded }: Life,
    containers: PodReport['view']['observed']['containers'],
    now: number,
  ): void {
    const created = Date.parse(pod.metadata.creationTimestamp ?? '');
    if (Number.isNaN(created)) return;
    const pulling = pullBegan === undefined || pullEnded === undefined ? 0 : pullEnded - pullBegan;
    let initialising = 0;
    for (const { name, startedAt, finishedAt } of containers) {
      if (startedAt === undefined || finishedAt === undefined) continue;
      if (findContainer(pod.spec, name)?.kind === 'init') initialising += finishedAt - startedAt;
    }
    const sli = seconds(now - created - pulling - initialising);
    this.#startTotal.observe(seconds(now - created));
    this.#startSli.observe(sli);
    if (this.#networkSeen || pod.spec.hostNetwork) return;
    this.#networkSeen = true;
    this.#firstNetworkStart.set(sli);
  }

  #count(action: Action, pod: Pod, outcome: Outcome): void {
    switch (action.kind) {
      case 'create-sandbox': {
        const hasUsers = pod.spec.hostUsers === false;
        this.#podsStarted.inc();
        if (hasUsers) this.#userNamespacesStarted.inc();
        if (outcome.ok) return;
        this.#podsFailed.inc();
        if (hasUsers) this.#userNamespacesFailed.inc();
        return;
      }
      case 'ensure-image':
      case 'create-container':
      case 'start-container': {
        const type = { container_type: containerType(pod, action.container) };
        const isBeginning =
          action.kind === 'create-container' || (action.kind === 'ensure-image' && !outcome.ok);
        if (isBeginning) this.#containersStarted.inc(type);
        if (!outcome.ok) this.#containersFailed.inc({ ...type, code: outcome.reason });
        if (action.kind === 'create-container') this.#countImageVolumes(pod, action.container, outcome.ok);
      }
    }
  }

  /** The runtime mounts them as it makes the container. */
  #countImageVolumes(pod: Pod, name: string, isMade: boolean): void {
    const images = new Set(pod.spec.volumes?.flatMap((volume) => (volume.image ? volume.name : [])));
    const mounts = findContainer(pod.spec, name)?.container.volumeMounts ?? [];
    const wanted = mounts.filter((mount) => images.has(mount.name)).length;
    if (wanted === 0) return;
    this.#imageVolumes.requested.inc(undefined, wanted);
    this.#imageVolumes[isMade ? 'mounted' : 'failed'].inc(undefined, wanted);
  }

  #life(pod: Pod, isAdopted = false): Life {
    const { uid } = pod.metadata;
    let life = this.#lives.get(uid);
    if (life === undefined) {
      life = {
        seenAt: this.#clock.now(),
        isStarted: isAdopted,
        hasWorked: false,
        pullBegan: undefined,
        pullEnded: undefined,
        alive: new Set(),
      };
      this.#lives.set(uid, life);
      if (!isAdopted) this.#containersPerPod.observe(pod.spec.containers.length);
    }
    return life;
  }
}

/** When the agent's source first saw the pod; else when its worker did. */
function seenAt(pod: Pod, life: Life): number {
  const seen = Date.parse(pod.metadata.annotations?.[podAnnotations.configSeen] ?? '');
  return Number.isNaN(seen) ? life.seenAt : seen;
}

function seconds(ms: number): number {
  return Math.max(0, ms) / 1000;
}
