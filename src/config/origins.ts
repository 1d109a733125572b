/** Remembers which file or flag each setting came from, so that an error can point at the right place. */
import type { JsonObject, JsonValue, YamlDocument } from '../kubernetes/yaml.ts';
import { type ConfigurationError, type FieldPath, formatFieldPath } from './configuration-error.ts';
import { FLAG_NAMES, FLAGS, type FlagName, type GivenFlags } from './flags/flags.ts';

/** A configuration file that was read. */
export interface ConfigurationLayer {
  readonly file: string;
  readonly document: YamlDocument;
  /** What fits the table of fields. */
  readonly values: JsonObject;
}

/** Finds the flag, or the file and line, that a value of the merged configuration came from. */
export class Origins {
  readonly #layers: readonly ConfigurationLayer[];
  readonly #given: GivenFlags;

  /** `layers` in the order they were applied. */
  constructor(layers: readonly ConfigurationLayer[], given: GivenFlags) {
    this.#layers = layers;
    this.#given = given;
  }

  /** An error about `path` at the place that set it last. */
  error(path: FieldPath, message: string): ConfigurationError {
    const field = formatFieldPath(path);
    const flag = this.#flagFor(path);
    if (flag) return { flag, field, message };
    const layer = this.#layers.findLast(({ values }) => reaches(values, path));
    // A default that does not go with the rest: with one file, that is where to mend it.
    if (!layer)
      return this.#layers.length === 1 ? { file: this.#layers[0]!.file, field, message } : { field, message };
    const line = layer.document.lineOf(path);
    return { file: layer.file, ...(line !== undefined && { line }), field, message };
  }

  #flagFor(path: FieldPath): FlagName | undefined {
    return FLAG_NAMES.find((name) => {
      if (this.#given[name] === undefined) return false;
      const target = FLAGS[name].field?.split('.');
      if (!target?.every((part, index) => path[index] === part)) return false;
      // Gates from files and from the flag live side by side.
      return name !== 'feature-gates' || Object.hasOwn(this.#given['feature-gates'] ?? {}, String(path[1]));
    });
  }
}

/** True when `values` sets `path`, or a list or map that should hold it. */
function reaches(values: JsonObject, path: FieldPath): boolean {
  let value: JsonValue | undefined = values;
  for (const [depth, part] of path.entries()) {
    if (typeof value !== 'object' || value === null) return depth > 0;
    const next: JsonValue | undefined = Array.isArray(value)
      ? value[Number(part)]
      : Object.hasOwn(value, part)
        ? value[part]
        : undefined;
    if (next === undefined) return depth > 0;
    value = next;
  }
  return true;
}
