/**
 * Whether a pod has come to its end on its own: its containers are done and none may start again, an init
 * container has failed for good, or its time is up.
 */

import { podContainers } from '../kubernetes/init-containers.ts';
import { newestInstance, usableSandbox } from './instances.ts';
import type { PodView, TerminalVerdict } from './pod-view.ts';
import { mayRestart } from './restart-rule.ts';

export const deadlineExceeded: TerminalVerdict = {
  phase: 'Failed',
  reason: 'DeadlineExceeded',
  message: 'Pod was active on the node longer than the specified deadline',
};

export function podEnd(view: PodView): TerminalVerdict | undefined {
  const deadline = activeDeadline(view);
  if (deadline !== undefined && view.now >= deadline) return deadlineExceeded;
  return containersEnd(view);
}

/** When `activeDeadlineSeconds` runs out, epoch milliseconds. */
export function activeDeadline({ pod, memory }: PodView): number | undefined {
  const seconds = pod.spec.activeDeadlineSeconds;
  return seconds === undefined || memory.startTime === undefined
    ? undefined
    : memory.startTime + seconds * 1000;
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
      allExitedZero &&= instance.exitCode === 0;
    }
  }
  return { phase: allExitedZero ? 'Succeeded' : 'Failed' };
}
