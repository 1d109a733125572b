/**
 * Reads the text behind a flag, with the notation of Go's flag types: `0x10` and `1_000` are integers,
 * `t` is true, lists are comma separated and add up over repeated flags, maps are `a=b,c=d`.
 */
import { isIP } from 'node:net';
import { parseDurationNanos } from '../../kubernetes/duration.ts';
import { tryParseQuantity } from '../../kubernetes/quantity.ts';
import type { FlagDefinition, FlagType, ValueOfFlagType } from './flag.ts';

/** The text does not fit the flag's type; the message says what would. */
export class FlagValueError extends Error {
  override readonly name = 'FlagValueError';
}

type Reader<T extends FlagType> = (
  text: string,
  previous: ValueOfFlagType[T] | undefined,
  definition: FlagDefinition,
) => ValueOfFlagType[T];

const TRUE = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

function readBool(text: string): boolean {
  if (TRUE.has(text)) return true;
  if (FALSE.has(text)) return false;
  throw new FlagValueError(`needs true or false, not ${JSON.stringify(text)}`);
}

const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|0|[1-9][0-9_]*)$/;

function readInteger(text: string, bits: 32 | 64): number {
  const match = INTEGER.exec(text);
  if (match) {
    const digits = match[2]!.replaceAll('_', '').replace(/^0([0-7])/, '0o$1');
    const value = Number(digits) * (match[1] === '-' ? -1 : 1);
    const highest = bits === 32 ? 2 ** 31 - 1 : Number.MAX_SAFE_INTEGER;
    if (!Number.isNaN(value) && value <= highest && value >= -highest - (bits === 32 ? 1 : 0))
      return value + 0;
  }
  throw new FlagValueError(`needs a whole number of ${bits} bits, not ${JSON.stringify(text)}`);
}

/** Comma separated values; a value with a comma stands in double quotes, as in CSV. */
function splitList(text: string): string[] {
  if (text === '') return [];
  const items: string[] = [];
  let rest = text;
  for (;;) {
    const quoted = /^"((?:[^"]|"")*)"(,|$)/.exec(rest);
    const match = quoted ?? /^([^,]*)(,|$)/.exec(rest)!;
    items.push(quoted ? quoted[1]!.replaceAll('""', '"') : match[1]!);
    if (match[2] === '') return items;
    rest = rest.slice(match[0].length);
  }
}

function* pairs(text: string, separator: string): Generator<[string, string]> {
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const at = part.indexOf(separator);
    if (at < 0)
      throw new FlagValueError(`needs pairs such as name${separator}value, not ${JSON.stringify(part)}`);
    const key = part.slice(0, at).trim();
    if (key === '') throw new FlagValueError(`has a pair without a name: ${JSON.stringify(part)}`);
    yield [key, part.slice(at + 1).trim()];
  }
}

/** Maps may hold any key, also the names of object built-ins. */
function asRecord<T>(entries: Iterable<[string, T]>): Record<string, T> {
  return Object.fromEntries(entries);
}

function checked(text: string, isValid: boolean, needs: string): string {
  if (!isValid) throw new FlagValueError(`needs ${needs}, not ${JSON.stringify(text)}`);
  return text;
}

function isDuration(text: string): boolean {
  try {
    parseDurationNanos(text);
    return true;
  } catch {
    return false;
  }
}

function readTaint(text: string): { key: string; value?: string; effect: string } {
  const match = /^([^=:]+)(?:=([^=:]*))?:([^=:]+)$/.exec(text);
  if (!match)
    throw new FlagValueError(`needs taints such as key=value:NoSchedule, not ${JSON.stringify(text)}`);
  const [, key, value, effect] = match;
  return { key: key!, ...(value !== undefined && { value }), effect: effect! };
}

function readReservedMemory(text: string): { numaNode: number; limits: Record<string, string> } {
  const match = /^(\d{1,9}):(.+)$/.exec(text.trim());
  if (!match)
    throw new FlagValueError(
      `needs entries such as 0:memory=1Gi,hugepages-2Mi=64Mi, not ${JSON.stringify(text)}`,
    );
  const limits = asRecord(pairs(match[2]!, '='));
  for (const amount of Object.values(limits))
    checked(amount, tryParseQuantity(amount) !== undefined, 'quantities');
  return { numaNode: Number(match[1]), limits };
}

const VERSION = /^v\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]*)?$/;

const READERS: { [T in FlagType]: Reader<T> } = {
  bool: readBool,
  int: (text) => readInteger(text, 64),
  int32: (text) => readInteger(text, 32),
  int64: (text) => readInteger(text, 64),
  Level: (text) => {
    const level = readInteger(text, 32);
    if (level < 0) throw new FlagValueError(`needs a level from 0, not ${level}`);
    return level;
  },
  string: (text) => text,
  ip: (text) => checked(text.trim(), isIP(text.trim()) !== 0, 'an IP address'),
  duration: (text) => checked(text, isDuration(text), 'a duration such as 10s or 1m30s'),
  quantity: (text) => checked(text, tryParseQuantity(text) !== undefined, 'a quantity such as 512Ki'),
  strings: (text, previous = []) => [...previous, ...splitList(text)],
  mapStringString: (text, previous = {}, { separator = '=' }) => ({
    ...(text === '' ? {} : previous),
    ...asRecord(pairs(text, separator)),
  }),
  mapStringBool: (text, previous = {}) => {
    const values = new Map(Object.entries(previous));
    for (const [key, value] of pairs(text, '=')) values.set(key, readBool(value));
    return asRecord(values);
  },
  colonSeparatedMultimapStringString: (text, previous = {}) => {
    const values = new Map(Object.entries(text === '' ? {} : previous));
    for (const [key, value] of pairs(text, ':')) values.set(key, [...(values.get(key) ?? []), value]);
    return asRecord(values);
  },
  '[]v1.Taint': (text, previous = []) => [...previous, ...splitList(text).map(readTaint)],
  'reserved-memory': (text, previous = []) => [
    ...previous,
    ...text
      .split(';')
      .filter((part) => part.trim() !== '')
      .map(readReservedMemory),
  ],
  'pattern=N,...': (text) => {
    const patterns = [];
    for (const [filePattern, level] of pairs(text, '=')) {
      const verbosity = readInteger(level, 32);
      if (verbosity < 0) throw new FlagValueError(`needs levels from 0, not ${verbosity}`);
      patterns.push({ filePattern, verbosity });
    }
    return patterns;
  },
  version: (text) => {
    if (text === 'raw' || VERSION.test(text)) return text;
    if (TRUE.has(text)) return 'true';
    if (FALSE.has(text)) return 'false';
    throw new FlagValueError(`needs true, raw or a version such as v1.36.2, not ${JSON.stringify(text)}`);
  },
};

/** `previous` is the value from an earlier occurrence of the same flag. Throws `FlagValueError`. */
export function readFlagValue(definition: FlagDefinition, text: string, previous: unknown): unknown {
  return (READERS[definition.type] as Reader<FlagType>)(text, previous as never, definition);
}
