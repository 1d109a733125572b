/**
 * The first talk with a runtime: that it is there, speaks CRI v1, and what it can do. It waits for a runtime
 * that is still starting, and tells the operator once why it waits.
 */
import { type Clock, sleep } from '../../concurrency/clock.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { ContainerRuntime } from '../container-runtime.ts';
import type {
  RuntimeCondition,
  RuntimeConfigResponse,
  RuntimeFeatures,
  RuntimeHandler,
} from '../generated/cri.ts';
import { CgroupDriver } from '../generated/cri.ts';
import { RuntimeCallError } from '../runtime-call-error.ts';

/** The API version that the agent names to the runtime; the kubelet's. */
const requestedVersion = '0.1.0';
const firstWaitMs = 100;
const longestWaitMs = 5000;
const configTries = 3;
const configRetryMs = 2000;

/** What the runtime says of itself at start-up. */
export interface RuntimeFacts {
  /** `containerd`, `cri-o`, … */
  readonly name: string;
  readonly version: string;
  /** `v1` */
  readonly apiVersion: string;
  /** Absent when the runtime does not tell: the configured driver counts then. */
  readonly cgroupDriver?: 'cgroupfs' | 'systemd';
  /** Runtime handlers with their features; empty when the runtime does not tell. */
  readonly handlers: readonly RuntimeHandler[];
  readonly features?: RuntimeFeatures;
  /** `RuntimeReady`, `NetworkReady` and others, as they were at the time. */
  readonly conditions: readonly RuntimeCondition[];
}

/** The runtime answers, but speaks no CRI v1: waiting would not help. */
export class UnsupportedRuntimeError extends Error {
  override readonly name = 'UnsupportedRuntimeError';
}

export interface RuntimeCheckOptions {
  readonly runtime: Pick<ContainerRuntime, 'version' | 'status' | 'runtimeConfig'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Milliseconds after which an unreachable runtime is an error; without limit by default. */
  readonly giveUpAfterMs?: number;
}

/**
 * Resolves when the runtime has answered. Tries again with a back-off of 100 ms to 5 s while it cannot be
 * reached. Rejects with `UnsupportedRuntimeError`, with the last `RuntimeCallError` after `giveUpAfterMs`, or
 * with the reason of `signal`.
 */
export async function checkRuntime(options: RuntimeCheckOptions): Promise<RuntimeFacts> {
  const { runtime, signal } = options;
  const { version, status } = await withRetry(options, async () => ({
    version: await runtime.version({ version: requestedVersion }, { signal }),
    status: await runtime.status({ verbose: false }, { signal }),
  }));
  if (version.runtimeApiVersion !== 'v1') {
    throw new UnsupportedRuntimeError(
      `${version.runtimeName} ${version.runtimeVersion} speaks version "${version.runtimeApiVersion}" of CRI, ` +
        'the agent speaks v1: use a newer runtime (containerd 1.6, CRI-O 1.20 or later)',
    );
  }
  const config = await readConfig(options);
  return {
    name: version.runtimeName,
    version: version.runtimeVersion,
    apiVersion: version.runtimeApiVersion,
    ...(config?.linux && { cgroupDriver: driverName(config.linux.cgroupDriver) }),
    handlers: status.runtimeHandlers,
    ...(status.features && { features: status.features }),
    conditions: status.status?.conditions ?? [],
  };
}

async function withRetry<Answer>(options: RuntimeCheckOptions, ask: () => Promise<Answer>): Promise<Answer> {
  const { clock, logger, signal, giveUpAfterMs = Number.POSITIVE_INFINITY } = options;
  const start = clock.now();
  let lastMessage = '';
  for (let wait = firstWaitMs; ; wait = Math.min(2 * wait, longestWaitMs)) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof RuntimeCallError)) throw error;
      if (error.unimplemented) throw new UnsupportedRuntimeError(error.message, { cause: error });
      if (clock.now() - start + wait > giveUpAfterMs) throw error;
      if (error.message !== lastMessage)
        logger.warn('Waiting for the container runtime', { err: error.message });
      lastMessage = error.message;
      await sleep(clock, wait, signal);
    }
  }
}

/** The runtime's configuration, or undefined when it cannot be had: it only refines what is configured. */
async function readConfig(options: RuntimeCheckOptions): Promise<RuntimeConfigResponse | undefined> {
  const { runtime, clock, logger, signal } = options;
  for (let attempt = 1; ; attempt++) {
    try {
      return await runtime.runtimeConfig({}, { signal });
    } catch (error) {
      if (!(error instanceof RuntimeCallError)) throw error;
      if (error.unimplemented) return undefined;
      if (attempt === configTries) {
        logger.warn('The runtime does not tell its cgroup driver, using the configured one', {
          err: error.message,
        });
        return undefined;
      }
      await sleep(clock, configRetryMs, signal);
    }
  }
}

function driverName(driver: CgroupDriver): 'cgroupfs' | 'systemd' {
  return driver === CgroupDriver.SYSTEMD ? 'systemd' : 'cgroupfs';
}
