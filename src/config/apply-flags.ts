/** Lays flags over a configuration: a flag beats every file; feature gates merge gate by gate. */
import type { JsonObject, JsonValue } from '../kubernetes/yaml.ts';
import { FLAG_NAMES, FLAGS, type GivenFlags } from './flags/flags.ts';

/** `configuration` with the given flags applied; the argument is left as it is. */
export function applyFlags(configuration: JsonObject, given: GivenFlags): JsonObject {
  const result = structuredClone(configuration);
  for (const name of FLAG_NAMES) {
    const { field } = FLAGS[name];
    const value = given[name] as JsonValue | undefined;
    if (field === undefined || value === undefined) continue;
    if (name === 'feature-gates') {
      result[field] = { ...(result[field] as JsonObject | undefined), ...(value as JsonObject) };
    } else if (name === 'seccomp-default') {
      // Either place can turn it on, neither can turn off what the other asked for.
      result[field] = value === true || result[field] === true;
    } else setAt(result, field.split('.'), structuredClone(value));
  }
  return result;
}

function setAt(target: JsonObject, path: readonly string[], value: JsonValue): void {
  let holder = target;
  for (const part of path.slice(0, -1)) {
    holder[part] ??= {};
    holder = holder[part] as JsonObject;
  }
  holder[path.at(-1)!] = value;
}
