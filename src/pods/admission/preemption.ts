/**
 * Makes room for a critical pod: which of the pods that run have to go. Pure.
 *
 * Guarantees: what goes frees all that is missing; nobody goes who could stay; critical pods go only for one
 * of higher priority; a pod of a better quality-of-service class goes only when those of the lesser classes
 * together do not suffice. Within a class, whoever brings nearest to what is missing goes first, and of those
 * that bring it all the smallest.
 */
import { isCriticalPod } from '../../kubernetes/pod-identity.ts';
import { podQosClass } from '../../kubernetes/qos.ts';
import type { Pod, QosClass } from '../../kubernetes/types.ts';
import { heldBy, type Shortage } from './resource-fit.ts';

/** By resource: what is missing of it, in the units of {@link Shortage}; amounts above zero only. */
type Missing = ReadonlyMap<string, number>;

/** Who stays longest comes first. */
const classes: readonly QosClass[] = ['Guaranteed', 'Burstable', 'BestEffort'];

/**
 * The pods among `running` that have to end so that `pod` fits; `undefined` when even all that may go for it
 * would not suffice.
 */
export function chooseVictims(
  pod: Pod,
  short: readonly Shortage[],
  running: readonly Pod[],
): readonly Pod[] | undefined {
  const missing: Missing = new Map(
    short.map(({ name, requested, used, capacity }) => [name, used + requested - capacity]),
  );
  const mayGo = running.filter((other) => maySupplant(pod, other));
  const victims: Pod[] = [];
  for (const [index, qos] of classes.entries()) {
    const lesser = classes.slice(index + 1);
    const isOf = (wanted: readonly QosClass[]) =>
      mayGo.filter(({ spec }) => wanted.includes(podQosClass(spec)));
    const left = without(missing, [...victims, ...isOf(lesser)]);
    const chosen = cover(left, isOf([qos]));
    if (!chosen) return undefined;
    victims.push(...chosen);
  }
  return withoutNeedless(missing, victims);
}

/** Critical pods come before all others; among equals the priority decides. */
function maySupplant({ spec }: Pod, other: Pod): boolean {
  if (!isCriticalPod(other)) return true;
  const theirs = other.spec.priority;
  return spec.priority !== undefined && theirs !== undefined && spec.priority > theirs;
}

/** Enough of `candidates`, one after the other; `undefined` when all of them are not enough. */
function cover(missing: Missing, candidates: readonly Pod[]): Pod[] | undefined {
  const chosen: Pod[] = [];
  const open = new Set(candidates);
  let left = missing;
  while (left.size > 0) {
    const best = [...open].reduce<Pod | undefined>(
      (found, pod) => (found && !isNearer(pod, found, left) ? found : pod),
      undefined,
    );
    if (!best) return undefined;
    open.delete(best);
    chosen.push(best);
    left = without(left, [best]);
  }
  return chosen;
}

function isNearer(pod: Pod, than: Pod, missing: Missing): boolean {
  const difference = distance(pod, missing) - distance(than, missing);
  if (difference !== 0) return difference < 0;
  // Both bring the same of what counts: the smaller loss.
  for (const name of ['memory', 'cpu']) {
    const more = heldBy(pod, name) - heldBy(than, name);
    if (more !== 0) return more < 0;
  }
  return false;
}

/** How much would still be missing without the pod, as a sum of squared shares. */
function distance(pod: Pod, missing: Missing): number {
  let sum = 0;
  for (const [name, amount] of missing) sum += (Math.max(0, amount - heldBy(pod, name)) / amount) ** 2;
  return sum;
}

/** What is missing when `gone` hold nothing any more. */
function without(missing: Missing, gone: readonly Pod[]): Missing {
  const left = new Map<string, number>();
  for (const [name, amount] of missing) {
    const rest = gone.reduce((sum, pod) => sum - heldBy(pod, name), amount);
    if (rest > 0) left.set(name, rest);
  }
  return left;
}

/** Of several resources, a later victim may bring what an earlier one was chosen for. */
function withoutNeedless(missing: Missing, victims: readonly Pod[]): readonly Pod[] {
  return victims.reduce((needed, victim) => {
    const others = needed.filter((pod) => pod !== victim);
    return without(missing, others).size === 0 ? others : needed;
  }, victims);
}
