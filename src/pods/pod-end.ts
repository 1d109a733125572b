/**
 * Whether a pod has come to its end on its own: its containers are done and none may start again, an init
 * container has failed for good, or its time is up.
 */

import { containerHash } from '../kubernetes/hash.ts';
import { podContainers } from '../kubernetes/init-containers.ts';
import { restartsAfterProbeFailure } from '../kubernetes/restart-policy.ts';
import { newestInstance, usableSandbox } from './instances.ts';
import type { PodView, TerminalVerdict } from './pod-view.ts';
import { mayRestart } from './restart-rule.ts';

/** The end of a pod whose `activeDeadlineSeconds` are over. */
export const deadlineExceeded: TerminalVerdict = {
  phase: 'Failed',
  reason: 'DeadlineExceeded',
  message: 'Pod was active on the node longer than the specified deadline',
};

/** The end the pod has come to by itself; `undefined` while it may go on. */
export function podEnd(view: PodView): TerminalVerdict | undefined {
  const deadline = activeDeadline(view);
  if (deadline !== undefined && view.now >= deadline) return deadlineExceeded;
  return containersEnd(view);
}

/**
 * How a pod ends that was deleted before it came to an end of its own, once no process of it is left: well
 * only when each of its containers has run and returned 0.
 */
export function endByDeletion({ pod, observed }: PodView): TerminalVerdict {
  const endedWell = pod.spec.containers.every(({ name }) => {
    const instance = newestInstance(observed, name);
    return instance?.state === 'Exited' && instance.exitCode === 0;
  });
  return { phase: endedWell && pod.spec.containers.length > 0 ? 'Succeeded' : 'Failed' };
}

/** When `activeDeadlineSeconds` runs out, epoch milliseconds. */
export function activeDeadline({ pod, memory }: PodView): number | undefined {
  const seconds = pod.spec.activeDeadlineSeconds;
  return seconds === undefined || memory.startTime === undefined
    ? undefined
    : memory.startTime + seconds * 1000;
}

/**
 * True while the pod is on its way to its end because a probe has failed for good: every main container is
 * over or is being stopped for that, and none may run again.
 */
export function endsByProbe(view: Pick<PodView, 'pod' | 'observed' | 'memory' | 'health'>): boolean {
  const { pod, observed, health } = view;
  let failing = false;
  for (const spec of pod.spec.containers) {
    const instance = newestInstance(observed, spec.name);
    if (!instance) return false;
    const isLast = instance.state === 'Running' && health[instance.id]?.failed !== undefined;
    if (isLast && restartsAfterProbeFailure(spec, 'regular', pod.spec)) return false;
    if (!isLast && (instance.state !== 'Exited' || mayRestart(view, spec, 'regular', instance))) return false;
    failing ||= isLast;
  }
  return failing;
}

function containersEnd(view: PodView): TerminalVerdict | undefined {
  const { pod, observed } = view;
  const sandbox = usableSandbox(observed, pod.spec.hostNetwork === true);
  let allExitedZero = true;
  for (const { container: spec, kind } of podContainers(pod.spec)) {
    if (kind === 'init') {
      const instance = newestInstance(observed, spec.name, sandbox?.id);
      const failed = instance?.state === 'Exited' && instance.exitCode !== 0;
      if (failed && !mayRestart(view, spec, kind, instance)) return { phase: 'Failed' };
    } else if (kind === 'regular') {
      const instance = newestInstance(observed, spec.name);
      if (instance?.state !== 'Exited' || mayRestart(view, spec, kind, instance)) return undefined;
      // Stopped for a new image, which is to run whatever the policy says of ends.
      if (instance.hash !== containerHash(spec)) return undefined;
      allExitedZero &&= instance.exitCode === 0;
    }
  }
  return { phase: allExitedZero ? 'Succeeded' : 'Failed' };
}
