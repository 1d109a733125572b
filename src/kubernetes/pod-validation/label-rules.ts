/** Rules for labels, label selectors and the node selector terms of affinity. */
import { checkLabelValue, checkQualifiedName } from '../names.ts';
import { type FieldErrors, keyPath } from './field-error.ts';
import { isEmptyList } from './rule-context.ts';
import type { Affinity } from './unvalidated-pod.ts';

type AffinityTerm = NonNullable<
  NonNullable<Affinity['podAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>[number];
export type LabelSelector = NonNullable<AffinityTerm['labelSelector']>;
type NodeAffinity = NonNullable<Affinity['nodeAffinity']>;
export type NodeSelectorTerm = NonNullable<
  NonNullable<NodeAffinity['requiredDuringSchedulingIgnoredDuringExecution']>['nodeSelectorTerms']
>[number];
type Requirement = NonNullable<NodeSelectorTerm['matchExpressions']>[number];

/** Labels, or a node selector: qualified names to label values. */
export function checkLabels(
  errors: FieldErrors,
  path: string,
  labels: Readonly<Record<string, string>> | undefined,
): void {
  for (const [key, value] of Object.entries(labels ?? {})) {
    errors.problems(path, key, checkQualifiedName(key));
    errors.problems(keyPath(path, key), value, checkLabelValue(value));
  }
}

export function checkLabelSelector(
  errors: FieldErrors,
  path: string,
  selector: LabelSelector | undefined,
): void {
  checkLabels(errors, `${path}.matchLabels`, selector?.matchLabels);
  selector?.matchExpressions?.forEach((requirement, index) => {
    const at = `${path}.matchExpressions[${index}]`;
    checkLabelKey(errors, `${at}.key`, requirement.key);
    checkOperatorValues(errors, at, requirement, false);
    for (const [n, value] of (requirement.values ?? []).entries()) {
      errors.problems(`${at}.values[${n}]`, value, checkLabelValue(value));
    }
  });
}

export function checkNodeSelectorTerm(errors: FieldErrors, path: string, term: NodeSelectorTerm): void {
  term.matchExpressions?.forEach((requirement, index) => {
    const at = `${path}.matchExpressions[${index}]`;
    checkLabelKey(errors, `${at}.key`, requirement.key);
    checkOperatorValues(errors, at, requirement, true);
  });
  term.matchFields?.forEach((requirement, index) => {
    const at = `${path}.matchFields[${index}]`;
    // The only field of a node that scheduling may ask for.
    if (requirement.key !== 'metadata.name') {
      errors.invalid(`${at}.key`, requirement.key ?? '', 'must be metadata.name');
    }
    errors.oneOf(`${at}.operator`, requirement.operator, ['In', 'NotIn']);
    if (requirement.values?.length !== 1) errors.required(`${at}.values`, 'must have exactly one value');
  });
}

function checkLabelKey(errors: FieldErrors, path: string, key: string | undefined): void {
  errors.problems(path, key ?? '', checkQualifiedName(key ?? ''));
}

/** How many values an operator takes. */
function checkOperatorValues(
  errors: FieldErrors,
  path: string,
  requirement: Requirement,
  ofNodes: boolean,
): void {
  const { operator, values } = requirement;
  if (operator === 'In' || operator === 'NotIn') {
    if (isEmptyList(values)) {
      errors.required(`${path}.values`, `must have values when the operator is '${operator}'`);
    }
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (!isEmptyList(values)) {
      errors.forbidden(`${path}.values`, `may not be set when the operator is '${operator}'`);
    }
  } else if (ofNodes && (operator === 'Gt' || operator === 'Lt')) {
    if (values?.length !== 1) {
      errors.required(`${path}.values`, `must have exactly one value when the operator is '${operator}'`);
    }
  } else {
    const known = ['In', 'NotIn', 'Exists', 'DoesNotExist', ...(ofNodes ? ['Gt', 'Lt'] : [])];
    errors.oneOf(`${path}.operator`, operator, known);
  }
}
