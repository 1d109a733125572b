/**
 * klog's text format, read by people and by every log collector that knows Kubernetes:
 *
 *     I1130 17:20:20.123000   12345 sources:1] "Pod added" pod="default/web" attempt=2
 *
 * Severity, month and day, local time with microseconds, process id in seven columns, source, message and
 * fields. Strings are quoted as Go quotes them, text of several lines is set as an indented block, anything
 * else is JSON. Line 1 stands for "unknown line", as in klog itself.
 */

import { errorText, fieldJson, mistakeStack } from './error-text.ts';
import { quote } from './go-quote.ts';
import type { LogRecord } from './log-record.ts';
import type { LogFields } from './logger.ts';

const processId = String(process.pid).padStart(7);

/** One finished line, line break included. */
export function klogLine(record: LogRecord): string {
  const { severity, fields } = record;
  let line = `${severity}${stamp(record.time)} ${processId} ${record.source}:1] ${quote(record.message)}`;
  if (severity === 'E' && record.error !== undefined) {
    line += pair('err', errorText(record.error));
    const stack = mistakeStack(record.error);
    if (stack !== undefined) line += pair('stack', stack);
  }
  for (let at = 0; at < fields.length; at++) {
    const group = fields[at];
    if (group === undefined) continue;
    for (const key of Object.keys(group)) {
      if (!setLater(fields, at, key)) line += pair(key, group[key]);
    }
  }
  return `${line}\n`;
}

/** True when a later group has the same key: the innermost value is the one that counts. */
function setLater(groups: readonly (LogFields | undefined)[], at: number, key: string): boolean {
  for (let later = at + 1; later < groups.length; later++) {
    const group = groups[later];
    if (group !== undefined && Object.hasOwn(group, key)) return true;
  }
  return false;
}

function pair(key: string, value: unknown): string {
  if (typeof value === 'string') return text(key, value);
  if (typeof value === 'number' || typeof value === 'boolean') return ` ${key}=${value}`;
  if (value instanceof Error) return text(key, errorText(value));
  return ` ${key}=${fieldJson(value)}`;
}

function text(key: string, value: string): string {
  if (!value.includes('\n')) return ` ${key}=${quote(value)}`;
  const body = value.endsWith('\n') ? value.slice(0, -1) : value;
  return ` ${key}=<\n\t${body.replaceAll('\n', '\n\t')}\n >`;
}

/** The last second written: lines come in bursts, and local time is the dear part of a line. */
let lastSecond = Number.NaN;
let lastStamp = '';

function stamp(time: number): string {
  const second = Math.floor(time / 1000);
  if (second !== lastSecond) {
    const at = new Date(second * 1000);
    const day = `${two(at.getMonth() + 1)}${two(at.getDate())}`;
    lastStamp = `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.`;
    lastSecond = second;
  }
  const micros = Math.floor((time - second * 1000) * 1000);
  return lastStamp + String(micros).padStart(6, '0');
}

function two(value: number): string {
  return value < 10 ? `0${value}` : String(value);
}
