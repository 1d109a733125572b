/** What the workers of pods need of the world, from the rooms that know it. */
import type { NodeAgentSettings } from '../config/settings.ts';
import { announcements } from '../pods/announcements.ts';
import { executeWith } from '../pods/executors/executors.ts';
import type { PodMetrics } from '../pods/pod-metrics.ts';
import type { PodWorkerPorts } from '../pods/pod-worker-ports.ts';
import type { Prober } from '../probes/prober.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { NodeAgentOptions } from './agent-context.ts';
import type { Membership } from './cluster/membership.ts';
import type { PodChanges } from './pod-changes.ts';
import type { BuiltPodServices } from './pod-services-builder.ts';
import type { RuntimeLink } from './runtime-link.ts';

export interface WorkerRooms {
  readonly built: BuiltPodServices;
  readonly link: RuntimeLink;
  readonly membership: Membership;
  readonly observer: RuntimeObserver;
  readonly prober: Prober;
  readonly podMetrics: PodMetrics;
  /** Told whenever a worker has looked at its pod. */
  readonly changes: PodChanges;
  readonly runtimeName: string;
}

export function workerPorts(
  options: Pick<NodeAgentOptions, 'settings' | 'featureEnabled' | 'clock' | 'logger' | 'onStep'>,
  rooms: WorkerRooms,
): PodWorkerPorts {
  const { settings, featureEnabled, clock, logger, onStep } = options;
  const { built, link, membership, observer, prober, podMetrics, changes, runtimeName } = rooms;
  return {
    clock,
    logger,
    runtimeName,
    get hostIps() {
      return membership.node.hostIps();
    },
    observe: (uid) => observer.pod(uid),
    health: (update) => prober.update(update),
    nodeRules: () => ({
      initialRestartBackoffMs: settings.restartBackOff.initialMs,
      maxRestartBackoffMs: settings.restartBackOff.maxMs,
      deadContainersKept: deadContainersKept(settings.deadContainers),
      recordsDeletion: settings.cluster?.restorePodsOffline ?? false,
      restartAllContainers: featureEnabled('RestartAllContainersOnContainerExits'),
      ...(link.networkProblem === undefined ? {} : { networkNotReady: link.networkProblem }),
    }),
    execute: podMetrics.around(executeWith(built.services, onStep)),
    readMessages: built.readMessages,
    pulling: (uid) => built.pullMessages.of(uid),
    recursiveReadOnly: (pod) => built.recursiveReadOnly(pod),
    report: (report) => {
      membership.pods.report(report);
      podMetrics.report(report);
      changes.tell(report.pod.metadata.uid);
      for (const { object, type, reason, message } of announcements(report)) {
        membership.events.event(object, type, reason, message);
      }
    },
  };
}

/** Where an age is asked for, only the collector, which knows ages, removes dead containers. */
function deadContainersKept({ perContainer, minAgeMs }: NodeAgentSettings['deadContainers']): number {
  return perContainer < 0 || minAgeMs > 0 ? Number.POSITIVE_INFINITY : perContainer;
}
