/** Whether a node is one that a pod may be on: `nodeSelector` and required node affinity. Pure. */
import { meetsRequirement } from './label-selector.ts';
import type { PodSpec } from './types.ts';

/** What a pod's wishes about nodes are held against. */
export interface SelectableNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

type NodeSelectorTerm = NonNullable<
  NonNullable<
    NonNullable<
      NonNullable<PodSpec['affinity']>['nodeAffinity']
    >['requiredDuringSchedulingIgnoredDuringExecution']
  >['nodeSelectorTerms']
>[number];
type Requirement = NonNullable<NodeSelectorTerm['matchExpressions']>[number];

/** Every entry of `nodeSelector` and at least one term of the required node affinity, where there are any. */
export function matchesNode(spec: Pick<PodSpec, 'nodeSelector' | 'affinity'>, node: SelectableNode): boolean {
  const wanted = Object.entries(spec.nodeSelector ?? {});
  if (!wanted.every(([key, value]) => labelOf(node.labels, key) === value)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return !required || (required.nodeSelectorTerms ?? []).some((term) => matchesTerm(term, node));
}

/** A term that asks for nothing matches no node. */
function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: SelectableNode) {
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) => meets(labelOf(node.labels, requirement.key), requirement)) &&
    matchFields.every((requirement) => requirement.key === 'metadata.name' && meets(node.name, requirement))
  );
}

function meets(value: string | undefined, requirement: Requirement): boolean {
  const { operator, values = [] } = requirement;
  if (operator !== 'Gt' && operator !== 'Lt') return meetsRequirement(value, requirement);
  const [own, bound] = [wholeNumber(value), wholeNumber(values[0])];
  if (own === undefined || bound === undefined) return false;
  return operator === 'Gt' ? own > bound : own < bound;
}

function wholeNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? BigInt(text.replace('+', '')) : undefined;
}

/** `labels` comes from the wire, where a key may be `constructor`. */
function labelOf(labels: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
