/** Builds what writes checkpoints of containers, where the gate ContainerCheckpoint is on. */
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { findContainer } from '../kubernetes/init-containers.ts';
import { newestInstance } from '../pods/instances.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import { checkpointRoutes } from '../server/checkpoint-routes.ts';
import type { NodeRoute } from '../server/route.ts';

export interface CheckpointRooms {
  readonly runtime: Pick<ContainerRuntime, 'checkpointContainer'>;
  readonly observer: Pick<RuntimeObserver, 'pod'>;
  /** Undefined until there are any. */
  readonly workers: () => Pick<PodWorkers, 'named'> | undefined;
  readonly rootDirectory: string;
  readonly clock: Clock;
}

export function buildCheckpointRoutes(rooms: CheckpointRooms): NodeRoute[] {
  const { runtime, observer, workers, rootDirectory, clock } = rooms;
  return checkpointRoutes({
    pod(namespace, name) {
      const pod = workers()?.named(`${namespace}/${name}`)?.pod;
      if (!pod) return undefined;
      return {
        hasContainer: (container) => findContainer(pod.spec, container) !== undefined,
        running(container) {
          const newest = newestInstance(observer.pod(pod.metadata.uid), container);
          return newest?.state === 'Running' ? newest.id : undefined;
        },
      };
    },
    checkpoint: async (request, signal) => void (await runtime.checkpointContainer(request, { signal })),
    directory: join(rootDirectory, 'checkpoints'),
    now: () => clock.now(),
  });
}
