/**
 * Statistics of the node for whoever asks: `/stats/summary`, `/metrics/resource`, `/metrics/cadvisor`.
 *
 * Nothing runs while nobody asks. Figures of cgroups are at most a second old, those of disks and of the
 * runtime at most as old as `--housekeeping-interval` (10 s) allows; see {@link StatsAges}.
 */
import type { UsageDetail } from '../linux/cgroup-usage/cgroup-usage.ts';
import { ExpositionWriter } from '../telemetry/exposition-writer.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type MachineDescription, writeCadvisorMetrics } from './cadvisor-metrics.ts';
import type { DiskSample, DiskUsage } from './disk-usage.ts';
import type { NodeSample } from './node-sample.ts';
import type { NodeSampler } from './node-sampler.ts';
import { writeResourceError, writeResourceMetrics } from './resource-metrics.ts';
import { cpuAndMemorySummary, fullSummary } from './summary.ts';
import type { Summary } from './summary-types.ts';
import type { VolumeSource } from './volume-source.ts';

/** How old figures may be that are handed out, milliseconds. */
export interface StatsAges {
  /** Of cgroups and networks. */
  readonly usageMs: number;
  /** Of file systems, layers and logs. */
  readonly disksMs: number;
}

/** The logs of one container. */
export type ContainerLog = Readonly<Record<'uid' | 'namespace' | 'pod' | 'container', string>> & {
  readonly bytes: number;
};

export interface NodeStatsOptions {
  readonly nodeName: string;
  readonly sampler: Pick<NodeSampler, 'sample'>;
  readonly disks: Pick<DiskUsage, 'sample'>;
  readonly volumes: VolumeSource;
  readonly machine: MachineDescription;
  readonly ages: StatsAges;
  readonly logger: Logger;
}

/** Figures of cgroups are not kept longer than this, milliseconds, however seldom disks are looked at. */
const freshMs = 1000;

/** Ages for a `--housekeeping-interval`. */
export function agesFor(housekeepingMs: number): StatsAges {
  return { usageMs: Math.min(freshMs, housekeepingMs), disksMs: housekeepingMs };
}

export class NodeStats {
  readonly #options: NodeStatsOptions;
  /** Texts grow to the same size again and again; each keeps its memory. */
  #free: ExpositionWriter[] = [];
  #isFailing = false;

  constructor(options: NodeStatsOptions) {
    this.#options = options;
  }

  /** The answer of `/stats/summary`; `onlyCpuAndMemory` for `only_cpu_and_memory=true`. */
  async summary(onlyCpuAndMemory: boolean): Promise<Summary> {
    const { nodeName, volumes } = this.#options;
    if (onlyCpuAndMemory) return cpuAndMemorySummary(nodeName, await this.#sample('core'));
    const [sample, disks] = await Promise.all([this.#sample('core'), this.disks()]);
    return fullSummary(nodeName, sample, disks, volumes);
  }

  /** The text of `/metrics/resource`. A failure to measure is told in it, as on a kubelet; the log says why. */
  async resourceMetrics<T>(send: (text: Buffer) => Promise<T>): Promise<T> {
    let sample: NodeSample | undefined;
    try {
      sample = await this.#sample('core');
      this.#isFailing = false;
    } catch (error) {
      // Once, however often scrapers ask.
      if (!this.#isFailing) {
        this.#options.logger.error('Measuring the node failed; /metrics/resource has no figures', error);
      }
      this.#isFailing = true;
    }
    return await this.#write((writer) => {
      if (sample) writeResourceMetrics(writer, sample);
      else writeResourceError(writer);
    }, send);
  }

  /** The text of `/metrics/cadvisor`. */
  async cadvisorMetrics<T>(send: (text: Buffer) => Promise<T>): Promise<T> {
    const { machine } = this.#options;
    const [sample, disks] = await Promise.all([this.#sample('all'), this.disks()]);
    return await this.#write((writer) => writeCadvisorMetrics(writer, { sample, disks, machine }), send);
  }

  /** What lies on disks, for those that watch them. */
  disks(): Promise<DiskSample> {
    const { disks, ages } = this.#options;
    return disks.sample(ages.disksMs);
  }

  /** Bytes that the logs of containers occupy. */
  async containerLogs(): Promise<ContainerLog[]> {
    const { logs } = await this.disks();
    return [...logs.values()].map(({ bytes, owner: { directory: _, ...labels } }) => ({ ...labels, bytes }));
  }

  #sample(detail: UsageDetail): Promise<NodeSample> {
    const { sampler, ages } = this.#options;
    return sampler.sample(detail, ages.usageMs);
  }

  /** The memory of a text belongs to its answer until that is sent. */
  async #write<T>(fill: (writer: ExpositionWriter) => void, send: (text: Buffer) => Promise<T>): Promise<T> {
    const writer = this.#free.pop() ?? new ExpositionWriter();
    fill(writer);
    try {
      return await send(writer.take());
    } finally {
      // One for the usual scraper; what a crowd needed is given back.
      if (this.#free.length === 0) this.#free.push(writer);
    }
  }
}
