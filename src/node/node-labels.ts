/**
 * `--node-labels`: which labels a node may give itself. Labels in Kubernetes' own name space are refused
 * unless they are of the set that a node is trusted with; the API server (NodeRestriction) would refuse
 * the whole registration otherwise.
 */
import { checkLabelValue, checkQualifiedName } from '../kubernetes/names.ts';

/** A label given with `--node-labels` is malformed or not a node's to set. */
export class NodeLabelsError extends Error {
  override readonly name = 'NodeLabelsError';
}

/** Labels of Kubernetes' own that a node may set beside those with an allowed prefix. */
export const allowedNodeLabels: readonly string[] = [
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'kubernetes.io/arch',
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
];

/** Prefixes, each with its subdomains, under which a node may set any label. */
export const allowedLabelPrefixes: readonly string[] = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

/** Throws {@link NodeLabelsError} that names every label at fault and the remedy. */
export function checkNodeLabels(labels: Readonly<Record<string, string>>): void {
  const problems: string[] = [];
  for (const [key, value] of Object.entries(labels)) {
    const [keyProblem] = checkQualifiedName(key);
    const [valueProblem] = checkLabelValue(value);
    if (keyProblem !== undefined) problems.push(`"${key}" is no label: ${keyProblem}`);
    else if (!mayLabelItself(key)) {
      problems.push(
        `"${key}" is Kubernetes' own: use a prefix of ${allowedLabelPrefixes.join(' or ')}, one of ` +
          `${allowedNodeLabels.join(', ')}, or let an administrator set it with "kubectl label node"`,
      );
    }
    if (valueProblem !== undefined) problems.push(`the value of "${key}", "${value}": ${valueProblem}`);
  }
  if (problems.length > 0) throw new NodeLabelsError(`--node-labels: ${problems.join('; ')}`);
}

function mayLabelItself(key: string): boolean {
  const slash = key.indexOf('/');
  const prefix = slash < 0 ? '' : key.slice(0, slash);
  if (!isWithin(prefix, 'kubernetes.io') && !isWithin(prefix, 'k8s.io')) return true;
  return allowedNodeLabels.includes(key) || allowedLabelPrefixes.some((allowed) => isWithin(prefix, allowed));
}

function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`);
}
