/** Which dead instances and sandboxes of a pod that stays are no longer needed by anybody. */
import { instancesOf, isLive, newestSandbox } from './instances.ts';
import type { PlanDraft } from './plan.ts';
import type { PodView } from './pod-view.ts';

/** Plans the removal of dead instances and sandboxes beyond those that are kept. */
export function planRemains(draft: PlanDraft, { observed, memory, node }: PodView): void {
  const kept = new Set<string>();
  for (const name of new Set(observed.containers.map((container) => container.name))) {
    const instances = instancesOf(observed, name);
    // The newest instance is the container itself; the dead ones behind it are kept for their logs.
    const behind = instances.slice(1).filter((container) => !isLive(container));
    const dead = behind.filter((container) => container.state === 'Exited').slice(0, node.deadContainersKept);
    const surplus = behind.filter((container) => !dead.includes(container));
    for (const container of surplus) {
      draft.add({
        kind: 'remove-container',
        container: name,
        containerId: container.id,
        reason: `only ${node.deadContainersKept} dead instances of a container are kept`,
      });
    }
    for (const container of instances) if (!surplus.includes(container)) kept.add(container.sandboxId);
  }
  const newest = newestSandbox(observed);
  for (const sandbox of observed.sandboxes) {
    // Removing a sandbox removes its containers too, so it stays while one of them is kept.
    if (sandbox === newest || sandbox.state === 'Ready' || kept.has(sandbox.id)) continue;
    if (!memory.stoppedSandboxes[sandbox.id]) continue;
    draft.add({ kind: 'remove-sandbox', sandboxId: sandbox.id, reason: 'a newer sandbox has replaced it' });
  }
}
