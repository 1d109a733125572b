/**
 * Metrics that say what is: they are read from the rooms while somebody scrapes. What happens is counted in
 * the rooms where it happens.
 */
import type { Clock } from '../concurrency/clock.ts';
import { isStaticPod } from '../kubernetes/pod-identity.ts';
import type { PodServices } from '../pods/executors/pod-services.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { NodeStats } from '../stats/node-stats.ts';
import type { VolumeSource } from '../stats/volume-source.ts';
import type { Labels, Metrics } from '../telemetry/metrics.ts';
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { pluginName } from '../volumes/volume-metrics.ts';

export interface StateMetricsRooms {
  readonly workers: PodWorkers;
  readonly desired: () => Iterable<Parameters<typeof isStaticPod>[0]>;
  readonly observer: RuntimeObserver;
  readonly stats: NodeStats;
  readonly volumes: VolumeSource;
  /** Volumes that are set up: the kind of each. */
  readonly mountedKinds: () => Iterable<string>;
  readonly cgroupVersion: 1 | 2;
}

export function declareStateMetrics(metrics: MetricsRegistry, rooms: StateMetricsRooms): void {
  declarePods(metrics, rooms);
  declareVolumes(metrics, rooms);
  const { cgroupVersion, stats } = rooms;
  metrics
    .gauge({ name: 'kubelet_cgroup_version', help: '[ALPHA] Version of the cgroups of the node.' })
    .set(cgroupVersion);
  // Differs from the kubelet, which has cAdvisor measure, or the runtime: here cgroups are read.
  metrics
    .gauge({
      name: 'kubelet_metrics_provider',
      help: '[ALPHA] Always 1; who measures containers.',
      labels: ['provider'],
    })
    .set(1, { provider: 'cgroup' });
  metrics.observedGauge(
    {
      name: 'kubelet_container_log_filesystem_used_bytes',
      help: '[ALPHA] Bytes that the logs of a container occupy.',
      labels: ['uid', 'namespace', 'pod', 'container'],
    },
    async () => (await stats.containerLogs()).map(({ bytes, ...labels }) => ({ value: bytes, labels })),
  );
}

function declarePods(metrics: MetricsRegistry, { workers, desired, observer }: StateMetricsRooms): void {
  const gauge = (name: string, help: string, labels: readonly string[], read: () => Iterable<Labels>) =>
    metrics.observedGauge({ name, help: `[ALPHA] ${help}`, labels }, () => tally(read()));
  const staticLabel = (pod: Parameters<typeof isStaticPod>[0]) => ({
    static: isStaticPod(pod) ? 'true' : '',
  });
  gauge('kubelet_desired_pods', 'Pods that the node was told to run.', ['static'], () =>
    [...desired()].map(staticLabel),
  );
  gauge(
    'kubelet_active_pods',
    'Pods that the node was told to run and that have not come to their end.',
    ['static'],
    () =>
      [...workers.all()]
        .filter(({ memory, intent }) => memory.terminal === undefined && intent.kind === 'run')
        .map(({ pod }) => staticLabel(pod)),
  );
  gauge(
    'kubelet_working_pods',
    'Pods that have a worker, by why and how far they are.',
    ['config', 'lifecycle', 'static'],
    () => {
      const wanted = new Set([...desired()].map((pod) => pod.metadata?.uid));
      return [...workers.all()].map(({ pod, memory, intent }) => {
        const isOver = memory.terminal !== undefined || intent.kind === 'terminate';
        return {
          config: wanted.has(pod.metadata.uid) ? 'desired' : 'orphan',
          lifecycle: memory.tornDown ? 'terminated' : isOver ? 'terminating' : 'sync',
          static: isStaticPod(pod) ? 'true' : '',
        };
      });
    },
  );
  metrics.observedGauge(
    {
      name: 'kubelet_managed_ephemeral_containers',
      help: '[ALPHA] Ephemeral containers of the pods of the node.',
    },
    () => {
      const counts = [...workers.all()].map(({ pod }) => pod.spec.ephemeralContainers?.length ?? 0);
      return [{ value: counts.reduce((sum, count) => sum + count, 0) }];
    },
  );
  const observed = () => observer.pods().map((uid) => observer.pod(uid));
  metrics.observedGauge(
    { name: 'kubelet_running_pods', help: '[ALPHA] Pods that have a sandbox that is up.' },
    () => [
      {
        value: observed().filter(({ sandboxes }) => sandboxes.some(({ state }) => state === 'Ready')).length,
      },
    ],
  );
  gauge('kubelet_running_containers', 'Containers that the runtime has, by state.', ['container_state'], () =>
    observed().flatMap(({ containers }) =>
      containers.map(({ state }) => ({ container_state: state.toLowerCase() })),
    ),
  );
}

