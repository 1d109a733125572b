/**
 * The building blocks of the KubeletConfiguration table: one value per field says its type, default, rule
 * and meaning, and TypeScript derives the type of the whole configuration from it. Values stay in their
 * wire form (durations and quantities are texts); `settings.ts` turns them into numbers.
 *
 * `pointer` tells which fields can say "explicitly zero": for the others a zero value in a file means "not
 * given" and the default applies, as in every Go component configuration.
 */

import { parseDurationNanos } from '../kubernetes/duration.ts';
import { isObject } from '../kubernetes/json-object.ts';
import { tryParseQuantity } from '../kubernetes/quantity.ts';
import type { JsonValue } from '../kubernetes/yaml.ts';

/** A rule on a single value: how the reference page words it, and the test itself. */
export interface ValueCheck<T> {
  readonly rule: string;
  readonly accepts: (value: T) => boolean;
}

/** What is said of a field beside its type. */
export interface FieldOptions {
  /** Wire value when nothing is given. Without one the field stays absent. */
  readonly default?: JsonValue;
  readonly pointer?: true;
  /** Feature gate that must be on for the field to be used. */
  readonly gate?: string;
}

interface CheckedOptions<T> extends FieldOptions {
  readonly check?: ValueCheck<T>;
}

/** `Presence` is `'set'` for fields that always have a value once defaults are filled in. */
export interface Field<T = unknown, Presence extends 'set' | 'optional' = 'set' | 'optional'> {
  readonly type: string;
  readonly summary: string;
  readonly pointer: boolean;
  readonly default: JsonValue | undefined;
  readonly gate: string | undefined;
  readonly check: ValueCheck<never> | undefined;
  /** What is wrong with the form of a value ("must be …"), or undefined. */
  readonly misfit: (value: JsonValue) => string | undefined;
  /** Fields of an object. */
  readonly members?: Fields;
  /** Fields of each object in a list. */
  readonly items?: Fields;
  /** Only for the type checker. */
  readonly infer?: { readonly value: T; readonly presence: Presence };
}

/** The members of an object by name. */
export type Fields = Readonly<Record<string, Field>>;

type PresenceOf<O> = O extends { default: JsonValue } ? 'set' : 'optional';
type ValueOf<F> = F extends Field<infer T> ? T : never;
type SetKeys<T extends Fields> = { [K in keyof T]: T[K] extends Field<unknown, 'set'> ? K : never }[keyof T];

/** The TypeScript type of an object described by `Fields`, with defaults filled in. */
export type Configured<T extends Fields> = { [K in SetKeys<T>]: ValueOf<T[K]> } & {
  [K in Exclude<keyof T, SetKeys<T>>]?: ValueOf<T[K]>;
};

function field<T, O extends CheckedOptions<never>>(
  type: string,
  summary: string,
  options: O | undefined,
  misfit: Field['misfit'],
): Field<T, PresenceOf<O>> {
  return {
    type,
    summary,
    pointer: options?.pointer ?? false,
    default: options?.default,
    gate: options?.gate,
    check: options?.check,
    misfit,
  };
}

const mustBeObject = (value: JsonValue) =>
  isObject(value) ? undefined : `must be an object, not ${show(value)}`;

/** How a message quotes a value. */
function show(value: JsonValue): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return JSON.stringify(value);
}

/** `true` or `false`. */
export function bool<const O extends FieldOptions>(
  summary: string,
  options?: O,
): Field<boolean, PresenceOf<O>> {
  return field('bool', summary, options, (value) =>
    typeof value === 'boolean' ? undefined : `must be true or false, not ${show(value)}`,
  );
}

const INTEGER_BOUNDS = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
} as const;

/** A whole number within the bounds of its type. */
export function integer<const O extends CheckedOptions<number>>(
  type: keyof typeof INTEGER_BOUNDS,
  summary: string,
  options?: O,
): Field<number, PresenceOf<O>> {
  return field(type, summary, options, (value) => integerMisfit(type, value));
}

function integerMisfit(type: keyof typeof INTEGER_BOUNDS, value: JsonValue): string | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value))
    return `must be a whole number, not ${show(value)}`;
  const [low, high] = INTEGER_BOUNDS[type];
  return value < low || value > high
    ? `must be between ${low} and ${high} (${type}), not ${value}`
    : undefined;
}

/** A number. */
export function float<const O extends CheckedOptions<number>>(
  summary: string,
  options?: O,
): Field<number, PresenceOf<O>> {
  return field('float64', summary, options, (value) =>
    typeof value === 'number' ? undefined : `must be a number, not ${show(value)}`,
  );
}

const textMisfit = (value: JsonValue) => {
  if (typeof value === 'string') return undefined;
  const hint = typeof value === 'number' || typeof value === 'boolean' ? ' (write it in quotes)' : '';
  return `must be a text, not ${show(value)}${hint}`;
};

/** A text. */
export function text<const O extends CheckedOptions<string>>(
  summary: string,
  options?: O,
): Field<string, PresenceOf<O>> {
  return field('string', summary, options, textMisfit);
}

/** One of a few words. `type` is `string(enum)` where the API type is an enumeration of its own. */
export function choice<const W extends string, const O extends FieldOptions>(
  type: 'string' | 'string(enum)',
  words: readonly W[],
  summary: string,
  options?: O,
): Field<W, PresenceOf<O>> {
  const listed = words.map((word) => word || '""').join(', ');
  const check: ValueCheck<string> = {
    rule: `one of ${listed}`,
    accepts: (value) => (words as readonly string[]).includes(value),
  };
  return field(type, summary, { ...options, check } as unknown as O, textMisfit);
}

