/** The way up: directories and cgroup, volumes, sandbox, then the containers in their order. */
import { podContainers } from '../kubernetes/init-containers.ts';
import type { ObservedSandbox } from '../runtime/observed-pod.ts';
import { decideContainers } from './decide-containers.ts';
import { planRemains } from './decide-remains.ts';
import { planRestartAll } from './decide-restart-all.ts';
import { isLive, newestInstance, newestSandbox, usableSandbox } from './instances.ts';
import { beforeFirstStart, type Plan, PlanDraft } from './plan.ts';
import { planStop } from './plan-stop.ts';
import { activeDeadline } from './pod-end.ts';
import type { PodView } from './pod-view.ts';
import { isWaiting, retryDelay } from './restart-backoff.ts';

/** Waiting reason of the containers and reason of the condition of a pod that is not admitted yet. */
export const admissionPending = 'AdmissionPending';

/** The next steps of a pod that is wanted and has not come to its end. */
export function decideRun(view: PodView): Plan {
  const { pod, observed, memory } = view;
  const draft = new PlanDraft(view);
  const deadline = activeDeadline(view);
  if (deadline !== undefined) draft.wakeAt(deadline);

  if (memory.held) {
    for (const { container } of podContainers(pod.spec)) {
      draft.wait(container.name, { reason: admissionPending, message: memory.held.message });
    }
    return draft.finish();
  }

  if (!memory.recorded) draft.add({ kind: 'write-record', reason: 'the pod is to be known after a restart' });
  const sandbox = usableSandbox(observed, pod.spec.hostNetwork === true);
  const prepared = planPreparation(draft, view, sandbox !== undefined && stands(view, sandbox));
  planFirstImages(draft, view);

  if (sandbox) {
    if (planRestartAll(draft, view, sandbox)) return draft.finish();
    decideContainers(draft, view, sandbox, prepared);
    planRemains(draft, view);
    return draft.finish();
  }

  for (const { container: spec, kind } of podContainers(pod.spec)) {
    if (kind !== 'ephemeral') draft.wait(spec.name, beforeFirstStart(view));
  }
  planRemains(draft, view);
  planSandbox(draft, view, prepared);
  return draft.finish();
}

/**
 * True when nothing of the pod is to be made: what runs has its directories and cgroup, also when it was an
 * earlier agent that made them.
 */
function stands({ pod, observed }: PodView, sandbox: ObservedSandbox): boolean {
  return [...podContainers(pod.spec)].every(({ container: { name }, kind }) => {
    if (kind === 'init') return true;
    const newest = newestInstance(observed, name);
    return newest?.sandboxId === sandbox.id && newest.state === 'Running';
  });
}

/** True when containers may be made: what they are put on is there. */
function planPreparation(draft: PlanDraft, { memory }: PodView, standing: boolean): boolean {
  if (!memory.prepared && !standing) {
    draft.add({ kind: 'prepare-pod', reason: 'the pod needs its directories and cgroup' });
    return false;
  }
  if (!memory.volumesReady) {
    draft.add({ kind: 'set-up-volumes', reason: 'the containers need the volumes of the pod' });
    return false;
  }
  return true;
}

/** Images of containers that never ran are fetched from the first moment, beside everything else. */
function planFirstImages(draft: PlanDraft, { pod, observed, memory }: PodView): void {
  for (const { container: spec, kind } of podContainers(pod.spec)) {
    if (kind === 'ephemeral' || memory.images[spec.name]) continue;
    if (newestInstance(observed, spec.name)) continue;
    draft.add({
      kind: 'ensure-image',
      container: spec.name,
      attempt: memory.nextAttempts[spec.name] ?? 0,
      reason: `container ${spec.name} is about to start for the first time`,
    });
  }
}

/** Clears away every sandbox that cannot serve, then makes a new one. */
function planSandbox(draft: PlanDraft, view: PodView, prepared: boolean): void {
  const { observed, memory, pod, node } = view;
  const live = observed.containers.filter(isLive);
  for (const container of live) {
    planStop(draft, view, {
      container,
      graceSeconds: pod.spec.terminationGracePeriodSeconds,
      reason: 'the pod sandbox changed',
    });
  }
  if (live.length > 0) return;

  const unstopped = observed.sandboxes.filter(({ id }) => !memory.stoppedSandboxes[id]);
  for (const { id } of unstopped) {
    draft.add({ kind: 'stop-sandbox', sandboxId: id, reason: 'the sandbox can no longer serve the pod' });
  }
  if (unstopped.length > 0 || !prepared) return;

  if (node.networkNotReady !== undefined && pod.spec.hostNetwork !== true) {
    // A failure of its own kind: when the network is there, nothing of it holds the sandbox back.
    draft.add({
      kind: 'await-network',
      problem: node.networkNotReady,
      reason: 'the runtime has no network for the pod yet',
    });
    return;
  }
  const newest = newestSandbox(observed);
  // A sandbox that keeps breaking right after it was made must not make a hot loop of the pod.
  const delayMs = newest ? sandboxDelay(newest.attempt) : 0;
  const startAt = newest ? newest.createdAt + delayMs : view.now;
  if (isWaiting({ startAt, delayMs }, view.now)) {
    draft.wakeAt(startAt);
    return;
  }
  draft.add({
    kind: 'create-sandbox',
    attempt: newest ? newest.attempt + 1 : 0,
    reason: newest ? 'the former sandbox is gone' : 'the pod has no sandbox yet',
  });
}

/** Milliseconds between two sandboxes of a pod; the first replacement is free. */
function sandboxDelay(attempt: number): number {
  return attempt === 0 ? 0 : retryDelay(attempt);
}
