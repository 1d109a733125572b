/**
 * Starting a whole pod over in place, because a container has ended in a way its rules answer with
 * `RestartAllContainers`: everything is stopped and removed, then the pod comes up again in its sandbox,
 * init containers first.
 *
 * The container that caused it is removed last. As long as it is there it says what is going on, so a
 * restarted agent goes on where the former one was.
 */
import { podContainers } from '../kubernetes/init-containers.ts';
import { restartDecision } from '../kubernetes/restart-policy.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ObservedContainer, ObservedSandbox } from '../runtime/observed-pod.ts';
import { isLive, newestInstance, usableSandbox } from './instances.ts';
import type { PlanDraft } from './plan.ts';
import { planStop } from './plan-stop.ts';
import type { PodView } from './pod-view.ts';
import { isWaiting, restartBackoff } from './restart-backoff.ts';

/** What containers are said to wait for, and to have ended by, while the whole pod starts over. */
export const restartingAllContainers = {
  reason: 'RestartingAllContainers',
  message: 'The container is removed because RestartAllContainers in place',
} as const;

/** True while the pod is being cleared for a new start; the plan then holds nothing else. */
export function planRestartAll(draft: PlanDraft, view: PodView, sandbox: ObservedSandbox): boolean {
  const cause = causeIn(view, sandbox);
  if (!cause) return false;
  for (const { container, kind } of podContainers(view.pod.spec)) {
    if (kind !== 'ephemeral') draft.wait(container.name, restartingAllContainers);
  }
  const others = view.observed.containers.filter(({ id }) => id !== cause.id);
  const live = others.filter(isLive);
  for (const container of live) {
    planStop(draft, view, {
      container,
      graceSeconds: 0,
      reason: `Container ${cause.name} restarts all containers`,
    });
  }
  if (live.length > 0) return true;
  if (others.length > 0) {
    for (const container of others) planRemoval(draft, container, 0);
    return true;
  }
  const backoff = restartBackoff(cause, view.node);
  if (isWaiting(backoff, view.now)) draft.wakeAt(backoff.startAt);
  else planRemoval(draft, cause, backoff.nextBackoffMs);
  return true;
}

/** Whether the pod is being started over right now. */
export function isRestartingAll(view: PodView): boolean {
  const sandbox = usableSandbox(view.observed, view.pod.spec.hostNetwork === true);
  return sandbox !== undefined && causeIn(view, sandbox) !== undefined;
}

/** Whether the pod has a rule that could start it over. */
export function mayRestartAll({ spec }: Pod): boolean {
  return [...podContainers(spec)].some(({ container }) =>
    container.restartPolicyRules?.some(({ action }) => action === 'RestartAllContainers'),
  );
}

function causeIn({ pod, observed, node }: PodView, sandbox: ObservedSandbox): ObservedContainer | undefined {
  if (!node.restartAllContainers || !mayRestartAll(pod)) return undefined;
  for (const { container, kind } of podContainers(pod.spec)) {
    const newest = newestInstance(observed, container.name, sandbox.id);
    if (newest?.state !== 'Exited') continue;
    if (restartDecision(container, kind, pod.spec, newest.exitCode) === 'RestartAllContainers') return newest;
  }
  return undefined;
}

function planRemoval(
  draft: PlanDraft,
  { id, name, attempt }: ObservedContainer,
  nextBackoffMs: number,
): void {
  draft.add({
    kind: 'remove-container',
    container: name,
    containerId: id,
    // The log tells what happened, and after a restart of the agent how often the container has run.
    keepsLog: true,
    next: { attempt: attempt + 1, backoffMs: nextBackoffMs },
    reason: restartingAllContainers.message,
  });
}
