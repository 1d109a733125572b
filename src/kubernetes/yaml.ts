/**
 * Reads YAML and JSON as Kubernetes does: manifests, KubeletConfiguration, kubeconfig.
 *
 * Guarantees: the result is plain JSON data (see `yaml-scalars.ts` for what a scalar means); the same key
 * twice in one mapping is an error; nesting and alias expansion are bounded, so a hostile text costs no
 * more than a few times its own size; any input ends in documents or in a `YamlError`, nothing else.
 */
import {
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  SCALAR_STYLE,
  type ScalarEvent,
  YAMLException,
} from 'js-yaml';
import { JsonReadError, readJson } from './json-reader.ts';
import {
  type Composed,
  composed,
  createMapping,
  type JsonValue,
  type PositionOf,
  setMember,
} from './yaml-node.ts';
import { resolvePlainScalar, resolveTaggedScalar, ScalarError, type YamlScalar } from './yaml-scalars.ts';

export type { JsonObject, JsonValue } from './yaml-node.ts';

/** A syntax error, or a rule of this reader broken. `line` and `column` count from 1. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
  /** The message without the position. */
  readonly reason: string;
  readonly line: number;
  readonly column: number;
  constructor(reason: string, line: number, column: number, options?: ErrorOptions) {
    super(`line ${line}, column ${column}: ${reason}`, options);
    this.reason = reason;
    this.line = line;
    this.column = column;
  }
}

export interface YamlOptions {
  /** Most nodes that aliases (`*name`) may add to one text. Default 20,000. */
  maxAliasExpansion?: number;
}

export interface YamlDocument {
  readonly value: JsonValue;
  /**
   * The line (from 1) of the key or list item that `path` names. When the path leads past what is there
   * (a missing field), the line of the innermost part that is there. Undefined for an empty document.
   */
  lineOf(path: readonly (string | number)[]): number | undefined;
}

const MAX_DEPTH = 100;
/** Aliases can nest what was already nested; still far from what recursion can take. */
const MAX_EXPANDED_DEPTH = 400;
const DEFAULT_ALIAS_EXPANSION = 20_000;

