/**
 * The shape both readers (YAML and JSON) build: a plain value, and where each member of it stands in the
 * text. Mappings are ordinary objects; a member named `__proto__` is an ordinary own property.
 */

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Member (key or index) → offset of its key or item in the text, and the node behind it. */
export type PositionOf = Map<string | number, { offset: number; node: Composed }>;

export interface Composed {
  readonly value: JsonValue;
  /** Set for mappings and sequences. */
  readonly members?: PositionOf;
  /** Nodes in this value, itself included; what an alias to it costs. */
  readonly size: number;
  /** Levels in this value: 1 for a scalar. */
  readonly depth: number;
}

export function composed(value: JsonValue, members?: PositionOf): Composed {
  let size = 1;
  let depth = 0;
  if (members) {
    for (const { node } of members.values()) {
      size += node.size;
      if (node.depth > depth) depth = node.depth;
    }
  }
  return { value, ...(members && { members }), size, depth: depth + 1 };
}

export function createMapping(): JsonObject {
  return {};
}

/** Assigns a member; never reaches a setter on the prototype. */
export function setMember(mapping: JsonObject, key: string, value: JsonValue): void {
  if (key === '__proto__') {
    Object.defineProperty(mapping, key, { value, enumerable: true, configurable: true, writable: true });
  } else mapping[key] = value;
}
