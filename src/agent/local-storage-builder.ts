/** Builds what measures the pods' share of the node's disk, and evicts pods that are over their limits. */
import { stat } from 'node:fs/promises';
import { isCriticalPod, podKey, runtimeLabels } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import { type EventRecorder, podEventObject } from '../telemetry/events.ts';
import { LocalStorage } from '../volumes/local-storage.ts';
import type { ExceededLimit } from '../volumes/local-storage-limits.ts';
import type { NodeAgentOptions } from './agent-context.ts';
import type { BuiltPodServices } from './pod-services-builder.ts';

export interface LocalStorageRooms {
  readonly built: BuiltPodServices;
  readonly observer: RuntimeObserver;
  readonly workers: PodWorkers;
  readonly events: EventRecorder;
}

/** As for every hard eviction of Kubernetes. */
const graceSeconds = 1;

export function buildLocalStorage(
  { settings, clock, logger, metrics }: Pick<NodeAgentOptions, 'settings' | 'clock' | 'logger' | 'metrics'>,
  { built, observer, workers, events }: LocalStorageRooms,
): LocalStorage {
  const evictions = metrics.counter({
    name: 'kubelet_evictions',
    help: 'Cumulative number of pod evictions by eviction signal',
    labels: ['eviction_signal'],
  });
  const spared = new WeakSet<Pod>();
  const evict = (pod: Pod, { signal, message }: ExceededLimit): void => {
    const { uid } = pod.metadata;
    if (isCriticalPod(pod)) {
      // As in Kubernetes, static and critical pods are never evicted; whoever runs the node is told once.
      if (!spared.has(pod)) logger.warn('A critical pod is over a limit', { pod: podKey(pod), message });
      spared.add(pod);
      return;
    }
    const verdict = { phase: 'Failed', reason: 'Evicted', message, graceSeconds } as const;
    if (!workers.get(uid)?.evict(verdict)) return;
    logger.warn('Evicting a pod that is over a limit of its own', { pod: podKey(pod), podUID: uid, message });
    evictions.inc({ eviction_signal: signal });
    events.event(podEventObject(pod), 'Warning', 'Evicted', message);
  };
  return new LocalStorage({
    pods: () => built.volumes.mounted(),
    logDirectory: (pod) => built.directories.logDirectory(pod),
    writableLayers: writableLayers(built, observer, settings.rootDirectory),
    onExceeded: evict,
    watchesLimits: settings.localStorage.isolation,
    statsPeriodMs: settings.localStorage.statsPeriodMs,
    clock,
    logger,
    metrics,
  });
}

/** Of the newest instance of each container. */
function writableLayers(
  { runtime }: BuiltPodServices,
  observer: RuntimeObserver,
  rootDirectory: string,
): (pod: Pod, signal: AbortSignal) => Promise<ReadonlyMap<string, number>> {
  return async ({ metadata: { uid } }, signal) => {
    const filter = { id: '', podSandboxId: '', labelSelector: { [runtimeLabels.podUid]: uid } };
    const { stats } = await runtime.listContainerStats({ filter }, { signal });
    const attempts = new Map(observer.pod(uid).containers.map(({ id, attempt }) => [id, attempt]));
    const newest = new Map<string, { attempt: number; bytes: number }>();
    const { dev } = await stat(rootDirectory);
    for (const { attributes, writableLayer } of stats) {
      const mountpoint = writableLayer?.fsId?.mountpoint;
      if (!attributes || !writableLayer || (mountpoint && (await deviceOf(mountpoint)) !== dev)) continue;
      const name = attributes.labels[runtimeLabels.containerName] ?? '';
      const attempt = attempts.get(attributes.id) ?? 0;
      if (attempt < (newest.get(name)?.attempt ?? 0)) continue;
      newest.set(name, { attempt, bytes: Number(writableLayer.usedBytes?.value ?? 0n) });
    }
    return new Map([...newest].map(([name, { bytes }]) => [name, bytes]));
  };
}

/** `undefined` for what the agent cannot see, such as a path in another mount namespace. */
async function deviceOf(path: string): Promise<number | undefined> {
  return await stat(path).then(
    ({ dev }) => dev,
    () => undefined,
  );
}
