/** Builds what clears away images, dead containers and the leavings of pods. */
import { podContainers } from '../kubernetes/init-containers.ts';
import { runtimeLabels } from '../kubernetes/pod-identity.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import { PodGarbage, type PodGarbageOptions } from '../runtime/garbage/pod-garbage.ts';
import { isNotFound } from '../runtime/runtime-call-error.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { PodSources } from '../sources/pod-sources.ts';
import type { NodeAgentOptions } from './agent-context.ts';
import type { BuiltPodServices } from './pod-services-builder.ts';

export interface PodGarbageRooms {
  readonly built: BuiltPodServices;
  readonly observer: RuntimeObserver;
  readonly workers: PodWorkers;
  readonly sources: PodSources;
  readonly nodeName: string;
  readonly events: PodGarbageOptions['events'];
}

/**
 * The collector of dead containers and of what gone pods have left, on the rooms of this agent; not yet
 * running.
 */
export function buildPodGarbage(
  { settings, clock, logger, metrics }: Pick<NodeAgentOptions, 'settings' | 'clock' | 'logger' | 'metrics'>,
  { built, observer, workers, sources, nodeName, events }: PodGarbageRooms,
): PodGarbage {
  const { directories, services, volumes } = built;
  const { runtime, cgroups } = services;
  return new PodGarbage({
    runtime: built.runtime,
    rules: settings.deadContainers,
    instances: () =>
      [...workers.all()].map(({ pod: { metadata, spec } }) => {
        // Containers that the spec no longer names are the worker's to end.
        const names = new Set([...podContainers(spec)].map(({ container }) => container.name));
        const containers = observer.pod(metadata.uid).containers.filter(({ name }) => names.has(name));
        return { uid: metadata.uid, isGone: false, containers };
      }),
    async removeContainer({ podUid, container: { id, name, attempt } }, signal) {
      const pod = workers.get(podUid)?.pod;
      if (!pod) return;
      try {
        await runtime.removeContainer({ containerId: id }, { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      await directories.removeInstance(pod, name, id, attempt);
      observer.removedContainer(id);
    },
    desired: () => (sources.ready ? new Set(sources.pods.keys()) : undefined),
    isLookedAfter: (uid) => workers.get(uid) !== undefined,
    directories,
    // The cgroup of a pod whose record is lost is found by its uid, as its volumes are.
    volumes: {
      async tearDown(uid, signal) {
        await volumes.tearDown(uid, signal);
        await cgroups.removePod(uid, { signal });
      },
    },
    podLogsDirectory: settings.podLogsDirectory,
    containerLogsDirectory: built.containerLogsDirectory,
    podUidLabel: runtimeLabels.podUid,
    nodeName,
    events,
    metrics,
    clock,
    logger,
  });
}
