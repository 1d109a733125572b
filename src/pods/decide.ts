/**
 * What to do for a pod now. Pure: the same view always gives the same plan, and once the plan has been
 * carried out and observed, the next plan is empty.
 */
import { decideEnd } from './decide-end.ts';
import { decideRun } from './decide-run.ts';
import { type Plan, PlanDraft } from './plan.ts';
import { podEnd } from './pod-end.ts';
import type { PodView } from './pod-view.ts';

/** The next steps for a pod. Never throws; an empty plan says that the pod is as it is wanted. */
export function decide(view: PodView): Plan {
  const { intent, memory } = view;
  if (intent.kind === 'terminate') return decideEnd(view, { ...intent, keepRemains: false });
  if (memory.terminal) {
    const graceSeconds = memory.terminal.graceSeconds ?? view.pod.spec.terminationGracePeriodSeconds;
    return decideEnd(view, { graceSeconds, since: view.now, keepRemains: true });
  }
  const end = podEnd(view);
  if (end) return new PlanDraft(view).finish({ terminal: end });
  return decideRun(view);
}
