/**
 * The last status of a deleted pod: nobody will look again, so a container without an end gets an unknown
 * one, as the controllers that wait for the pod's end expect.
 */
import type { ContainerPlace } from '../../kubernetes/init-containers.ts';
import type { ContainerStatus } from '../../kubernetes/types.ts';
import type { PodView } from '../pod-view.ts';
import { isOver } from './pod-phase.ts';

/** `statuses`, by container name, as they are told when the API server lets the pod's object go. */
export function lastWords(
  view: PodView,
  containers: readonly ContainerPlace[],
  statuses: Readonly<Record<string, ContainerStatus>>,
): Readonly<Record<string, ContainerStatus>> {
  const { intent } = view;
  if (intent.kind !== 'terminate' || !intent.releasesObject || !isOver(view)) return statuses;
  // In a pod whose init containers never came to an end, nothing else was ever tried.
  if (!isInitialized(containers, statuses)) return statuses;
  const told: Record<string, ContainerStatus> = { ...statuses };
  for (const { container, kind } of containers) {
    const status = statuses[container.name];
    if (kind !== 'regular' || !status || status.state?.terminated) continue;
    told[container.name] = { ...status, ready: false, started: false, state: { terminated: unknownEnd } };
  }
  return told;
}

const unknownEnd = {
  reason: 'ContainerStatusUnknown',
  message: 'The container could not be located when the pod was terminated',
  exitCode: 137,
};

function isInitialized(
  containers: readonly ContainerPlace[],
  statuses: Readonly<Record<string, ContainerStatus>>,
): boolean {
  return containers.every(
    ({ container, kind }) => kind !== 'init' || statuses[container.name]?.state?.terminated?.exitCode === 0,
  );
}
