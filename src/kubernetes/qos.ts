/**
 * The quality-of-service class: how a pod's cpu and memory requests relate to its limits. It decides the
 * pod's cgroup and which processes the kernel kills first.
 */
import { isPodLevelResource } from './pod-resources.ts';
import {
  addQuantities,
  compareQuantities,
  type Quantity,
  tryParseQuantity,
  zeroQuantity,
} from './quantity.ts';
import type { PodSpec, QosClass, ResourceRequirements } from './types.ts';

const resources = ['cpu', 'memory'] as const;

/**
 * Guaranteed when every container has limits for both resources that equal the requests, BestEffort when
 * nothing is asked, Burstable otherwise. Pod-level resources, where set, decide alone. Ephemeral containers
 * do not count. A limit without a request stands for both, as after API defaulting.
 */
export function podQosClass(spec: PodSpec): QosClass {
  const podLevel = spec.resources;
  const parts = hasPodLevelResources(podLevel)
    ? [podLevel ?? {}]
    : [...(spec.initContainers ?? []), ...spec.containers].map((container) => container.resources ?? {});

  const requests = { cpu: zeroQuantity, memory: zeroQuantity };
  const limits = { cpu: zeroQuantity, memory: zeroQuantity };
  let everyPartLimited = true;
  for (const part of parts) {
    for (const resource of resources) {
      const limit = amount(part.limits?.[resource]);
      const request = amount(part.requests?.[resource] ?? part.limits?.[resource]);
      requests[resource] = addQuantities(requests[resource], request);
      limits[resource] = addQuantities(limits[resource], limit);
      if (limit.nano === 0n) everyPartLimited = false;
    }
  }
  if (resources.every((name) => requests[name].nano === 0n && limits[name].nano === 0n)) return 'BestEffort';
  const equal = resources.every((name) => compareQuantities(requests[name], limits[name]) === 0);
  return everyPartLimited && equal ? 'Guaranteed' : 'Burstable';
}

function hasPodLevelResources(requirements: ResourceRequirements | undefined): boolean {
  const names = [...Object.keys(requirements?.requests ?? {}), ...Object.keys(requirements?.limits ?? {})];
  return names.some(isPodLevelResource);
}

/** Only amounts above zero count. */
function amount(text: string | undefined): Quantity {
  const quantity = tryParseQuantity(text);
  return quantity && quantity.nano > 0n ? quantity : zeroQuantity;
}
