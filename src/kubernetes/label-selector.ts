/** Whether labels fit a label selector, as the API reads one. Pure. */
import type { LabelSelector } from './pod-validation/label-rules.ts';

/** No selector fits nothing; one without requirements fits everything. */
export function matchesLabels(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  if (selector === undefined) return false;
  const wanted = Object.entries(selector.matchLabels ?? {});
  if (!wanted.every(([key, value]) => labels[key] === value)) return false;
  return (selector.matchExpressions ?? []).every(({ key = '', ...rest }) =>
    meetsRequirement(labels[key], rest),
  );
}

/**
 * Whether the value of a label, undefined for one that is not there, is as wanted. An operator that this
 * version does not know is met by nothing.
 */
export function meetsRequirement(
  value: string | undefined,
  { operator, values = [] }: { readonly operator?: string; readonly values?: readonly string[] | undefined },
): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}