/** All documents of a text. An empty text has none; an empty document has the value null. */
export function parseYaml(text: string, options: YamlOptions = {}): YamlDocument[] {
  const lines = new LineIndex(text);
  if (/^\s*\{/.test(text) && isJson(text)) {
    try {
      return [toDocument(readJson(text), text.indexOf('{'), lines)];
    } catch (error) {
      if (error instanceof JsonReadError) throw lines.error(error.message, error.offset, error);
      throw error;
    }
  }
  let events: Event[];
  try {
    events = parseEvents(text, { maxDepth: MAX_DEPTH });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const mark = error.mark as { line: number; column: number } | undefined;
    throw new YamlError(error.reason, (mark?.line ?? 0) + 1, (mark?.column ?? 0) + 1, { cause: error });
  }
  return new Composer(text, events, lines, options.maxAliasExpansion ?? DEFAULT_ALIAS_EXPANSION).documents();
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function toDocument(root: Composed | undefined, start: number, lines: LineIndex): YamlDocument {
  return {
    value: root?.value ?? null,
    lineOf(path) {
      if (!root || (root.value === null && !root.members)) return undefined;
      let offset = start;
      let node: Composed | undefined = root;
      for (const part of path) {
        const member: { offset: number; node: Composed } | undefined = node?.members?.get(part);
        if (!member) break;
        ({ offset, node } = member);
      }
      return lines.at(offset).line;
    },
  };
}

/** Turns parser events into values. One instance reads one text. */
class Composer {
  readonly #text: string;
  readonly #events: readonly Event[];
  readonly #lines: LineIndex;
  #next = 0;
  #aliasBudget: number;
  #anchors = new Map<string, Composed | 'open'>();

  constructor(text: string, events: readonly Event[], lines: LineIndex, aliasBudget: number) {
    this.#text = text;
    this.#events = events;
    this.#lines = lines;
    this.#aliasBudget = aliasBudget;
  }

  documents(): YamlDocument[] {
    const documents: YamlDocument[] = [];
    while (this.#next < this.#events.length) {
      this.#next++; // the document's start
      this.#anchors = new Map();
      let root: Composed | undefined;
      let start = 0;
      while (this.#events[this.#next]!.type !== EVENT_ID.POP) {
        start = this.#offsetOf(this.#events[this.#next]!, 0);
        root = this.#node(start);
      }
      this.#next++;
      documents.push(toDocument(root, start, this.#lines));
    }
    return documents;
  }

  #node(fallback: number): Composed {
    const event = this.#events[this.#next++]!;
    const offset = this.#offsetOf(event, fallback);
    if (event.type === EVENT_ID.ALIAS)
      return this.#alias(this.#text.slice(event.anchorStart, event.anchorEnd), offset);
    const anchor =
      'anchorStart' in event && event.anchorStart >= 0
        ? this.#text.slice(event.anchorStart, event.anchorEnd)
        : undefined;
    if (anchor !== undefined) this.#anchors.set(anchor, 'open');
    let node: Composed;
    if (event.type === EVENT_ID.SCALAR) node = composed(this.#scalar(event, offset));
    else if (event.type === EVENT_ID.SEQUENCE) node = this.#sequence(offset);
    else if (event.type === EVENT_ID.MAPPING) node = this.#mapping(offset);
    else throw this.#lines.error('unexpected structure', offset);
    if (anchor !== undefined) this.#anchors.set(anchor, node);
    return node;
  }

  #scalar(event: ScalarEvent, offset: number): YamlScalar {
    const text = getScalarValue(this.#text, event);
    try {
      if (event.tagStart >= 0)
        return resolveTaggedScalar(this.#text.slice(event.tagStart, event.tagEnd), text);
      return event.style === SCALAR_STYLE.PLAIN ? resolvePlainScalar(text) : text;
    } catch (error) {
      if (error instanceof ScalarError) throw this.#lines.error(error.message, offset, error);
      throw error;
    }
  }

  #sequence(offset: number): Composed {
    const members: PositionOf = new Map();
    const items: JsonValue[] = [];
    while (this.#events[this.#next]!.type !== EVENT_ID.POP) {
      const at = this.#offsetOf(this.#events[this.#next]!, offset);
      const node = this.#node(at);
      members.set(items.length, { offset: at, node });
      items.push(node.value);
    }
    this.#next++;
    return this.#checked(composed(items, members), offset);
  }

  #mapping(offset: number): Composed {
    const own: PositionOf = new Map();
    const merged: Composed[] = [];
    while (this.#events[this.#next]!.type !== EVENT_ID.POP) {
      const keyEvent = this.#events[this.#next]!;
      const at = this.#offsetOf(keyEvent, offset);
      if (this.#isMergeKey(keyEvent)) {
        this.#next++;
        merged.push(...this.#mergeSources(this.#node(at), at));
        continue;
      }
      const key = this.#key(this.#node(at), at);
      if (own.has(key)) throw this.#lines.error(`duplicate key ${JSON.stringify(key)}`, at);
      own.set(key, { offset: at, node: this.#node(at) });
    }
    this.#next++;
    return this.#checked(this.#mergedMapping(own, merged), offset);
  }

  /** Own keys win over merged ones, and an earlier merge source over a later one. */
  #mergedMapping(own: PositionOf, merged: readonly Composed[]): Composed {
    const members: PositionOf = new Map(own);
    for (const source of merged) {
      for (const [key, member] of source.members ?? []) if (!members.has(key)) members.set(key, member);
    }
    const value = createMapping();
    for (const [key, member] of members) setMember(value, String(key), member.node.value);
    return composed(value, members);
  }

  #isMergeKey(event: Event): event is ScalarEvent {
    if (event.type !== EVENT_ID.SCALAR || event.style !== SCALAR_STYLE.PLAIN || event.tagStart >= 0)
      return false;
    return getScalarValue(this.#text, event) === '<<';
  }

  #mergeSources(node: Composed, offset: number): Composed[] {
    const sources = Array.isArray(node.value)
      ? [...node.members!.values()].map((member) => member.node)
      : [node];
    for (const { members, value } of sources) {
      if (!members || Array.isArray(value))
        throw this.#lines.error('"<<" takes a mapping or a list of mappings', offset);
    }
    return sources;
  }

  #key({ value }: Composed, offset: number): string {
    if (value === null) throw this.#lines.error('a key is missing or null', offset);
    if (typeof value === 'object')
      throw this.#lines.error('a key must be a plain value, not a list or mapping', offset);
    return String(value);
  }

  /** A copy, so that changing one place never changes another. */
  #alias(name: string, offset: number): Composed {
    const node = this.#anchors.get(name);
    if (node === undefined) throw this.#lines.error(`alias *${name} has no anchor before it`, offset);
    if (node === 'open') throw this.#lines.error(`alias *${name} stands inside its own anchor`, offset);
    this.#aliasBudget -= node.size;
    if (this.#aliasBudget < 0) throw this.#lines.error('aliases expand to too many values', offset);
    return copy(node);
  }

  #checked(node: Composed, offset: number): Composed {
    if (node.depth > MAX_EXPANDED_DEPTH) throw this.#lines.error('aliases nest too deeply', offset);
    return node;
  }

  #offsetOf(event: Event, fallback: number): number {
    if ('start' in event) return event.start;
    if ('valueStart' in event && event.valueStart >= 0) return event.valueStart;
    if ('anchorStart' in event && event.anchorStart >= 0) return event.anchorStart;
    return fallback;
  }
}

function copy(node: Composed): Composed {
  if (!node.members) return node;
  const members: PositionOf = new Map();
  for (const [key, member] of node.members)
    members.set(key, { offset: member.offset, node: copy(member.node) });
  if (Array.isArray(node.value))
    return { ...node, value: [...members.values()].map((member) => member.node.value), members };
  const value = createMapping();
  for (const [key, member] of members) setMember(value, String(key), member.node.value);
  return { ...node, value, members };
}

/** Offsets to lines and columns; the table is made when first asked for. */
class LineIndex {
  readonly #text: string;
  #starts: number[] | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  at(offset: number): { line: number; column: number } {
    this.#starts ??= lineStarts(this.#text);
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - this.#starts[low]! + 1 };
  }

  error(reason: string, offset: number, cause?: Error): YamlError {
    const { line, column } = this.at(offset);
    return new YamlError(reason, line, column, cause && { cause });
  }
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (const match of text.matchAll(/\r\n|\r|\n/g)) starts.push(match.index + match[0].length);
  return starts;
}
