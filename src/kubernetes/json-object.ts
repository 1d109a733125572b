/** Telling objects apart in what was read from JSON or YAML. */

/** True for an object with members: neither null nor a list. Narrows a `JsonValue` to a `JsonObject`. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
