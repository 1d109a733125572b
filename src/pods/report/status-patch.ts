/**
 * The smallest strategic merge patch that brings a pod's status in the API server to what the node wants it
 * to be. Pure. It speaks only of the fields a kubelet owns: what others have written stays.
 *
 * Lists follow the API's own merge rules: conditions merge by type, so only changed ones are sent; the
 * addresses merge by value, so a changed list replaces the old one whole; container statuses are one value.
 */
import { isKubeletCondition } from '../../kubernetes/kubelet-conditions.ts';
import type { PodCondition, PodStatus } from '../../kubernetes/types.ts';

const plainFields = [
  'observedGeneration',
  'phase',
  'reason',
  'message',
  'hostIP',
  'podIP',
  'startTime',
] as const;
const containerLists = ['initContainerStatuses', 'containerStatuses', 'ephemeralContainerStatuses'] as const;
const addressLists = ['hostIPs', 'podIPs'] as const;

/** A part of `status` as it is sent; `null` removes a field. */
export type StatusPatch = Readonly<Record<string, unknown>>;

/** `undefined` when nothing has to be said. */
export function statusPatch(known: PodStatus, wanted: PodStatus): StatusPatch | undefined {
  const patch: Record<string, unknown> = {};
  for (const field of [...plainFields, ...containerLists]) {
    if (!sameValue(known[field], wanted[field])) patch[field] = wanted[field] ?? null;
  }
  // The API server has worked it out before; the two could differ only by a mistake of one of them.
  if (known.qosClass === undefined && wanted.qosClass !== undefined) patch['qosClass'] = wanted.qosClass;
  for (const field of addressLists) {
    if (sameValue(known[field], wanted[field])) continue;
    patch[field] = wanted[field] ? [...wanted[field], { $patch: 'replace' }] : null;
  }
  Object.assign(patch, conditionsPatch(known.conditions ?? [], wanted.conditions ?? []));
  return Object.keys(patch).length > 0 ? patch : undefined;
}

function conditionsPatch(known: readonly PodCondition[], wanted: readonly PodCondition[]): StatusPatch {
  const own = wanted.filter(isKubeletCondition);
  const changed = own.filter((condition) => {
    const before = known.find(({ type }) => type === condition.type);
    return !sameValue(before && withoutProbeTime(before), condition);
  });
  const unwanted = known.filter(
    (before) => isKubeletCondition(before) && !own.some(({ type }) => type === before.type),
  );
  if (changed.length + unwanted.length === 0) return {};
  const isNew = changed.some(({ type }) => !known.some((condition) => condition.type === type));
  return {
    // What is left out of a merged element would stay: say that it is gone.
    conditions: [
      ...changed.map((condition) => ({ reason: null, message: null, ...condition })),
      ...unwanted.map(({ type }) => ({ type, $patch: 'delete' })),
    ],
    // Without it the server puts new conditions last, and the order would tell how a pod came to them.
    ...(isNew && { '$setElementOrder/conditions': own.map(({ type }) => ({ type })) }),
  };
}

/** The server writes a probe time of its own making, which means nothing. */
function withoutProbeTime({ lastProbeTime: _, ...condition }: PodCondition): PodCondition {
  return condition;
}

/** Equal as the API server sees it: absent, null, and empty texts, lists and objects are all the same. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isEmpty(a) || isEmpty(b)) return isEmpty(a) && isEmpty(b);
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((item, index) => sameValue(item, b[index]))
    );
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...keys].every((key) => sameValue(left[key], right[key]));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === 'object' && Object.values(value).every(isEmpty);
}
