/**
 * Measures, in the background, what pods have on the node's disk, and tells when one is over a limit of its
 * own. Pods with limits are looked at every ten seconds, the others once in the period of statistics; a pod
 * whose walk is long is looked at less often, so that walking never takes more than a fraction of the time.
 *
 * A few pods are measured side by side, within one pace for all; a file system that hangs holds up only its
 * own pod's place. Project quotas of file systems are not used.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import { type DirectoryUsage, directoryUsage } from '../linux/directory-usage.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Histogram, Metrics } from '../telemetry/metrics.ts';
import {
  type ExceededLimit,
  exceededLimit,
  hasLocalStorageLimits,
  isLocalEphemeral,
} from './local-storage-limits.ts';
import type { MountedVolume } from './volume-kind.ts';
import { type VolumeStats, volumeUsage } from './volume-usage.ts';

/** A pod whose volumes are set up. */
export interface MeasuredPod {
  readonly pod: Pod;
  readonly volumes: readonly MountedVolume[];
}

/** What a pod has on the node's disk beside the writable layers of its containers. */
export interface PodLocalStorage {
  /** When it was measured, epoch milliseconds. */
  readonly time: number;
  /** Every volume that can be measured. */
  readonly volumes: readonly VolumeStats[];
  /** By container name. */
  readonly logs: ReadonlyMap<string, DirectoryUsage>;
  /** Logs and the volumes that lie on the node's disk: ephemeral-storage without writable layers. */
  readonly total: DirectoryUsage;
}

export interface LocalStorageOptions {
  /** The pods that have volumes or run, whatever their state. */
  readonly pods: () => Iterable<MeasuredPod>;
  /** Where the logs of a pod are: one directory for each container. */
  readonly logDirectory: (pod: Pod) => string;
  /**
   * Bytes of the writable layers of a pod's containers by container name. Asked only for pods with limits;
   * empty where they lie on another file system.
   */
  readonly writableLayers: (pod: Pod, signal: AbortSignal) => Promise<ReadonlyMap<string, number>>;
  /** Called each time a pod is found over a limit. */
  readonly onExceeded: (pod: Pod, limit: ExceededLimit) => void;
  /** Limits are watched: `localStorageCapacityIsolation`. */
  readonly watchesLimits: boolean;
  /** `volumeStatsAggPeriod` in milliseconds; negative: statistics are not wanted. */
  readonly statsPeriodMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const limitsPeriodMs = 10_000;
/** Pods measured side by side. */
const lanes = 4;
/** Files looked at in a second by each of them. */
const entriesPerSecond = 2500;
/** A pod rests at least this many times as long as measuring it took. */
const restFactor = 4;

export class LocalStorage {
  readonly #options: LocalStorageOptions;
  readonly #durations: Histogram;
  readonly #measured = new Map<string, PodLocalStorage>();
  /** When a pod is to be measured next, by uid; infinite while that goes on. */
  readonly #due = new Map<string, number>();
  /** Told already that measuring fails, by uid. */
  readonly #failing = new Set<string>();
  /** Which pods have limits to watch; a changed pod is another object. */
  readonly #watched = new WeakMap<Pod, boolean>();

  constructor(options: LocalStorageOptions) {
    this.#options = options;
    this.#durations = options.metrics.histogram({
      name: 'kubelet_volume_metric_collection_duration_seconds',
      help: '[ALPHA] Time that measuring a volume took.',
      labels: ['metric_source'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    });
  }

  /** The volumes of a pod as they were measured last; empty before the first time. */
  volumeStats(podUid: string): readonly VolumeStats[] {
    return this.#measured.get(podUid)?.volumes ?? [];
  }

  podLocalStorage(podUid: string): PodLocalStorage | undefined {
    return this.#measured.get(podUid);
  }

