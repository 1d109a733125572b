/**
 * The floor: the same runtime and the same pods by bare CRI calls, with nobody who decides, records, links
 * logs or makes cgroups. What an agent takes longer than this is its own doing.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/concurrency/clock.ts';
import { CriClient } from '../src/runtime/cri/cri-client.ts';
import {
  ContainerConfig,
  ImageSpec,
  LinuxContainerConfig,
  LinuxPodSandboxConfig,
  PodSandboxConfig,
} from '../src/runtime/generated/cri.ts';
import { silentMetrics } from '../src/telemetry/metrics.ts';
import { now } from './measure.ts';

interface FloorPod {
  readonly sandbox: string;
  readonly container: string;
}

/** Seconds since the first call. */
export interface StartTimes {
  /** Until the runtime says the last container was running. */
  readonly running: number;
  /** Until the last answer was in. */
  readonly answered: number;
}

const empty = Buffer.alloc(0);
const graceSeconds = 30n;
const nanosecondsPerMillisecond = 1e6;

export interface FloorOptions {
  readonly endpoint: string;
  readonly image: string;
  readonly cgroupParent: string;
  readonly logDirectory: string;
  /** How many pods are worked on at once. */
  readonly inFlight: number;
}

export class Floor {
  readonly runtime: CriClient;
  readonly #options: FloorOptions;
  readonly #pods: FloorPod[] = [];
  #made = 0;

  constructor(options: FloorOptions) {
    this.#options = options;
    this.runtime = new CriClient({
      endpoint: options.endpoint,
      clock: systemClock,
      metrics: silentMetrics,
    });
  }

  /** Starts `count` pods. */
  async start(count: number, stop: AbortSignal): Promise<StartTimes> {
    const names = Array.from({ length: count }, () => `floor-${++this.#made}`);
    for (const name of names) mkdirSync(join(this.#options.logDirectory, name), { recursive: true });
    const before = now();
    await this.#atOnce(count, stop, async () => {
      this.#pods.push(await this.#startOne(names.pop() ?? ''));
    });
    const answered = now();
    const running = await lastStart(
      this.runtime,
      this.#pods.map(({ container }) => container),
    );
    return { running: (running - before) / 1000, answered: (answered - before) / 1000 };
  }

  /** Ends all pods that were started; seconds until the last is gone. */
  async end(stop: AbortSignal): Promise<number> {
    const before = now();
    await this.#atOnce(this.#pods.length, stop, async () => {
      const pod = this.#pods.pop();
      if (pod === undefined) return;
      const podSandboxId = pod.sandbox;
      await this.runtime.stopContainer({ containerId: pod.container, timeout: graceSeconds });
      await this.runtime.stopPodSandbox({ podSandboxId });
      await this.runtime.removePodSandbox({ podSandboxId });
    });
    return (now() - before) / 1000;
  }

  async close(): Promise<void> {
    await this.runtime.close();
  }

  async #startOne(name: string): Promise<FloorPod> {
    const { image, cgroupParent, logDirectory } = this.#options;
    const sandboxConfig: PodSandboxConfig = {
      ...PodSandboxConfig.decode(empty),
      metadata: { name, uid: `uid-${name}`, namespace: 'floor', attempt: 0 },
      hostname: name,
      logDirectory: join(logDirectory, name),
      linux: { ...LinuxPodSandboxConfig.decode(empty), cgroupParent },
    };
    const { podSandboxId } = await this.runtime.runPodSandbox({ config: sandboxConfig, runtimeHandler: '' });
    const config: ContainerConfig = {
      ...ContainerConfig.decode(empty),
      metadata: { name: 'main', attempt: 0 },
      image: { ...ImageSpec.decode(empty), image },
      logPath: 'main.log',
      linux: LinuxContainerConfig.decode(empty),
    };
    const { containerId } = await this.runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await this.runtime.startContainer({ containerId });
    return { sandbox: podSandboxId, container: containerId };
  }

  async #atOnce(count: number, stop: AbortSignal, task: () => Promise<void>): Promise<void> {
    let left = count;
    const work = async (): Promise<void> => {
      while (left-- > 0) {
        stop.throwIfAborted();
        await task();
      }
    };
    const workers = Array.from({ length: Math.min(count, this.#options.inFlight) }, work);
    await Promise.all(workers);
  }
}

/** When the last of these containers began to run, by the runtime's own clock: epoch milliseconds. */
export async function lastStart(runtime: CriClient, containers: readonly string[]): Promise<number> {
  let last = 0;
  for (const containerId of containers) {
    const { status } = await runtime.containerStatus({ containerId, verbose: false });
    last = Math.max(last, Number(status?.startedAt ?? 0n) / nanosecondsPerMillisecond);
  }
  return last;
}
