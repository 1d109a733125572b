/**
 * Events that tell of a state the pod has come into, not of an action: told once when the state begins.
 * Pure; the worker's reports go in, events come out.
 */
import { findContainer } from '../kubernetes/init-containers.ts';
import type { EventObject } from '../telemetry/events.ts';
import { podEventObject } from '../telemetry/events.ts';
import { deadlineExceeded } from './pod-end.ts';
import type { PodReport } from './pod-worker-ports.ts';

/** An event about a pod or a container of it. */
export interface Announcement {
  readonly object: EventObject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** What the report says that the one before it did not: back-offs that begin, a deadline that has passed. */
export function announcements({ pod, view, plan, previousPlan }: PodReport): Announcement[] {
  const { name, namespace, uid } = pod.metadata;
  const told: Announcement[] = [];
  for (const [container, waiting] of Object.entries(plan.waiting)) {
    const before = previousPlan?.waiting[container];
    if (waiting.reason !== 'CrashLoopBackOff' || before?.message === waiting.message) continue;
    told.push({
      object: podEventObject(pod, findContainer(pod.spec, container)?.fieldPath),
      type: 'Warning',
      reason: 'BackOff',
      message: `Back-off restarting failed container ${container} in pod ${name}_${namespace}(${uid})`,
    });
  }
  const { terminal } = view.memory;
  if (
    terminal?.reason === deadlineExceeded.reason &&
    plan.actions.some(({ kind }) => kind === 'write-record') &&
    view.memory.failures['write-record:record'] === undefined
  ) {
    told.push({
      object: podEventObject(pod),
      type: 'Normal',
      reason: 'DeadlineExceeded',
      message: terminal?.message ?? '',
    });
  }
  return told;
}
