/**
 * Kubernetes' JSON log: one object per line with `ts` (epoch milliseconds), `caller`, `msg`, then `v` on
 * information and `err` on errors, then the fields.
 *
 * Differs from the kubelet: a warning carries `"severity":"warning"`, which there is lost in this format.
 */

import { errorText, fieldJson, mistakeStack } from './error-text.ts';
import type { LogRecord } from './log-record.ts';

/** Keys of the format itself; a field of that name gets a trailing underscore instead of hiding it. */
const reserved = new Set(['ts', 'caller', 'msg', 'v', 'err', 'severity', 'stack']);

/** One finished line, line break included. */
export function jsonLine(record: LogRecord): string {
  const { severity } = record;
  let line = `{"ts":${record.time},"caller":${JSON.stringify(`${record.source}:1`)}`;
  line += `,"msg":${JSON.stringify(record.message)}`;
  if (severity === 'E') {
    if (record.error !== undefined) line += `,"err":${JSON.stringify(errorText(record.error))}`;
    const stack = mistakeStack(record.error);
    if (stack !== undefined) line += `,"stack":${JSON.stringify(stack)}`;
  } else {
    line += `,"v":${record.verbosity}`;
    if (severity === 'W') line += ',"severity":"warning"';
  }
  const [only] = record.fields;
  const fields = record.fields.length === 1 ? only : Object.assign({}, ...record.fields);
  for (const key in fields) {
    line += `,${JSON.stringify(reserved.has(key) ? `${key}_` : key)}:${value(fields[key])}`;
  }
  return `${line}}\n`;
}

function value(field: unknown): string {
  if (typeof field === 'string') return JSON.stringify(field);
  if (typeof field === 'number' && Number.isFinite(field)) return String(field);
  if (field instanceof Error) return JSON.stringify(errorText(field));
  return fieldJson(field);
}
