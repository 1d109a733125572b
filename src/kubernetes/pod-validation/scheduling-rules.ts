/** Rules for where and when a pod may be placed: affinity, tolerations, spreading, gates, priority. */
import { checkDns1123Label, checkDns1123Subdomain, checkLabelValue, checkQualifiedName } from '../names.ts';
import type { FieldErrors } from './field-error.ts';
import { checkLabelSelector, checkLabels, checkNodeSelectorTerm, type LabelSelector } from './label-rules.ts';
import { isBlank, isEmptyList, type RuleContext } from './rule-context.ts';
import type { Affinity, PodSpec, Toleration } from './unvalidated-pod.ts';

type PodAffinityTerms = NonNullable<Affinity['podAffinity']>;
type PodAffinityTerm = NonNullable<
  PodAffinityTerms['requiredDuringSchedulingIgnoredDuringExecution']
>[number];
type SpreadConstraint = NonNullable<PodSpec['topologySpreadConstraints']>[number];

const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';

export function checkScheduling(context: RuleContext): void {
  const { errors, spec } = context;
  checkLabels(errors, 'spec.nodeSelector', spec.nodeSelector);
  if (spec.affinity) checkAffinity(errors, spec.affinity);
  spec.tolerations?.forEach((toleration, index) => {
    checkToleration(context, `spec.tolerations[${index}]`, toleration);
  });
  checkSpread(errors, 'spec.topologySpreadConstraints', spec.topologySpreadConstraints ?? []);
  spec.readinessGates?.forEach(({ conditionType = '' }, index) => {
    const at = `spec.readinessGates[${index}].conditionType`;
    errors.problems(at, conditionType, checkQualifiedName(conditionType));
  });
  checkSchedulingGates(errors, spec);
  if (spec.priorityClassName) {
    errors.problems(
      'spec.priorityClassName',
      spec.priorityClassName,
      checkDns1123Subdomain(spec.priorityClassName),
    );
  }
  errors.optionalOneOf('spec.preemptionPolicy', spec.preemptionPolicy, ['PreemptLowerPriority', 'Never']);
  const group = spec.schedulingGroup?.podGroupName;
  if (group) {
    errors.problems('spec.schedulingGroup.podGroupName', group, checkDns1123Subdomain(group));
  }
}

function checkSchedulingGates(errors: FieldErrors, spec: PodSpec): void {
  const seen = new Set<string>();
  spec.schedulingGates?.forEach(({ name = '' }, index) => {
    const at = `spec.schedulingGates[${index}].name`;
    errors.problems(at, name, checkQualifiedName(name));
    if (seen.has(name)) errors.duplicate(at, name);
    seen.add(name);
  });
  if (!isEmptyList(spec.schedulingGates) && !isBlank(spec.nodeName)) {
    errors.forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared');
  }
}

function checkAffinity(errors: FieldErrors, affinity: Affinity): void {
  const node = affinity.nodeAffinity;
  const nodePath = 'spec.affinity.nodeAffinity';
  const selector = node?.[required];
  if (selector && isEmptyList(selector.nodeSelectorTerms)) {
    errors.required(`${nodePath}.${required}.nodeSelectorTerms`, 'must have at least one node selector term');
  }
  selector?.nodeSelectorTerms?.forEach((term, index) => {
    checkNodeSelectorTerm(errors, `${nodePath}.${required}.nodeSelectorTerms[${index}]`, term);
  });
  node?.[preferred]?.forEach(({ weight, preference }, index) => {
    const at = `${nodePath}.${preferred}[${index}]`;
    checkWeight(errors, at, weight);
    checkNodeSelectorTerm(errors, `${at}.preference`, preference ?? {});
  });
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const path = `spec.affinity.${kind}`;
    affinity[kind]?.[required]?.forEach((term, index) => {
      checkPodAffinityTerm(errors, `${path}.${required}[${index}]`, term);
    });
    affinity[kind]?.[preferred]?.forEach(({ weight, podAffinityTerm }, index) => {
      const at = `${path}.${preferred}[${index}]`;
      checkWeight(errors, at, weight);
      checkPodAffinityTerm(errors, `${at}.podAffinityTerm`, podAffinityTerm);
    });
  }
}

function checkWeight(errors: FieldErrors, path: string, weight: number | undefined): void {
  errors.range(`${path}.weight`, weight ?? 0, 1, 100);
}

