/** The conditions of a pod that the kubelet decides; all others in its status belong to somebody else. */
import type { PodCondition } from './types.ts';

const types: ReadonlySet<string> = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
  'AllContainersRestarting',
]);

/** The pod was ended for the sake of others. Any component may set it; the reason tells which one did. */
export const disruption = { type: 'DisruptionTarget', reason: 'TerminationByKubelet' } as const;

/** Whether the kubelet is who decides this condition. */
export function isKubeletCondition({ type, reason }: Pick<PodCondition, 'type' | 'reason'>): boolean {
  return types.has(type) || (type === disruption.type && reason === disruption.reason);
}