  /** Measures until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const running = new Set<Promise<void>>();
    while (!signal.aborted) {
      for (const pod of this.#next(lanes - running.size)) {
        const work: Promise<void> = this.#turn(pod, signal).finally(() => running.delete(work));
        running.add(work);
      }
      const pause = new AbortController();
      // One timer for all; a lane that has become free looks for the next pod that waits.
      const wait = sleep(clock, limitsPeriodMs, AbortSignal.any([signal, pause.signal])).catch(() => {});
      await (running.size < lanes ? wait : Promise.race([wait, ...running]));
      pause.abort();
    }
  }

  /** The pods to measure now, those that wait longest first. */
  #next(places: number): MeasuredPod[] {
    const now = this.#options.clock.now();
    const present = new Map<string, MeasuredPod>();
    for (const measured of this.#options.pods()) {
      const { uid } = measured.pod.metadata;
      const isWanted = this.#isWatched(measured.pod) || this.#options.statsPeriodMs >= 0;
      if (isWanted) present.set(uid, measured);
      if (isWanted && !this.#due.has(uid)) this.#due.set(uid, now);
    }
    for (const uid of this.#due.keys()) if (!present.has(uid)) this.#forget(uid);
    return [...this.#due]
      .filter(([, due]) => due <= now)
      .sort(([, a], [, b]) => a - b)
      .slice(0, places)
      .map(([uid]) => present.get(uid)!);
  }

  #forget(uid: string): void {
    this.#due.delete(uid);
    this.#measured.delete(uid);
    this.#failing.delete(uid);
  }

  async #turn({ pod, volumes }: MeasuredPod, signal: AbortSignal): Promise<void> {
    const { clock, logger, statsPeriodMs } = this.#options;
    const { uid, name, namespace } = pod.metadata;
    const began = clock.now();
    this.#due.set(uid, Number.POSITIVE_INFINITY);
    try {
      await this.#measure({ pod, volumes }, signal);
      this.#failing.delete(uid);
    } catch (error) {
      if (!signal.aborted && !this.#failing.has(uid)) {
        this.#failing.add(uid);
        logger.error('Measuring what a pod has on disk failed; trying again', error, {
          pod: `${namespace}/${name}`,
          podUID: uid,
        });
      }
    }
    if (!this.#due.has(uid)) return;
    const period = this.#isWatched(pod) ? limitsPeriodMs : Math.max(statsPeriodMs, limitsPeriodMs);
    const now = clock.now();
    this.#due.set(uid, now + Math.max(period, restFactor * (now - began)));
  }

  #isWatched(pod: Pod): boolean {
    if (!this.#options.watchesLimits) return false;
    const known = this.#watched.get(pod);
    if (known !== undefined) return known;
    const isWatched = hasLocalStorageLimits(pod.spec);
    this.#watched.set(pod, isWatched);
    return isWatched;
  }

  async #measure({ pod, volumes }: MeasuredPod, signal: AbortSignal): Promise<void> {
    const { clock, logDirectory, writableLayers, onExceeded } = this.#options;
    const pace = { clock, signal, entriesPerSecond };
    const stats: VolumeStats[] = [];
    const onMeasured = (metric_source: string, tookMs: number) =>
      this.#durations.observe(tookMs / 1000, { metric_source });
    for (const volume of volumes) {
      const found = await volumeUsage(volume, { ...pace, onMeasured });
      if (found) stats.push(found);
    }
    const logs = new Map<string, DirectoryUsage>();
    const logsOfPod = logDirectory(pod);
    for (const container of await subdirectories(logsOfPod)) {
      logs.set(container, await directoryUsage(join(logsOfPod, container), pace));
    }
    const { uid } = pod.metadata;
    // Gone meanwhile: nobody asks any more.
    if (!this.#due.has(uid)) return;
    this.#measured.set(uid, { time: clock.now(), volumes: stats, logs, total: total(pod, stats, logs) });
    if (!this.#isWatched(pod)) return;
    const exceeded = exceededLimit(pod.spec, {
      volumes: new Map(stats.map(({ name, usedBytes }) => [name, usedBytes])),
      logs: new Map([...logs].map(([name, { bytes }]) => [name, bytes])),
      writableLayers: await writableLayers(pod, signal),
    });
    if (exceeded && !signal.aborted) onExceeded(pod, exceeded);
  }
}

function total(
  { spec }: Pod,
  stats: readonly VolumeStats[],
  logs: ReadonlyMap<string, DirectoryUsage>,
): DirectoryUsage {
  const local = new Set((spec.volumes ?? []).filter(isLocalEphemeral).map(({ name }) => name));
  let bytes = 0;
  let inodes = 0;
  for (const { name, usedBytes, inodesUsed } of stats) {
    if (!local.has(name)) continue;
    bytes += usedBytes;
    inodes += inodesUsed;
  }
  for (const log of logs.values()) {
    bytes += log.bytes;
    inodes += log.inodes;
  }
  return { bytes, inodes };
}

async function subdirectories(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
