/** Fields that need a feature gate: given away from their default while the gate is off, they are refused. */
import { isDeepStrictEqual } from 'node:util';
import { parseDurationNanos } from '../../kubernetes/duration.ts';
import type { FieldPath } from '../configuration-error.ts';
import type { GateName } from '../feature-gates.ts';
import type { Field, Fields } from '../field.ts';
import { CONFIGURATION_FIELDS } from '../kubelet-configuration.ts';
import type { Rule } from './rule.ts';

/** A factor may wait in the file for the day its gate is turned on. */
const HARMLESS_WITHOUT_GATE = new Set(['memoryThrottlingFactor']);

const gatedFields: Rule = (configuration, report, gates) => {
  const visit = (fields: Fields, values: Readonly<Record<string, unknown>>, path: FieldPath) => {
    for (const [name, described] of Object.entries(fields)) {
      const value = values[name];
      if (value === undefined || HARMLESS_WITHOUT_GATE.has(name)) continue;
      const at = [...path, name];
      if (described.members) visit(described.members, value as Record<string, unknown>, at);
      else if (described.gate && !gates.enabled(described.gate as GateName) && !isDefault(described, value)) {
        report(at, `needs the feature gate ${described.gate}, which is off`);
      }
    }
  };
  visit(CONFIGURATION_FIELDS, configuration, []);
};

/** True when `value` says the same as the default, in whatever notation. */
export function isDefault(described: Field, value: unknown): boolean {
  const byDefault = described.default;
  if (isDeepStrictEqual(value, byDefault)) return true;
  if (described.type === 'quantity') return `${value as string | number}` === byDefault;
  if (described.type === 'duration' && typeof value === 'string' && typeof byDefault === 'string') {
    return parseDurationNanos(value) === parseDurationNanos(byDefault);
  }
  const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  return byDefault === undefined && isEmpty;
}

/** Rules of gated fields. */
export const gateRules: readonly Rule[] = [gatedFields];
