/** Builds what answers for the logs of containers, and what keeps them small. */
import { findContainer } from '../kubernetes/init-containers.ts';
import { LogRotation, type RunningContainerLog } from '../logs/log-rotation.ts';
import { type LoggedPod, serveContainerLog } from '../logs/serve-container-log.ts';
import { containerProgress } from '../pods/container-progress.ts';
import { instancesOf } from '../pods/instances.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { NodeRoute } from '../server/route.ts';
import type { NodeAgentOptions } from './agent-context.ts';
import type { PodChanges } from './pod-changes.ts';

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

export interface LogRoutesInput {
  /** Undefined until there are any. */
  readonly workers: () => PodWorkers | undefined;
  readonly observer: RuntimeObserver;
  readonly changes: PodChanges;
}

export function logRoutes(
  { clock, featureEnabled }: Pick<NodeAgentOptions, 'clock' | 'featureEnabled'>,
  input: LogRoutesInput,
): NodeRoute[] {
  const ports = {
    pod: (namespace: string, name: string) => loggedPod(`${namespace}/${name}`, input),
    streamsSplit: featureEnabled('PodLogsQuerySplitStreams'),
    clock,
  };
  return [
    {
      methods: ['GET'],
      path: '/containerLogs/{podNamespace}/{podID}/{containerName}',
      debugging: true,
      handle: ({ response, query, signal, parameters }) => {
        const { podNamespace = '', podID = '', containerName = '' } = parameters;
        const request = { namespace: podNamespace, pod: podID, container: containerName, query, signal };
        return serveContainerLog(request, response, ports);
      },
    },
  ];
}

function loggedPod(key: string, { workers, observer, changes }: LogRoutesInput): LoggedPod | undefined {
  const worker = workers()?.named(key);
  if (!worker) return undefined;
  const { uid } = worker.pod.metadata;
  return {
    status: worker.status,
    hasContainer: (name) => findContainer(worker.pod.spec, name) !== undefined,
    instances: (name) => instancesOf(observer.pod(uid), name),
    follow: (name) => ({
      progress() {
        // Another worker may have taken the pod over, and in the end there is none.
        const current = workers()?.get(uid);
        return current && containerProgress(current, observer.pod(uid), name);
      },
      subscribe: (listener) => changes.subscribe(uid, listener),
    }),
  };
}
