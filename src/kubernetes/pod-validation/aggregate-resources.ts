/**
 * What the containers of a pod ask for together, leaving pod-level values and overhead aside: the figures
 * that pod-level resources are filled in from and compared with. Works on manifests that are not validated
 * yet; values that are no quantities are passed over.
 */
import { podLimits, podRequests, type ResourceAmounts } from '../pod-resources.ts';
import { type Quantity, tryParseQuantity } from '../quantity.ts';
import type { Container as ValidContainer, PodSpec as ValidPodSpec } from '../types.ts';
import { isRecord, longestQuantity } from './pod-structure.ts';
import type { Container, PodSpec } from './unvalidated-pod.ts';

/** `hugepages-<size>`, for example `hugepages-2Mi`. */
export function isHugePages(name: string): boolean {
  return name.startsWith('hugepages-');
}

/** One entry of a resource list, when it is a quantity. */
export function quantityIn(list: unknown, name: string): Quantity | undefined {
  if (!isRecord(list) || !Object.hasOwn(list, name)) return undefined;
  const text = list[name];
  return typeof text === 'string' && text.length <= longestQuantity ? tryParseQuantity(text) : undefined;
}

export function containerRequestTotals(spec: PodSpec): ResourceAmounts {
  return podRequests(containersOnly(spec));
}

export function containerLimitTotals(spec: PodSpec): ResourceAmounts {
  return podLimits(containersOnly(spec));
}

/** The spec cut down to what containers say about resources, with only readable quantities. */
function containersOnly(spec: PodSpec): ValidPodSpec {
  return { containers: cutDown(spec.containers), initContainers: cutDown(spec.initContainers) };
}

function cutDown(containers: Container[] | undefined): ValidContainer[] {
  if (!Array.isArray(containers)) return [];
  const present: Container[] = containers.filter((container) => isRecord(container));
  return present.map(({ name = '', restartPolicy, resources }) => ({
    name,
    ...(restartPolicy !== undefined && { restartPolicy }),
    resources: { limits: readable(resources?.limits), requests: readable(resources?.requests) },
  }));
}

function readable(list: unknown): Record<string, string> {
  if (!isRecord(list)) return {};
  const entries = Object.entries(list).filter(([name]) => quantityIn(list, name) !== undefined);
  return Object.fromEntries(entries) as Record<string, string>;
}
