/** How one container is stopped: its preStop hook first, then TERM and KILL, all within one grace period. */
import { findContainer } from '../kubernetes/init-containers.ts';
import { containerAnnotations } from '../kubernetes/pod-identity.ts';
import type { LifecycleHandler, Pod } from '../kubernetes/types.ts';
import type { ObservedContainer } from '../runtime/observed-pod.ts';
import type { PlanDraft } from './plan.ts';
import type { PodView } from './pod-view.ts';

/** A container that is to be stopped, and how. */
export interface Stop {
  readonly container: ObservedContainer;
  /** The whole grace period. Of 0, nothing is left for a hook. */
  readonly graceSeconds: number;
  /** When it began, epoch milliseconds; it begins with the hook or the stop when absent. */
  readonly since?: number;
  readonly reason: string;
  /** A failed probe is the reason. */
  readonly byProbe?: boolean;
  /** The container must wait for others, but its hook must not. */
  readonly hookOnly?: boolean;
}

/** What a container gets at least between TERM and KILL, once its pod's grace period is used up. */
const minimumKillGraceSeconds = 2;

/** Plans the next step of a stop: the hook if it is still to run, otherwise the stop itself. */
export function planStop(draft: PlanDraft, { pod, memory, now }: PodView, stop: Stop): void {
  const { container, graceSeconds, reason } = stop;
  const target = { container: container.name, containerId: container.id };
  const hookBegan = memory.preStopBegan[container.id];
  const began = Math.min(stop.since ?? now, hookBegan ?? now);
  const left = graceSeconds - Math.floor((now - began) / 1000);
  if (hookBegan === undefined && left > 0 && preStopHandler(pod, container)) {
    draft.add({ kind: 'run-pre-stop', ...target, graceSeconds: left, reason });
  } else if (!stop.hookOnly) {
    draft.add({
      kind: 'stop-container',
      ...target,
      graceSeconds: Math.max(minimumKillGraceSeconds, left),
      ...(stop.byProbe && { byProbe: true }),
      reason,
    });
  }
}

/** The hook of the spec; for a container whose spec is lost, the one it was made with. */
export function preStopHandler(pod: Pod, container: ObservedContainer): LifecycleHandler | undefined {
  const place = findContainer(pod.spec, container.name);
  if (place?.container.lifecycle) return place.container.lifecycle.preStop;
  const kept = container.annotations[containerAnnotations.preStopHandler];
  if (kept === undefined) return undefined;
  try {
    return JSON.parse(kept) as LifecycleHandler;
  } catch {
    return undefined;
  }
}
