/**
 * Holds a decoded file against the table of fields. What is unknown or of the wrong form is reported and
 * left out, so that one look at a file finds all its mistakes.
 *
 * Differs from the kubelet: it goes on, with a log line, when a file has unknown fields; a misspelt
 * field here is an error that names the nearest known one.
 */
import { isObject } from '../kubernetes/json-object.ts';
import { nearestName } from '../kubernetes/nearest-name.ts';
import type { JsonObject, JsonValue } from '../kubernetes/yaml.ts';
import type { FieldPath } from './configuration-error.ts';
import { type Field, type Fields, isRequired } from './field.ts';
import { listFields } from './kubelet-configuration.ts';

/** Told of a value that is wrong. */
export type Report = (path: FieldPath, message: string) => void;

/** The part of `raw` that fits. Null members stay: in a drop-in they remove what was set before. */
export function readFields(
  fields: Fields,
  raw: JsonObject,
  report: Report,
  path: FieldPath = [],
): JsonObject {
  const clean: [string, JsonValue][] = [];
  for (const [name, value] of Object.entries(raw)) {
    const at = [...path, name];
    const described = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!described) report(at, `unknown field${suggestion(name, fields)}`);
    else if (value === null) clean.push([name, null]);
    else {
      const fitting = readField(described, value, report, at);
      if (fitting !== undefined) clean.push([name, fitting]);
    }
  }
  return Object.fromEntries(clean);
}

function readField(described: Field, value: JsonValue, report: Report, at: FieldPath): JsonValue | undefined {
  const misfit = described.misfit(value);
  if (misfit) {
    report(at, misfit);
    return undefined;
  }
  if (described.members && isObject(value)) return readFields(described.members, value, report, at);
  if (described.items && Array.isArray(value)) return readItems(described.items, value, report, at);
  return value;
}

/** The list, or undefined when an item lacks a required member: half a list would mean something else. */
function readItems(
  fields: Fields,
  list: readonly JsonValue[],
  report: Report,
  at: FieldPath,
): JsonValue[] | undefined {
  let complete = true;
  const items = list.map((item, index) => {
    const itemPath = [...at, index];
    if (!isObject(item)) {
      report(itemPath, 'must be an object');
      complete = false;
      return item;
    }
    const read = readFields(fields, item, report, itemPath);
    for (const [name, described] of Object.entries(fields)) {
      if (!isRequired(described) || (read[name] !== undefined && read[name] !== null)) continue;
      if (item[name] === undefined || item[name] === null) report([...itemPath, name], 'is required');
      complete = false;
    }
    return read;
  });
  return complete ? items : undefined;
}

function suggestion(name: string, siblings: Fields): string {
  const sibling = nearestName(name, Object.keys(siblings));
  if (sibling) return `; did you mean ${sibling}?`;
  for (const path of listFields().keys()) {
    if (path.endsWith(`.${name}`)) return `; did you mean ${path}?`;
  }
  return '';
}

/** Applies the rule of every single field to a complete configuration. */
export function checkValues(
  fields: Fields,
  values: Readonly<Record<string, unknown>>,
  report: Report,
  path: FieldPath = [],
): void {
  for (const [name, described] of Object.entries(fields)) {
    const value = values[name];
    if (value === undefined || value === null) continue;
    const at = [...path, name];
    if (described.check && !described.check.accepts(value as never)) {
      report(at, `must be ${described.check.rule}, not ${quote(value as JsonValue)}`);
    }
    if (described.members) checkValues(described.members, value as Record<string, unknown>, report, at);
    if (described.items) {
      for (const [index, item] of (value as Record<string, unknown>[]).entries()) {
        checkValues(described.items, item, report, [...at, index]);
      }
    }
  }
}

function quote(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}
