/** Builds what goes on beside the pods' workers: clearing away, measuring, rotating logs, looking again. */
import { sleep } from '../concurrency/clock.ts';
import type { CgroupHierarchy } from '../linux/cgroupfs.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { PodSources } from '../sources/pod-sources.ts';
import type { EventRecorder } from '../telemetry/events.ts';
import type { AgentContext } from './agent-context.ts';
import { buildPodGarbage } from './garbage-builder.ts';
import type { ImageRooms } from './images-builder.ts';
import { buildLocalStorage } from './local-storage-builder.ts';
import { buildLogRotation } from './logs-builder.ts';
import { declareStateMetrics } from './metrics-builder.ts';
import type { MachineFacts } from './node-facts.ts';
import type { BuiltPodServices } from './pod-services-builder.ts';
import type { RuntimeRooms } from './runtime-builder.ts';
import { buildNodeStats, volumeSource } from './stats-builder.ts';

export interface UpkeepRooms {
  readonly hierarchy: CgroupHierarchy;
  readonly facts: MachineFacts;
  readonly nodeName: string;
  readonly events: EventRecorder;
  readonly runtime: RuntimeRooms;
  readonly images: ImageRooms;
  readonly built: BuiltPodServices;
  readonly workers: PodWorkers;
  readonly sources: PodSources;
}

/** Something that goes on until `signal` aborts. */
export interface Ongoing {
  run(signal: AbortSignal): Promise<void>;
}

/** All of it, not running yet; the node's statistics can be asked for from now on. */
export async function buildUpkeep(context: AgentContext, input: UpkeepRooms): Promise<Ongoing[]> {
  const { metrics, rooms } = context;
  const { hierarchy, built, workers, sources, images } = input;
  const { runtime, observer, link } = input.runtime;
  const inUse = { ...input, observer };
  const localStorage = buildLocalStorage(context, inUse);
  const volumes = volumeSource(localStorage, workers);
  const stats = await buildNodeStats(context, { ...inUse, volumes });
  rooms.stats = stats;
  declareStateMetrics(metrics, {
    workers,
    desired: () => sources.pods.values(),
    observer,
    stats,
    volumes,
    mountedKinds: () => [...built.volumes.mounted()].flatMap((pod) => pod.volumes.map(({ kind }) => kind)),
    cgroupVersion: hierarchy.version,
  });
  return [
    buildLogRotation(context, { runtime, observer, workers }),
    localStorage,
    images.collector,
    buildPodGarbage(context, inUse),
    observer,
    link,
    { run: (signal) => resync(context, workers, signal) },
  ];
}

/** The widest mesh of the safety net: every pod is looked at now and then even if nothing was heard of it. */
async function resync(
  { clock, settings }: AgentContext,
  workers: PodWorkers,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await sleep(clock, settings.resyncMs, signal).catch(() => {});
    workers.wakeAll();
  }
}
