/**
 * The strategic merge patch that turns one Node into another: labels, annotations and status. Pure, and
 * minimal: an unchanged field is not in it, and nothing changed is no patch at all.
 *
 * Conditions are merged by type, so that those of others are never touched. Addresses are replaced as a
 * whole, since several of one type are common and merging by type would lose all but one. An absent field
 * and an empty one are the same, for so the API server writes them.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Node, NodeCondition } from './node-types.ts';

type Plain = { readonly [key: string]: unknown };

export interface NodePatchOptions {
  /** A new heartbeat time alone is no change. */
  readonly ignoreHeartbeats?: boolean;
}

/** The patch from `before` to `after`; undefined when there is nothing to change. */
export function nodePatch(before: Node, after: Node, options: NodePatchOptions = {}): Plain | undefined {
  const metadata: Record<string, unknown> = {};
  for (const field of ['labels', 'annotations'] as const) {
    const changed = fieldPatch(before.metadata[field], after.metadata[field]);
    if (changed !== undefined) metadata[field] = changed;
  }
  const status = statusPatch(before, after, options);
  const patch = {
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(Object.keys(status).length > 0 && { status }),
  };
  return Object.keys(patch).length > 0 ? patch : undefined;
}

function statusPatch({ status: from = {} }: Node, { status: to = {} }: Node, options: NodePatchOptions) {
  const { conditions, addresses, ...rest } = to;
  const { conditions: oldConditions, addresses: oldAddresses, ...oldRest } = from;
  const patch: Record<string, unknown> = { ...(fieldPatch(oldRest, rest) as Plain | undefined) };
  const changed = conditionsPatch(oldConditions ?? [], conditions ?? [], options);
  if (changed.length > 0) patch['conditions'] = changed;
  if (!isSame(oldAddresses, addresses)) {
    patch['addresses'] = [...(addresses ?? []), { $patch: 'replace' }];
  }
  return patch;
}

function conditionsPatch(
  before: readonly NodeCondition[],
  after: readonly NodeCondition[],
  { ignoreHeartbeats = false }: NodePatchOptions,
): Plain[] {
  const patches: Plain[] = [];
  for (const condition of after) {
    const old = before.find(({ type }) => type === condition.type);
    if (old === undefined) {
      patches.push({ ...condition });
      continue;
    }
    const changes = fieldPatch(old, condition) as Plain | undefined;
    if (changes === undefined) continue;
    const { lastHeartbeatTime: _, ...substance } = changes;
    if (ignoreHeartbeats && Object.keys(substance).length === 0) continue;
    patches.push({ type: condition.type, ...(ignoreHeartbeats ? substance : changes) });
  }
  return patches;
}

/** What to write where `before` stands so that it becomes `after`; null takes a field away. */
function fieldPatch(before: unknown, after: unknown): unknown {
  if (isSame(before, after)) return undefined;
  if (!isPlain(before) || !isPlain(after)) return after === undefined ? null : after;
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const changed = fieldPatch(before[key], after[key]);
    if (changed !== undefined) patch[key] = changed;
  }
  return patch;
}

/** Equal, if what is empty counts as absent. */
function isSame(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(withoutEmpty(a), withoutEmpty(b));
}

function withoutEmpty(value: unknown): unknown {
  if (value === '' || value === null) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(withoutEmpty);
  if (!isPlain(value)) return value;
  const kept = Object.entries(value)
    .map(([key, inner]) => [key, withoutEmpty(inner)] as const)
    .filter(([, inner]) => inner !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
