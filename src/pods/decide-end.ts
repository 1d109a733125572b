/**
 * The way down: containers first (sidecars after the others, in reverse order), then the network, then
 * volumes and cgroup, and for a pod that is no longer wanted everything else. Every step can be taken
 * again after a crash; a later step is planned only when what it relies on has been observed.
 */

import { podContainers } from '../kubernetes/init-containers.ts';
import type { ObservedContainer } from '../runtime/observed-pod.ts';
import { containerKey, imageKey, sandboxKey } from './action.ts';
import { planRemains } from './decide-remains.ts';
import { isLive } from './instances.ts';
import { type Plan, PlanDraft } from './plan.ts';
import { planStop } from './plan-stop.ts';
import { endByDeletion } from './pod-end.ts';
import type { PodView } from './pod-view.ts';

/** How a pod is to end. */
export interface EndTerms {
  readonly graceSeconds: number;
  /** When the grace period began, epoch milliseconds. */
  readonly since: number;
  /** The pod is still wanted, only over: its dead containers, logs and record stay to be looked at. */
  readonly keepRemains: boolean;
  /** See {@link PodIntent}: the API server waits for the pod's end. */
  readonly releasesObject?: boolean;
}

/** The next steps of a pod's end; finished when nothing of it is left, unless its remains are kept. */
export function decideEnd(view: PodView, terms: EndTerms): Plan {
  const { observed, memory, pod } = view;
  const draft = new PlanDraft(view);
  if (terms.keepRemains && !memory.recorded && !memory.terminal?.refused) {
    draft.add({ kind: 'write-record', reason: 'the outcome of the pod is to be remembered' });
  }

  const live = observed.containers.filter(isLive);
  if (live.length > 0) {
    if (terms.releasesObject && view.node.recordsDeletion && !memory.recorded) {
      draft.add({ kind: 'write-record', reason: 'the pod is not to be begun again after a reboot' });
    }
    const { graceSeconds, since } = terms;
    const now = nextToStop(view, live);
    for (const container of live) {
      const reason = `Stopping container ${container.name}`;
      planStop(draft, view, { container, graceSeconds, since, reason, hookOnly: !now.includes(container) });
    }
    return draft.finish();
  }
  // Whatever is being made right now has to appear before it can be taken down.
  if (makingSomething(view)) return draft.finish();
  if (terms.releasesObject && !memory.terminal) return draft.finish({ terminal: endByDeletion(view) });

  const unstopped = observed.sandboxes.filter((sandbox) => !memory.stoppedSandboxes[sandbox.id]);
  if (unstopped.length > 0) {
    for (const { id } of unstopped) {
      draft.add({ kind: 'stop-sandbox', sandboxId: id, reason: 'all containers of the pod have stopped' });
    }
    return draft.finish();
  }

  if (!memory.tornDown) draft.add({ kind: 'tear-down', reason: 'the pod has ended' });
  if (terms.keepRemains) {
    planRemains(draft, view);
    return draft.finish();
  }
  // The dead containers are what a restarted agent reads the pod's end from: they stay until it is told.
  if (terms.releasesObject && !memory.released) {
    if (memory.tornDown) {
      draft.add({ kind: 'release-object', reason: 'containers, volumes and cgroup of the pod are gone' });
    }
    return draft.finish();
  }

  for (const { id } of observed.sandboxes) {
    draft.add({ kind: 'remove-sandbox', sandboxId: id, reason: 'the pod is gone' });
  }
  const sandboxes = new Set(observed.sandboxes.map((sandbox) => sandbox.id));
  for (const container of observed.containers) {
    // The runtime removes a sandbox together with its containers; only strays are left to us.
    if (sandboxes.has(container.sandboxId)) continue;
    draft.add({
      kind: 'remove-container',
      container: container.name,
      containerId: container.id,
      reason: 'the pod is gone',
    });
  }
  const somethingLeft = observed.sandboxes.length + observed.containers.length > 0 || !memory.tornDown;
  if (somethingLeft || memory.erased) return draft.finish({ finished: !somethingLeft });
  // A record that is being written would come back after everything has been erased.
  if (draft.busy('record')) return draft.finish();
  draft.add({ kind: 'erase', reason: `nothing of pod ${pod.metadata.name} is left in the runtime` });
  return draft.finish();
}

/** All that are no sidecars at once; then the sidecars one by one, the last in the spec first. */
function nextToStop({ pod }: PodView, live: readonly ObservedContainer[]): readonly ObservedContainer[] {
  const sidecars = [...podContainers(pod.spec)]
    .filter(({ kind }) => kind === 'sidecar')
    .map(({ container: spec }) => spec.name);
  const others = live.filter((container) => !sidecars.includes(container.name));
  if (others.length > 0) return others;
  const last = sidecars.findLast((name) => live.some((container) => container.name === name));
  return live.filter((container) => container.name === last);
}

function makingSomething({ inFlight, pod, observed }: PodView): boolean {
  if (inFlight.has('pod') || inFlight.has('volumes') || inFlight.has('sandbox')) return true;
  return (
    [...podContainers(pod.spec)].some(
      ({ container: spec }) => inFlight.has(containerKey(spec.name)) || inFlight.has(imageKey(spec.name)),
    ) || observed.sandboxes.some(({ id }) => inFlight.has(sandboxKey(id)))
  );
}
