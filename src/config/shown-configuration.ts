/**
 * A configuration as it is shown to others (`/configz`): durations in the one form that Go prints, `10m0s`
 * for what a file may give as `10m` or `600s`, so that tools can compare them as texts.
 */
import { formatDurationNanos, parseDurationNanos } from '../kubernetes/duration.ts';
import type { Field } from './field.ts';
import { CONFIGURATION_FIELDS, type KubeletConfiguration } from './kubelet-configuration.ts';

type Members = Readonly<Record<string, Field>>;

/** A copy; durations that are numbers (nanoseconds of `logging.flushFrequency`) stay numbers. */
export function shownConfiguration(configuration: KubeletConfiguration): object {
  return shownMembers(configuration, CONFIGURATION_FIELDS);
}

function shownMembers(values: object, members: Members): object {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, shownValue(value, members[name])]),
  );
}

function shownValue(value: unknown, described: Field | undefined): unknown {
  if (!described || value === undefined || value === null) return value;
  if (described.type === 'duration' && typeof value === 'string') {
    return formatDurationNanos(parseDurationNanos(value));
  }
  if (described.members && typeof value === 'object') return shownMembers(value, described.members);
  const { items } = described;
  if (items && Array.isArray(value)) return value.map((item) => shownMembers(item as object, items));
  return value;
}
