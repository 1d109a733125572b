/** Reads one KubeletConfiguration file, as `--config` names it or as it lies in a drop-in directory. */
import path from 'node:path';
import { type JsonObject, parseYaml, type YamlDocument, YamlError } from '../kubernetes/yaml.ts';
import { type ConfigurationError, type FieldPath, formatFieldPath } from './configuration-error.ts';
import { API_VERSION, CONFIGURATION_FIELDS, KIND } from './kubelet-configuration.ts';
import type { ConfigurationLayer } from './origins.ts';
import { readFields } from './read-fields.ts';

/** What loading needs of a file system. Both throw as `node:fs` does. */
export interface ConfigurationFiles {
  readFile(path: string): string;
  /** Names in any order; `isDirectory` is false for symbolic links. */
  readDirectory(path: string): { name: string; isDirectory: boolean }[];
}

/** A file with what is wrong in it; `layer` is absent when nothing of it can be used. */
export interface ReadConfigurationFile {
  readonly layer?: ConfigurationLayer;
  readonly errors: ConfigurationError[];
}

/** Paths that, when relative, start at the directory of the `--config` file. */
const PATH_FIELDS: readonly FieldPath[] = [
  ['staticPodPath'],
  ['authentication', 'x509', 'clientCAFile'],
  ['tlsCertFile'],
  ['tlsPrivateKeyFile'],
  ['resolvConf'],
  ['volumePluginDir'],
  ['podLogsDir'],
];

/** Reads one KubeletConfiguration. Never throws: what is wrong is told with file, line and field. */
export function readConfigurationFile(files: ConfigurationFiles, file: string): ReadConfigurationFile {
  let text: string;
  try {
    text = files.readFile(file);
  } catch (error) {
    return { errors: [{ file, message: `cannot be read: ${(error as Error).message}` }] };
  }
  return parseConfigurationFile(file, text);
}

function parseConfigurationFile(file: string, text: string): ReadConfigurationFile {
  if (text.trim() === '')
    return { errors: [{ file, message: 'is empty; apiVersion and kind are required' }] };
  let documents: YamlDocument[];
  try {
    documents = parseYaml(text).filter(({ value }) => value !== null);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    return { errors: [{ file, line: error.line, message: `column ${error.column}: ${error.reason}` }] };
  }
  const [document, second] = documents;
  const raw = document?.value;
  if (second) {
    const line = second.lineOf([]);
    return {
      errors: [{ file, ...(line !== undefined && { line }), message: 'holds more than one document' }],
    };
  }
  if (!document || typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return { errors: [{ file, message: `must hold one ${KIND} object` }] };
  }
  const errors: ConfigurationError[] = [];
  const report = (at: FieldPath, message: string) => {
    const line = document.lineOf(at);
    errors.push({ file, ...(line !== undefined && { line }), field: formatFieldPath(at), message });
  };
  for (const [name, wanted] of [
    ['apiVersion', API_VERSION],
    ['kind', KIND],
  ] as const) {
    if (raw[name] !== wanted) report([name], `must be ${wanted}`);
  }
  if (errors.length > 0) return { errors };
  const values = readFields(CONFIGURATION_FIELDS, raw, report);
  return { layer: { file, document, values }, errors };
}

/** Relative paths of the file made to start at the file's directory. Not for drop-ins, as in the kubelet. */
export function resolvePaths(values: JsonObject, file: string): JsonObject {
  const resolved = structuredClone(values);
  for (const fieldPath of PATH_FIELDS) {
    let holder: JsonObject | undefined = resolved;
    for (const part of fieldPath.slice(0, -1)) holder = holder?.[String(part)] as JsonObject | undefined;
    const name = String(fieldPath.at(-1));
    const value = holder?.[name];
    if (holder && typeof value === 'string' && value !== '' && !path.isAbsolute(value)) {
      holder[name] = path.resolve(path.dirname(file), value);
    }
  }
  return resolved;
}
