/**
 * Which changes of a status are worth a request of their own. Pure.
 *
 * At once goes what somebody acts on:
 * - the phase: jobs count ends, `kubectl run -i` and `kubectl wait` go on;
 * - `Ready` and `ContainersReady`, either way: services send traffic or stop to;
 * - a condition somebody asked for by a spec (`AllContainersRestarting`);
 * - an ephemeral container's state: somebody sits before `kubectl debug` and waits for it;
 * - the end of a resize or anything else the spec's generation brought about (`observedGeneration`), since
 *   whoever changed the spec waits for it. The first status of a pod, which brings the first generation, is
 *   no such answer.
 *
 * Everything else is for people who look: that a pod is being set up, its address before it is ready, why a
 * container waits, how far init containers are, how often something was restarted. It waits a moment for
 * company, so a pod that starts without trouble needs one patch to get from nothing to ready.
 */
import { isDeepStrictEqual } from 'node:util';
import type { PodStatus } from '../../kubernetes/types.ts';

/** How long news that nobody acts on wait for company, milliseconds. */
export const companyMs = 1000;

/** Whether the API server is to know at once, given what it knows. */
export function isUrgent(known: PodStatus, wanted: PodStatus): boolean {
  if ((known.phase ?? 'Pending') !== (wanted.phase ?? 'Pending')) return true;
  if (known.containerStatuses && known.observedGeneration !== wanted.observedGeneration) return true;
  for (const type of ['Ready', 'ContainersReady', 'AllContainersRestarting']) {
    if (isTrue(known, type) !== isTrue(wanted, type)) return true;
  }
  return !isDeepStrictEqual(ephemeralStates(known), ephemeralStates(wanted));
}

function isTrue({ conditions = [] }: PodStatus, type: string): boolean {
  return conditions.some((condition) => condition.type === type && condition.status === 'True');
}

/** By name: `running`, `terminated`; what only waits is not there. */
function ephemeralStates({ ephemeralContainerStatuses = [] }: PodStatus): Record<string, string> {
  return Object.fromEntries(
    ephemeralContainerStatuses.flatMap(({ name, state }) => {
      if (state?.running) return [[name, 'running']];
      return state?.terminated ? [[name, 'terminated']] : [];
    }),
  );
}
