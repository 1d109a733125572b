/**
 * `--config-dir`: drop-in files merged over the configuration, in the lexical order of a walk through the
 * whole tree. Only names that end in `.conf` count; a directory behind a symbolic link is not entered.
 */
import path from 'node:path';
import { isObject } from '../kubernetes/json-object.ts';
import type { JsonValue } from '../kubernetes/yaml.ts';
import { type ConfigurationFiles, type ReadConfigurationFile, readConfigurationFile } from './config-file.ts';

/** Every drop-in of the tree, in merge order. A directory that cannot be read is an error. */
export function readConfigurationDirectory(
  files: ConfigurationFiles,
  directory: string,
): ReadConfigurationFile[] {
  let entries: { name: string; isDirectory: boolean }[];
  try {
    entries = files.readDirectory(directory);
  } catch (error) {
    return [{ errors: [{ file: directory, message: `cannot be read: ${(error as Error).message}` }] }];
  }
  const sorted = entries.toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  return sorted.flatMap(({ name, isDirectory }) => {
    const entry = path.join(directory, name);
    if (isDirectory) return readConfigurationDirectory(files, entry);
    return name.endsWith('.conf') ? [readConfigurationFile(files, entry)] : [];
  });
}

/** RFC 7386: objects merge key by key, null removes a key, everything else replaces. */
export function mergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isObject(patch)) return patch;
  const merged = new Map<string, JsonValue>(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}