/** A Go duration such as `1m30s`, kept as text. */
export function duration<const O extends CheckedOptions<string>>(
  summary: string,
  options?: O,
): Field<string, PresenceOf<O>> {
  return field('duration', summary, options, durationMisfit);
}

/** `logging.flushFrequency` alone may also be a number of nanoseconds. */
export function durationOrNanoseconds<const O extends CheckedOptions<string | number>>(
  summary: string,
  options?: O,
): Field<string | number, PresenceOf<O>> {
  return field('duration', summary, options, (value) =>
    typeof value === 'number' && Number.isInteger(value) ? undefined : durationMisfit(value),
  );
}

function durationMisfit(value: JsonValue): string | undefined {
  if (typeof value === 'string') {
    try {
      parseDurationNanos(value);
      return undefined;
    } catch {
      // reported below
    }
  }
  return `must be a duration such as "10s" or "1m30s", not ${show(value)}`;
}

/** A Kubernetes quantity; YAML may give it as a plain number. */
export function quantity<const O extends FieldOptions>(
  summary: string,
  options?: O,
): Field<string | number, PresenceOf<O>> {
  return field('quantity', summary, options, quantityMisfit);
}

function quantityMisfit(value: JsonValue): string | undefined {
  const isQuantity = (typeof value === 'string' || typeof value === 'number') && tryParseQuantity(value);
  return isQuantity ? undefined : `must be a quantity such as "512Mi" or "500m", not ${show(value)}`;
}

/** A list of texts. */
export function texts<const O extends CheckedOptions<readonly string[]>>(
  summary: string,
  options?: O,
): Field<string[], PresenceOf<O>> {
  return field('list(string)', summary, options, (value) => listMisfit(value, textMisfit));
}

/** A list of whole numbers. */
export function integers<const O extends CheckedOptions<readonly number[]>>(
  summary: string,
  options?: O,
): Field<number[], PresenceOf<O>> {
  return field('list(int32)', summary, options, (value) =>
    listMisfit(value, (item) => integerMisfit('int32', item)),
  );
}

type ValueKind = 'string' | 'bool' | 'list(string)' | 'quantity';
interface ValueOfKind {
  string: string;
  bool: boolean;
  'list(string)': string[];
  quantity: string | number;
}

const MISFIT_OF_KIND: Record<ValueKind, (value: JsonValue) => string | undefined> = {
  string: textMisfit,
  bool: (value) => (typeof value === 'boolean' ? undefined : `must be true or false, not ${show(value)}`),
  'list(string)': (value) => listMisfit(value, textMisfit),
  quantity: quantityMisfit,
};

/** A map from names to values of one kind. */
export function map<
  K extends ValueKind,
  const O extends CheckedOptions<Readonly<Record<string, ValueOfKind[K]>>>,
>(kind: K, summary: string, options?: O): Field<Record<string, ValueOfKind[K]>, PresenceOf<O>> {
  const type = kind === 'quantity' ? 'map[string]quantity' : `map(string,${kind})`;
  return field(type, summary, options, (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return mustBeObject(value);
    for (const [key, item] of Object.entries(value)) {
      const problem = item === null ? undefined : MISFIT_OF_KIND[kind](item);
      if (problem) return `${JSON.stringify(key)} ${problem}`;
    }
    return undefined;
  });
}

function listMisfit(
  value: JsonValue,
  itemMisfit: (item: JsonValue) => string | undefined,
): string | undefined {
  if (!Array.isArray(value)) return `must be a list, not ${show(value)}`;
  for (const [index, item] of value.entries()) {
    const problem = itemMisfit(item);
    if (problem) return `item ${index} ${problem}`;
  }
  return undefined;
}

/** An object that is always there; its members have their own defaults. */
export function object<const M extends Fields>(
  summary: string,
  members: M,
  options: { gate?: string; default?: JsonValue } = {},
): Field<Configured<M>, 'set'> {
  const filled = { default: {}, ...options };
  return {
    ...field<Configured<M>, { default: JsonValue }>('object', summary, filled, mustBeObject),
    members,
  };
}

/** An object whose absence means something of its own. */
export function optionalObject<const M extends Fields>(
  summary: string,
  members: M,
  options: { gate?: string } = {},
): Field<Configured<M>, 'optional'> {
  return { ...field('object', summary, { ...options, pointer: true }, mustBeObject), members };
}

/** A list of objects with these members; `type` is its name in the reference. */
export function objects<const M extends Fields>(
  type: string,
  summary: string,
  items: M,
  options: { gate?: string } = {},
): Field<Configured<M>[], 'optional'> {
  const misfit = (value: JsonValue) =>
    Array.isArray(value) ? undefined : `must be a list, not ${show(value)}`;
  return { ...field(type, summary, options, misfit), items };
}

/** Marks a member that every object in a list must have. */
export function required<T>(described: Field<T>): Field<T, 'set'> {
  return { ...described, required: true } as unknown as Field<T, 'set'>;
}

/** True for a member without which its object is refused. */
export function isRequired(described: Field): boolean {
  return (described as { required?: true }).required === true;
}
