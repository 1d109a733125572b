/**
 * This node's Node object as last seen, from whichever answer or watch event told it. An older version
 * never replaces a newer one, however late it arrives.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Node, Taint } from './node-types.ts';

/** What admission and the scheduler's view of this node depend on. */
export interface NodePlacement {
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly unschedulable: boolean;
}

/** `after` is undefined when the object was deleted. */
export type NodeListener = (after: Node | undefined, before: Node | undefined) => void;

export class OwnNode {
  #node: Node | undefined;
  readonly #listeners = new Set<NodeListener>();

  /** The newest version; undefined while there is none. */
  get current(): Node | undefined {
    return this.#node;
  }

  /** Takes a version that an answer or the watch brought. */
  set(node: Node): void {
    const before = this.#node;
    if (before && !isNewer(node, before)) return;
    this.#node = node;
    for (const listener of this.#listeners) listener(node, before);
  }

  /** The object with this uid (any, when not given) exists no more. */
  gone(uid?: string): void {
    const before = this.#node;
    if (!before || (uid !== undefined && uid !== before.metadata.uid)) return;
    this.#node = undefined;
    for (const listener of this.#listeners) listener(undefined, before);
  }

  /** Calls `listener` on every change from now on; the returned function ends that. */
  onChange(listener: NodeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export function placementOf(node: Node): NodePlacement {
  return {
    labels: node.metadata.labels ?? {},
    taints: node.spec?.taints ?? [],
    unschedulable: node.spec?.unschedulable ?? false,
  };
}

/** `spec.podCIDRs`: the ranges of pod addresses that the cluster gave to this node. */
export function podCidrsOf(node: Node | undefined): readonly string[] {
  const { podCIDRs, podCIDR } = node?.spec ?? {};
  return podCIDRs?.length ? podCIDRs : podCIDR ? [podCIDR] : [];
}

export function isSamePlacement(a: NodePlacement, b: NodePlacement): boolean {
  return isDeepStrictEqual(a, b);
}

/** Versions count upwards, also from one object to its successor; those that are no numbers tell nothing. */
function isNewer({ metadata: { resourceVersion } }: Node, before: Node): boolean {
  const [version, old] = [Number(resourceVersion), Number(before.metadata.resourceVersion)];
  if (Number.isSafeInteger(version) && Number.isSafeInteger(old)) return version > old;
  return resourceVersion !== before.metadata.resourceVersion;
}
