/**
 * What a pod as a whole asks for and may use, from what its containers say: the figures of admission,
 * eviction and the pod's cgroup.
 */
import { isRestartableInit } from './init-containers.ts';
import {
  addQuantities,
  maxQuantity,
  type Quantity,
  quantityMilliValue,
  quantityValue,
  tryParseQuantity,
} from './quantity.ts';
import type { Container, PodSpec, ResourceRequirements } from './types.ts';

/** Resource name (`cpu`, `memory`, `hugepages-2Mi`, `example.com/gpu`, …) to amount. */
export type ResourceAmounts = ReadonlyMap<string, Quantity>;

export interface PodResourceOptions {
  /** Leave `spec.overhead` out: the containers' own share. */
  readonly withoutOverhead?: boolean;
}

/** Resources that can be set on the pod as a whole. */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');
}

/** A container's requests; a limit without a request stands for both, as after API defaulting. */
export function containerRequests(container: Pick<Container, 'resources'>): ResourceAmounts {
  return amountsOf({ ...container.resources?.limits, ...container.resources?.requests });
}

export function containerLimits(container: Pick<Container, 'resources'>): ResourceAmounts {
  return amountsOf(container.resources?.limits);
}

/**
 * The larger of what runs together (regular containers and sidecars) and what any init container needs
 * beside the sidecars started before it; pod-level requests replace that; then the overhead is added.
 */
export function podRequests(spec: PodSpec, options: PodResourceOptions = {}): ResourceAmounts {
  const total = aggregate(spec, containerRequests);
  const podLevel: ResourceRequirements = spec.resources ?? {};
  replacePodLevel(total, amountsOf({ ...podLevel.limits, ...podLevel.requests }));
  if (!options.withoutOverhead)
    for (const [name, amount] of amountsOf(spec.overhead)) add(total, name, amount);
  return total;
}

/** As {@link podRequests}, for limits; overhead is added only to resources that have one. */
export function podLimits(spec: PodSpec, options: PodResourceOptions = {}): ResourceAmounts {
  const total = aggregate(spec, containerLimits);
  replacePodLevel(total, amountsOf(spec.resources?.limits));
  if (options.withoutOverhead) return total;
  for (const [name, amount] of amountsOf(spec.overhead)) {
    if ((total.get(name)?.nano ?? 0n) > 0n) add(total, name, amount);
  }
  return total;
}

/**
 * True when the pod as a whole is bounded for `name`: a pod-level limit exists, or every regular and init
 * container has one. Only then may the pod's cgroup carry a limit.
 */
export function podIsLimited(spec: PodSpec, name: string): boolean {
  const bounded = (resources: ResourceRequirements | undefined) =>
    (tryParseQuantity(resources?.limits?.[name])?.nano ?? 0n) > 0n;
  return (
    bounded(spec.resources) ||
    [...(spec.initContainers ?? []), ...spec.containers].every((container) => bounded(container.resources))
  );
}

/** Milli-CPUs in the map, 0 when absent. */
export function milliCpu(amounts: ResourceAmounts): number {
  const amount = amounts.get('cpu');
  return amount ? quantityMilliValue(amount) : 0;
}

/** Whole units (bytes) of a resource in the map, 0 when absent. */
export function bytesOf(amounts: ResourceAmounts, name = 'memory'): number {
  const amount = amounts.get(name);
  return amount ? quantityValue(amount) : 0;
}

/** Reads a resource list; entries that are no quantities are left out. */
export function amountsOf(list: Readonly<Record<string, string>> | undefined): Map<string, Quantity> {
  const amounts = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(list ?? {})) {
    const amount = tryParseQuantity(text);
    if (amount) amounts.set(name, amount);
  }
  return amounts;
}

function aggregate(spec: PodSpec, of: (container: Container) => ResourceAmounts): Map<string, Quantity> {
  const total = new Map<string, Quantity>();
  for (const container of spec.containers) addAll(total, of(container));

  const sidecars = new Map<string, Quantity>();
  const peak = new Map<string, Quantity>();
  for (const container of spec.initContainers ?? []) {
    const own = of(container);
    if (isRestartableInit(container)) {
      addAll(sidecars, own);
      addAll(total, own);
      raiseAll(peak, sidecars);
    } else {
      const together = new Map(sidecars);
      addAll(together, own);
      raiseAll(peak, together);
    }
  }
  raiseAll(total, peak);
  return total;
}

function replacePodLevel(total: Map<string, Quantity>, podLevel: ResourceAmounts): void {
  for (const [name, amount] of podLevel) if (isPodLevelResource(name)) total.set(name, amount);
}

function add(to: Map<string, Quantity>, name: string, amount: Quantity): void {
  const current = to.get(name);
  to.set(name, current ? addQuantities(current, amount) : amount);
}

function addAll(to: Map<string, Quantity>, from: ResourceAmounts): void {
  for (const [name, amount] of from) add(to, name, amount);
}

function raiseAll(to: Map<string, Quantity>, from: ResourceAmounts): void {
  for (const [name, amount] of from) {
    const current = to.get(name);
    to.set(name, current ? maxQuantity(current, amount) : amount);
  }
}
