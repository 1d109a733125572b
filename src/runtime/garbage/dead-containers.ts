/**
 * Which dead containers are too many on the node as a whole. Pure. Dead instances are kept for their logs
 * and their last state; the flags `--maximum-dead-containers…` and `--minimum-container-ttl-duration` say
 * how many and how long at least.
 */
import type { ObservedContainer } from '../observed-pod.ts';

/** How many dead containers are kept, and for how long. */
export interface DeadContainerRules {
  /** `--maximum-dead-containers-per-container`; negative: any number. */
  readonly perContainer: number;
  /** `--maximum-dead-containers`; negative: any number. */
  readonly total: number;
  /** `--minimum-container-ttl-duration` */
  readonly minAgeMs: number;
}

/** A container as far as it matters to whether it is kept. */
export type Instance = Pick<ObservedContainer, 'id' | 'name' | 'state' | 'createdAt' | 'attempt'>;

/** A pod with every instance of its containers. */
export interface PodInstances<Container extends Instance = Instance> {
  readonly uid: string;
  /** Nothing is left to do for the pod but to remove it. */
  readonly isGone: boolean;
  /** Newest first. */
  readonly containers: readonly Container[];
}

/** A dead container that goes. */
export interface SurplusContainer<Container extends Instance = Instance> {
  readonly podUid: string;
  readonly container: Container;
}

/**
 * Containers to remove.
 *
 * Differs from the kubelet: of a pod that stays, the newest instance of each container stays too, whatever
 * the total. It is the container's state: without it the next start would forget back-off and restart count.
 */
export function surplusDeadContainers<Container extends Instance>(
  pods: readonly PodInstances<Container>[],
  { perContainer, total, minAgeMs }: DeadContainerRules,
  now: number,
): SurplusContainer<Container>[] {
  const surplus: SurplusContainer<Container>[] = [];
  /** Removable dead instances by container, newest first. */
  const groups: SurplusContainer<Container>[][] = [];
  for (const { uid: podUid, isGone, containers } of pods) {
    for (const instances of byName(containers)) {
      const removable = (isGone ? instances : instances.slice(1))
        .filter(({ state, createdAt }) => isDead(state) && now - createdAt >= minAgeMs)
        .map((container) => ({ podUid, container }));
      if (isGone) surplus.push(...removable);
      else groups.push(removable);
    }
  }
  let kept = groups;
  const keepPerGroup = (count: number) => {
    surplus.push(...kept.flatMap((group) => group.slice(count)));
    kept = kept.map((group) => group.slice(0, count));
  };
  if (perContainer >= 0) keepPerGroup(perContainer);
  const count = () => kept.reduce((sum, { length }) => sum + length, 0);
  if (total < 0 || count() <= total) return surplus;
  // Every container gives up its share first, then the oldest of all go.
  keepPerGroup(Math.max(1, Math.floor(total / kept.filter(({ length }) => length > 0).length)));
  const byAge = kept.flat().toSorted((a, b) => b.container.createdAt - a.container.createdAt);
  return [...surplus, ...byAge.slice(total)];
}

function isDead(state: Instance['state']): boolean {
  return state === 'Exited' || state === 'Unknown';
}

/** Newest first by attempt, which the clock cannot turn round. */
function byName<Container extends Instance>(containers: readonly Container[]): Container[][] {
  const groups = new Map<string, Container[]>();
  for (const container of containers) {
    groups.set(container.name, [...(groups.get(container.name) ?? []), container]);
  }
  return [...groups.values()].map((group) => group.toSorted((a, b) => b.attempt - a.attempt));
}