const claimFigures = [
  ['available_bytes', 'Bytes that are left in the volume.', 'availableBytes'],
  ['capacity_bytes', 'Size of the volume in bytes.', 'capacityBytes'],
  ['inodes', 'Inodes of the volume.', 'inodes'],
  ['inodes_free', 'Inodes that are left in the volume.', 'inodesFree'],
  ['inodes_used', 'Inodes in use in the volume.', 'inodesUsed'],
  ['used_bytes', 'Bytes in use in the volume.', 'usedBytes'],
] as const;

function declareVolumes(
  metrics: MetricsRegistry,
  { workers, volumes, mountedKinds }: StateMetricsRooms,
): void {
  const labels = ['namespace', 'persistentvolumeclaim'];
  const ofClaims = (read: (volume: ReturnType<VolumeSource>[number]) => number | undefined) => () => {
    const values = new Map<string, { value: number; labels: Labels }>();
    for (const { pod } of workers.all()) {
      for (const volume of volumes(pod.metadata.uid)) {
        const value = read(volume);
        if (volume.claim === undefined || value === undefined) continue;
        const { namespace, name } = volume.claim;
        // Pods that share a claim share its figures.
        values.set(`${namespace}/${name}`, { value, labels: { namespace, persistentvolumeclaim: name } });
      }
    }
    return values.values();
  };
  for (const [name, help, figure] of claimFigures) {
    const options = { name: `kubelet_volume_stats_${name}`, help: `[ALPHA] ${help}`, labels };
    metrics.observedGauge(
      options,
      ofClaims((volume) => volume[figure]),
    );
  }
  metrics.observedGauge(
    {
      name: 'kubelet_volume_stats_health_status_abnormal',
      help: '[ALPHA] 1 when the driver finds the volume in trouble, 0 otherwise.',
      labels,
    },
    ofClaims(({ abnormal }) => (abnormal === undefined ? undefined : Number(abnormal))),
  );
  metrics.observedGauge(
    {
      name: 'volume_manager_total_volumes',
      help: '[ALPHA] Volumes that pods want and that are set up, by kind.',
      labels: ['plugin_name', 'state'],
    },
    () => {
      const found: Labels[] = [];
      for (const kind of mountedKinds()) {
        found.push({ plugin_name: pluginName(kind), state: 'actual_state_of_world' });
      }
      for (const { pod, memory, intent } of workers.all()) {
        if (memory.terminal !== undefined || intent.kind !== 'run') continue;
        for (const { name: _, ...source } of pod.spec.volumes ?? []) {
          const kind = Object.keys(source)[0] ?? 'emptyDir';
          found.push({ plugin_name: pluginName(kind), state: 'desired_state_of_world' });
        }
      }
      return tally(found);
    },
  );
}

/** How often each set of labels occurs. */
function tally(all: Iterable<Labels>): { value: number; labels: Labels }[] {
  const counts = new Map<string, { value: number; labels: Labels }>();
  for (const labels of all) {
    const key = JSON.stringify(labels);
    const count = counts.get(key);
    if (count) count.value++;
    else counts.set(key, { value: 1, labels });
  }
  return [...counts.values()];
}

/** Counts what is done to the cgroups of pods. */
export function measuredCgroups(
  cgroups: PodServices['cgroups'],
  { metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock },
): PodServices['cgroups'] {
  const duration = metrics.histogram({
    name: 'kubelet_cgroup_manager_duration_seconds',
    help: '[ALPHA] Time that changing the cgroup of a pod took.',
    labels: ['operation_type'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  });
  const timed = async <T>(type: string, work: Promise<T>): Promise<T> => {
    const began = clock.now();
    try {
      return await work;
    } finally {
      duration.observe((clock.now() - began) / 1000, { operation_type: type });
    }
  };
  return {
    ensurePod: (pod, signal) => timed('create', cgroups.ensurePod(pod, signal)),
    removePod: (uid, options) => timed('destroy', cgroups.removePod(uid, options)),
  };
}
