/**
 * What the API server's object of a pod tells the node beyond what is wanted of the pod: an end that was
 * decided elsewhere or by an earlier agent, and what others have written into the status. Pure.
 */
import { disruption, isKubeletCondition } from '../kubernetes/kubelet-conditions.ts';
import { isStaticPod } from '../kubernetes/pod-identity.ts';
import type { Pod, PodCondition, PodStatus } from '../kubernetes/types.ts';
import type { TerminalVerdict } from './pod-view.ts';

/** The end the API server has on record; a pod with one is never run again. */
export function recordedEnd(pod: Pod): TerminalVerdict | undefined {
  if (isStaticPod(pod)) return undefined;
  const { phase, reason, message, conditions, containerStatuses, initContainerStatuses } = pod.status ?? {};
  if (phase !== 'Succeeded' && phase !== 'Failed') return undefined;
  // An end without a word about any container is that of a pod no node has let in.
  const refused = !containerStatuses?.length && !initContainerStatuses?.length;
  const disrupted = conditions?.find((condition) => condition.type === disruption.type);
  return {
    phase,
    ...(reason && { reason }),
    ...(message && { message }),
    ...(disrupted?.reason === disruption.reason && { disruption: disrupted.message ?? '' }),
    ...(refused && { refused }),
  };
}

/** `status.startTime` as the API server has it, epoch milliseconds. */
export function recordedStart(pod: Pod): number | undefined {
  const text = isStaticPod(pod) ? undefined : pod.status?.startTime;
  const time = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isFinite(time) ? time : undefined;
}

/** The conditions in the API server's object that are not the node's: readiness gates, for example. */
export function foreignConditions(pod: Pod): PodCondition[] {
  if (isStaticPod(pod)) return [];
  return (pod.status?.conditions ?? []).filter((condition) => !isKubeletCondition(condition));
}

/**
 * The status the next one is built on: the node's last one, with what others have written since. Static
 * pods are nobody else's business.
 */
export function statusToBuildOn(pod: Pod, last: PodStatus | undefined): PodStatus | undefined {
  if (isStaticPod(pod) || pod.status === undefined) return last;
  if (last === undefined) return pod.status;
  const own = (last.conditions ?? []).filter(isKubeletCondition);
  return { ...last, conditions: [...own, ...foreignConditions(pod)] };
}
