/** Builds what keeps the logs of containers small. */
import { LogRotation, type RunningContainerLog } from '../logs/log-rotation.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { NodeAgentOptions } from './node-agent.ts';

export interface LogRooms {
  readonly runtime: Pick<ContainerRuntime, 'reopenContainerLog'>;
  readonly observer: RuntimeObserver;
  readonly workers: PodWorkers;
}

export function buildLogRotation(
  { settings, clock, logger }: Pick<NodeAgentOptions, 'settings' | 'clock' | 'logger'>,
  { runtime, observer, workers }: LogRooms,
): LogRotation {
  return new LogRotation({
    settings: settings.logRotation,
    running: () => runningLogs(workers, observer),
    reopen: async (containerId, signal) => {
      await runtime.reopenContainerLog({ containerId }, { signal });
    },
    clock,
    logger: logger.with({ logger: 'log-rotation' }),
  });
}

function* runningLogs(workers: PodWorkers, observer: RuntimeObserver): Generator<RunningContainerLog> {
  for (const { pod } of workers.all()) {
    for (const { id, state, logPath } of observer.pod(pod.metadata.uid).containers) {
      if (state === 'Running' && logPath) yield { containerId: id, path: logPath };
    }
  }
}