function checkPodAffinityTerm(errors: FieldErrors, path: string, term: PodAffinityTerm | undefined): void {
  checkLabelSelector(errors, `${path}.labelSelector`, term?.labelSelector);
  checkLabelSelector(errors, `${path}.namespaceSelector`, term?.namespaceSelector);
  for (const [index, namespace] of (term?.namespaces ?? []).entries()) {
    errors.problems(`${path}.namespaces[${index}]`, namespace, checkDns1123Label(namespace));
  }
  checkTopologyKey(errors, `${path}.topologyKey`, term?.topologyKey);
  const { matchLabelKeys, mismatchLabelKeys, labelSelector } = term ?? {};
  checkMatchLabelKeys(errors, `${path}.matchLabelKeys`, matchLabelKeys, labelSelector);
  checkMatchLabelKeys(errors, `${path}.mismatchLabelKeys`, mismatchLabelKeys, labelSelector);
  const matched = new Set(matchLabelKeys);
  for (const [index, key] of (mismatchLabelKeys ?? []).entries()) {
    if (!matched.has(key)) continue;
    errors.invalid(
      `${path}.mismatchLabelKeys[${index}]`,
      key,
      'exists in both matchLabelKeys and mismatchLabelKeys',
    );
  }
}

function checkTopologyKey(errors: FieldErrors, path: string, key: string | undefined): void {
  if (key === undefined || key === '') errors.required(path);
  else errors.problems(path, key, checkQualifiedName(key));
}

/** Label keys whose values come from the pod itself, and narrow the selector beside them. */
function checkMatchLabelKeys(
  errors: FieldErrors,
  path: string,
  keys: readonly string[] | undefined,
  selector: LabelSelector | undefined,
): void {
  if (keys === undefined || keys.length === 0) return;
  if (!selector) errors.forbidden(path, 'may not be set when labelSelector is not');
  for (const [index, key] of keys.entries()) {
    errors.problems(`${path}[${index}]`, key, checkQualifiedName(key));
  }
}

const comparisons = ['Lt', 'Gt'];

function checkToleration(context: RuleContext, path: string, toleration: Toleration): void {
  const { errors, featureEnabled } = context;
  const { key, operator, value, effect, tolerationSeconds } = toleration;
  if (key) errors.problems(`${path}.key`, key, checkQualifiedName(key));
  else if (operator !== 'Exists') {
    errors.invalid(
      `${path}.operator`,
      operator ?? '',
      'must be Exists when `key` is empty, which means all keys',
    );
  }
  if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
    errors.invalid(`${path}.effect`, effect ?? '', 'must be NoExecute when `tolerationSeconds` is set');
  }
  const operators = ['Equal', 'Exists'];
  if (featureEnabled('TaintTolerationComparisonOperators')) operators.push(...comparisons);
  const effective = operator || 'Equal';
  if (!operators.includes(effective)) errors.notSupported(`${path}.operator`, operator, operators);
  else if (effective === 'Equal') errors.problems(`${path}.value`, value ?? '', checkLabelValue(value ?? ''));
  else if (effective === 'Exists') {
    if (value) errors.invalid(`${path}.value`, value, 'must be empty when `operator` is Exists');
  } else if (!/^(?:0|-?[1-9]\d{0,18})$/.test(value ?? '')) {
    errors.invalid(`${path}.value`, value ?? '', `must be a whole number when \`operator\` is ${effective}`);
  }
  if (effect) errors.optionalOneOf(`${path}.effect`, effect, ['NoSchedule', 'PreferNoSchedule', 'NoExecute']);
}

function checkSpread(errors: FieldErrors, path: string, constraints: readonly SpreadConstraint[]): void {
  const seen = new Set<string>();
  constraints.forEach((constraint, index) => {
    const at = `${path}[${index}]`;
    const { maxSkew = 0, minDomains, topologyKey, whenUnsatisfiable } = constraint;
    if (maxSkew <= 0) errors.invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero');
    if (minDomains !== undefined) {
      if (minDomains <= 0) errors.invalid(`${at}.minDomains`, minDomains, 'must be greater than zero');
      if (whenUnsatisfiable !== 'DoNotSchedule') {
        errors.invalid(
          `${at}.minDomains`,
          minDomains,
          'may only be set when whenUnsatisfiable is DoNotSchedule',
        );
      }
    }
    checkTopologyKey(errors, `${at}.topologyKey`, topologyKey);
    errors.optionalOneOf(`${at}.whenUnsatisfiable`, whenUnsatisfiable ?? '', [
      'DoNotSchedule',
      'ScheduleAnyway',
    ]);
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`;
    if (seen.has(pair)) errors.duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair);
    seen.add(pair);
    errors.optionalOneOf(`${at}.nodeAffinityPolicy`, constraint.nodeAffinityPolicy, ['Honor', 'Ignore']);
    errors.optionalOneOf(`${at}.nodeTaintsPolicy`, constraint.nodeTaintsPolicy, ['Honor', 'Ignore']);
    checkLabelSelector(errors, `${at}.labelSelector`, constraint.labelSelector);
    checkMatchLabelKeys(errors, `${at}.matchLabelKeys`, constraint.matchLabelKeys, constraint.labelSelector);
  });
}
