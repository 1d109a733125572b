/**
 * The first pass over a manifest: does every field have the JSON type that the API declares for it, and is
 * every field known? It works from a generated table, so nothing that the API has is forgotten here.
 *
 * The pass also gives the manifest in one normal form, as decoding in Go does: a null means the field is
 * absent, a null in a list is an empty value, quantities are written canonically (and in lists of resources
 * rounded up to a thousandth). The input is never changed.
 *
 * Differs from the kubelet: unknown fields are errors. A kubelet drops them, and the pod then runs without
 * what its author wrote.
 */

import { nearestName } from '../nearest-name.ts';
import { formatQuantity, parseQuantity, QuantityError } from '../quantity.ts';
import type { PodManifest } from '../types.ts';
import { FieldErrors, keyPath } from './field-error.ts';
import { podSchema } from './generated/pod-schema.ts';

/** `keep` leaves what is wrong in place, `drop` puts an empty value where a wrong one was. */
type OnWrong = 'keep' | 'drop';

interface Pass {
  readonly errors: FieldErrors;
  readonly onWrong: OnWrong;
  /** Paths of values with a wrong type. */
  readonly wrong: Set<string>;
  suggestionsLeft: number;
}

export interface PodStructure {
  /** The manifest in normal form; what had a wrong type or an unknown name is left out. */
  pod: PodManifest;
  /** Where values of a wrong type stood; rules about these fields have nothing to say. */
  wrong: ReadonlySet<string>;
}

/** Checks types and names of all fields, reporting to `errors`. Accepts any value; never throws. */
export function checkPodStructure(manifest: unknown, errors: FieldErrors): PodStructure {
  const pass: Pass = { errors, onWrong: 'drop', wrong: new Set(), suggestionsLeft: 50 };
  if (!isRecord(manifest)) {
    errors.invalid('pod', manifest, `must be an object, not ${describe(manifest)}`);
    return { pod: {}, wrong: new Set(['pod', 'metadata', 'spec']) };
  }
  return { pod: readStruct(pass, '', 'Pod', manifest) as PodManifest, wrong: pass.wrong };
}

/**
 * A deep copy of a manifest in normal form. Values of a wrong type and unknown fields stay as they are, for
 * validation to report. Never throws.
 */
export function normalizePod(manifest: PodManifest): PodManifest {
  if (!isRecord(manifest)) return {};
  const pass: Pass = { errors: new FieldErrors(), onWrong: 'keep', wrong: new Set(), suggestionsLeft: 0 };
  return readStruct(pass, '', 'Pod', manifest) as PodManifest;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const tables = new Map<string, ReadonlyMap<string, string>>();

/** Field name → type notation of one type of the generated table. */
function fieldsOf(type: string): ReadonlyMap<string, string> {
  let table = tables.get(type);
  if (!table) {
    const entries = (podSchema[type] ?? '').split(' ').filter((entry) => entry !== '');
    table = new Map(entries.map((entry) => entry.split(':') as [string, string]));
    tables.set(type, table);
  }
  return table;
}

function set(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else target[key] = value;
}

function readStruct(pass: Pass, path: string, type: string, from: Record<string, unknown>): unknown {
  const fields = fieldsOf(type);
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(from)) {
    const fieldType = fields.get(name);
    if (fieldType === undefined) {
      if (pass.onWrong === 'keep') set(result, name, value);
      else reportUnknown(pass, path, name, fields);
    } else if (value !== null && value !== undefined) {
      const read = readValue(pass, path === '' ? name : `${path}.${name}`, fieldType, value);
      if (read !== undefined) result[name] = read;
    }
  }
  return result;
}

function reportUnknown(pass: Pass, path: string, name: string, fields: ReadonlyMap<string, string>): void {
  const nearest = pass.suggestionsLeft-- > 0 ? nearestName(name, fields.keys()) : undefined;
  const shown = name.length > 128 ? `${name.slice(0, 128)}…` : name;
  pass.errors.forbidden(
    path === '' ? shown : `${path}.${shown}`,
    nearest === undefined ? 'unknown field' : `unknown field; did you mean "${nearest}"?`,
  );
}

/** The value in normal form; `undefined` when it had a wrong type and such values are dropped. */
function readValue(pass: Pass, path: string, type: string, value: unknown): unknown {
  const inner = type.slice(1, -1);
  if (type.startsWith('[')) {
    if (!Array.isArray(value)) return wrongType(pass, path, value, 'a list');
    return value.map((item: unknown, index) => {
      const present = item ?? emptyValue(inner);
      return readValue(pass, `${path}[${index}]`, inner, present) ?? emptyValue(inner);
    });
  }
  if (type.startsWith('{')) {
    if (!isRecord(value)) return wrongType(pass, path, value, 'an object');
    return readMap(pass, path, inner, value);
  }
  const scalar = scalars[type];
  if (scalar) return scalar(pass, path, value);
  if (!isRecord(value)) return wrongType(pass, path, value, 'an object');
  return readStruct(pass, path, type, value);
}

