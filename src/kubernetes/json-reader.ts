/**
 * Reads JSON text together with the place of every value, and refuses what `JSON.parse` accepts in
 * silence: duplicate keys and integers that lose digits. The text must have passed `JSON.parse` before:
 * this reader trusts its syntax.
 */
import type { Composed, PositionOf } from './yaml-node.ts';
import { composed, createMapping, setMember } from './yaml-node.ts';

/** A position and a reason; the caller turns the offset into line and column. */
export class JsonReadError extends Error {
  override readonly name = 'JsonReadError';
  readonly offset: number;
  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

const TOKEN = /[ \t\r\n]*("(?:[^"\\]|\\.)*"|[-+.0-9eE]+|true|false|null|[[\]{}:,])/y;
const MAX_DEPTH = 100;

export function readJson(text: string): Composed {
  TOKEN.lastIndex = 0;
  const next = (): { token: string; offset: number } => {
    const match = TOKEN.exec(text);
    if (!match) throw new JsonReadError('unexpected text', TOKEN.lastIndex);
    const token = match[1]!;
    return { token, offset: TOKEN.lastIndex - token.length };
  };

  const readContainer = (depth: number, offset: number, isMapping: boolean): Composed => {
    if (depth > MAX_DEPTH) throw new JsonReadError(`nested deeper than ${MAX_DEPTH} levels`, offset);
    const positions: PositionOf = new Map();
    const items: Composed[] = [];
    const mapping = createMapping();
    for (;;) {
      let { token, offset: at } = next();
      if (token === ']' || token === '}') break;
      if (token === ',') ({ token, offset: at } = next());
      const position = at;
      let key: string | undefined;
      if (isMapping) {
        key = JSON.parse(token) as string;
        if (positions.has(key)) throw new JsonReadError(`duplicate key ${token}`, at);
        next();
        ({ token, offset: at } = next());
      }
      const value = readValue(depth + 1, token, at);
      positions.set(key ?? items.length, { offset: position, node: value });
      if (key === undefined) items.push(value);
      else setMember(mapping, key, value.value);
    }
    return composed(isMapping ? mapping : items.map((item) => item.value), positions);
  };

  const readValue = (depth: number, token: string, offset: number): Composed => {
    if (token === '{' || token === '[') return readContainer(depth, offset, token === '{');
    const value = JSON.parse(token) as string | number | boolean | null;
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) throw new JsonReadError(`number ${token} is too large`, offset);
      if (/^-?[0-9]+$/.test(token) && !Number.isSafeInteger(value)) {
        throw new JsonReadError(`integer ${token} is too large to be read exactly`, offset);
      }
    }
    return composed(value);
  };

  const { token, offset } = next();
  return readValue(1, token, offset);
}
