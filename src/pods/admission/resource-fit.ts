/**
 * Admission by resources: what the pod asks for and what the others have asked for must fit into what the
 * node gives to pods. Figures in messages are milli-CPUs, bytes and pieces.
 */
import { podRequests, type ResourceAmounts } from '../../kubernetes/pod-resources.ts';
import { quantityMilliValue, quantityValue } from '../../kubernetes/quantity.ts';
import type { Pod, PodSpec } from '../../kubernetes/types.ts';
import type { AdmissionFacts, AdmissionHandler } from './admission.ts';

/** Checked in this order, before everything else that has a name. */
const basic = ['cpu', 'memory', 'ephemeral-storage'];

/** A resource of which a pod asks for more than is left, in the units of messages. */
export interface Shortage {
  readonly name: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}

/** Refuses pods that ask for more than the other pods have left of the allocatable resources. */
export const refuseResources: AdmissionHandler = (pod, facts) => {
  const [first] = shortages(pod, facts);
  if (!first) return undefined;
  const { name, requested, used, capacity } = first;
  return {
    reason: `OutOf${name}`,
    message: `Node didn't have enough resource: ${name}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
    lacksResources: true,
  };
};

/** Every resource that does not suffice, in the order they are told in. */
export function shortages(
  { spec }: Pod,
  { node: { allocatable }, others }: Pick<AdmissionFacts, 'node' | 'others'>,
): Shortage[] {
  const short: Shortage[] = [];
  const podsCapacity = amountOf(allocatable, 'pods');
  if (others.length + 1 > podsCapacity) {
    short.push({ name: 'pods', requested: 1, used: others.length, capacity: podsCapacity });
  }
  const wanted = requestsOf(spec);
  const names = [...basic, ...[...wanted.keys()].filter(isScalar).sort()].filter((name) => {
    return amountOf(wanted, name) > 0 && isCounted(allocatable, name);
  });
  for (const name of names) {
    const requested = amountOf(wanted, name);
    const used = others.reduce((sum, other) => sum + heldBy(other, name), 0);
    const capacity = amountOf(allocatable, name);
    if (used + requested > capacity) short.push({ name, requested, used, capacity });
  }
  return short;
}

/** What a pod holds of a resource: one of the node's `pods`, of everything else what it asks for. */
export function heldBy({ spec }: Pod, name: string): number {
  return name === 'pods' ? 1 : amountOf(requestsOf(spec), name);
}

/** Every pod is asked about again for each newcomer; its spec never changes. */
const requests = new WeakMap<PodSpec, ResourceAmounts>();

function requestsOf(spec: PodSpec): ResourceAmounts {
  let amounts = requests.get(spec);
  if (!amounts) requests.set(spec, (amounts = podRequests(spec)));
  return amounts;
}

/** Huge pages the node has none of are missing; extended resources nobody offers are somebody else's matter. */
function isCounted(allocatable: ResourceAmounts, name: string): boolean {
  if (allocatable.has(name)) return true;
  return !isExtended(name) && name !== 'ephemeral-storage';
}

/** A resource with a vendor's name, as device plugins have them. */
function isExtended(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.');
}

function isScalar(name: string): boolean {
  return name.includes('/') || name.startsWith('hugepages-') || name.startsWith('attachable-volumes-');
}

function amountOf(amounts: ResourceAmounts, name: string): number {
  const amount = amounts.get(name);
  if (!amount) return 0;
  return name === 'cpu' ? quantityMilliValue(amount) : quantityValue(amount);
}