function readMap(pass: Pass, path: string, type: string, from: Record<string, unknown>): unknown {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(from)) {
    const read =
      type === 'quantity'
        ? readQuantity(pass, keyPath(path, key), value ?? '0', true)
        : readValue(pass, keyPath(path, key), type, value ?? emptyValue(type));
    if (read !== undefined) set(result, key, read);
  }
  return result;
}

/** What Go holds where a list or a map has a null. */
function emptyValue(type: string): unknown {
  if (type === 'string') return '';
  if (type === 'quantity') return '0';
  if (type === 'int32' || type === 'int64' || type === 'intOrString') return 0;
  if (type === 'bool') return false;
  return {};
}

function wrongType(pass: Pass, path: string, value: unknown, wanted: string): unknown {
  const hint =
    wanted === 'a string' && (typeof value === 'number' || typeof value === 'boolean')
      ? '; write it in quotes'
      : '';
  return wrongValue(pass, path, value, `must be ${wanted}, not ${describe(value)}${hint}`);
}

function wrongValue(pass: Pass, path: string, value: unknown, detail: string): unknown {
  pass.errors.invalid(path, value, detail);
  pass.wrong.add(path);
  return pass.onWrong === 'keep' ? value : undefined;
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'boolean') return 'a boolean';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

type ScalarReader = (pass: Pass, path: string, value: unknown) => unknown;

const dateTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,12})?(?:[Zz]|[-+]\d\d:\d\d)$/;

const scalars: Readonly<Record<string, ScalarReader>> = {
  any: (_pass, _path, value) => value,
  string: (pass, path, value) =>
    typeof value === 'string' ? value : wrongType(pass, path, value, 'a string'),
  bool: (pass, path, value) =>
    typeof value === 'boolean' ? value : wrongType(pass, path, value, 'true or false'),
  int32: (pass, path, value) => readInteger(pass, path, value, int32),
  // A JavaScript number holds whole numbers exactly to 2⁵³; no field of a pod needs more.
  int64: (pass, path, value) => readInteger(pass, path, value, safeInteger),
  intOrString: (pass, path, value) =>
    typeof value === 'string' ? value : scalars['int32']?.(pass, path, value),
  time: (pass, path, value) => {
    if (typeof value !== 'string') return wrongType(pass, path, value, 'a time as a string');
    if (dateTime.test(value) && !Number.isNaN(Date.parse(value))) return value;
    return wrongValue(pass, path, value, 'must be a time such as 2006-01-02T15:04:05Z');
  },
  quantity: (pass, path, value) => readQuantity(pass, path, value, false),
};

interface Range {
  readonly least: number;
  readonly most: number;
}

const int32: Range = { least: -(2 ** 31), most: 2 ** 31 - 1 };
const safeInteger: Range = { least: Number.MIN_SAFE_INTEGER, most: Number.MAX_SAFE_INTEGER };

function readInteger(pass: Pass, path: string, value: unknown, { least, most }: Range): unknown {
  if (typeof value !== 'number') return wrongType(pass, path, value, 'a whole number');
  if (Number.isInteger(value) && value >= least && value <= most) return value === 0 ? 0 : value;
  return wrongValue(pass, path, value, `must be a whole number between ${least} and ${most}`);
}

/** More digits than any amount needs; longer texts are refused before they are parsed. */
export const longestQuantity = 128;
const nanosPerMilli = 10n ** 6n;

function readQuantity(pass: Pass, path: string, value: unknown, roundToMilli: boolean): unknown {
  if (typeof value !== 'string' && typeof value !== 'number') {
    return wrongType(pass, path, value, 'a quantity such as "500m" or "1Gi"');
  }
  if (typeof value === 'string' && value.length > longestQuantity) {
    return wrongValue(pass, path, value, `a quantity has at most ${longestQuantity} characters`);
  }
  try {
    const { nano, format } = parseQuantity(value);
    const excess = roundToMilli ? nano % nanosPerMilli : 0n;
    if (excess === 0n) return formatQuantity({ nano, format });
    return formatQuantity({ nano: nano - excess + (nano > 0n ? nanosPerMilli : -nanosPerMilli), format });
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    return wrongValue(pass, path, value, error.message);
  }
}
