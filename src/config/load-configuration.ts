/**
 * From a command line to the configuration of the agent, or to the list of everything that is wrong.
 *
 * Order of precedence, lowest first: built-in defaults, the `--config` file (with its defaults), drop-ins
 * of `--config-dir` in order, flags. Nothing is read but through `ConfigurationFiles`, and no input makes
 * this throw.
 */
import path from 'node:path';
import type { JsonObject } from '../kubernetes/yaml.ts';
import { applyFlags } from './apply-flags.ts';
import { mergePatch, readConfigurationDirectory } from './config-directory.ts';
import { type ConfigurationFiles, readConfigurationFile, resolvePaths } from './config-file.ts';
import type { ConfigurationError, FieldPath } from './configuration-error.ts';
import { configurationWithoutFile, withDefaults, withGateDefaults } from './defaults.ts';
import { ineffective } from './effects.ts';
import { type FeatureGates, resolveFeatureGates } from './feature-gates.ts';
import { FLAG_NAMES, FLAGS, type FlagValues, flagValues, type GivenFlags } from './flags/flags.ts';
import { parseArguments } from './flags/parse-arguments.ts';
import { CONFIGURATION_FIELDS, type KubeletConfiguration } from './kubelet-configuration.ts';
import { type ConfigurationLayer, Origins } from './origins.ts';
import { checkValues } from './read-fields.ts';
import { evictionRules } from './rules/eviction-rules.ts';
import { checkFlagValues } from './rules/flag-rules.ts';
import { gateRules } from './rules/gate-rules.ts';
import { nodeRules } from './rules/node-rules.ts';
import { resourceRules } from './rules/resource-rules.ts';

/** Where files come from. */
export interface LoadOptions extends ConfigurationFiles {
  /** Where relative paths on the command line start. */
  readonly cwd: string;
}

/** A configuration that was checked. */
export interface LoadedConfiguration {
  readonly ok: true;
  readonly configuration: KubeletConfiguration;
  /** Flags that no configuration field stands for. */
  readonly flags: FlagValues;
  readonly gates: FeatureGates;
  /** For the log, once. */
  readonly warnings: string[];
  /** What the user set that changes nothing yet: `--flag` names, field paths, feature gates. */
  readonly ineffective: string[];
}

/** A configuration, or everything that is wrong with it. */
export type LoadResult = LoadedConfiguration | { readonly ok: false; readonly errors: ConfigurationError[] };

const RULES = [...evictionRules, ...resourceRules, ...nodeRules, ...gateRules];

/** `argv` without the executable and without a command. */
export function loadConfiguration(argv: readonly string[], options: LoadOptions): LoadResult {
  const { given, words, errors } = parseArguments(argv);
  const surplus = words.map((word) => ({ message: `unknown argument ${JSON.stringify(word)}` }));
  return loadFromFlags(given, options, [...errors, ...surplus]);
}

/** As `loadConfiguration`, with the command line already taken apart; `earlier` errors are reported too. */
export function loadFromFlags(
  given: GivenFlags,
  options: LoadOptions,
  earlier: readonly ConfigurationError[] = [],
): LoadResult {
  const errors = [...earlier];
  const { layers, configuration: fromFiles } = readFiles(given, options, errors);
  const merged = applyFlags(fromFiles, given);
  const origins = new Origins(layers, given);
  const report = (at: FieldPath, message: string) => errors.push(origins.error(at, message));

  const { gates, problems, warnings } = resolveFeatureGates(
    (merged['featureGates'] as Record<string, boolean> | undefined) ?? {},
  );
  for (const [name, message] of problems) report(['featureGates', name], message);

  const configuration = withEvictionDefaults(
    withGateDefaults(merged, gates),
  ) as unknown as KubeletConfiguration;
  checkValues(CONFIGURATION_FIELDS, configuration, report);
  for (const rule of RULES) rule(configuration, report, gates);

  const flags = flagValues(given);
  errors.push(...checkFlagValues(flags, configuration));
  if (errors.length > 0) return { ok: false, errors: inReadingOrder(errors) };
  return {
    ok: true,
    configuration,
    flags,
    gates,
    warnings: [...warnings, ...deprecations(given)],
    ineffective: ineffective({ given, files: layers.map(({ values }) => values), gates }),
  };
}

function readFiles(
  given: GivenFlags,
  options: LoadOptions,
  errors: ConfigurationError[],
): { layers: ConfigurationLayer[]; configuration: JsonObject } {
  const layers: ConfigurationLayer[] = [];
  // Messages name files as the user does.
  const files: ConfigurationFiles = {
    readFile: (file) => options.readFile(path.resolve(options.cwd, file)),
    readDirectory: (directory) => options.readDirectory(path.resolve(options.cwd, directory)),
  };
  let configuration = configurationWithoutFile();
  if (given.config) {
    const read = readConfigurationFile(files, given.config);
    errors.push(...read.errors);
    if (read.layer) {
      layers.push(read.layer);
      const values = mergePatch({}, read.layer.values) as JsonObject;
      configuration = withDefaults(resolvePaths(values, path.resolve(options.cwd, given.config)));
    }
  }
  if (given['config-dir']) {
    for (const read of readConfigurationDirectory(files, given['config-dir'])) {
      errors.push(...read.errors);
      if (!read.layer) continue;
      layers.push(read.layer);
      configuration = mergePatch(configuration, read.layer.values) as JsonObject;
    }
    configuration = withDefaults(configuration);
  }
  return { layers, configuration };
}

/** `mergeDefaultEvictionSettings`: signals nobody named keep their default threshold. */
function withEvictionDefaults(configuration: JsonObject): JsonObject {
  if (configuration['mergeDefaultEvictionSettings'] !== true) return configuration;
  const byDefault = CONFIGURATION_FIELDS.evictionHard.default as JsonObject;
  return {
    ...configuration,
    evictionHard: { ...byDefault, ...(configuration['evictionHard'] as JsonObject) },
  };
}

function deprecations(given: GivenFlags): string[] {
  return FLAG_NAMES.filter((name) => given[name] !== undefined && FLAGS[name].deprecated).map((name) => {
    const { field } = FLAGS[name];
    return field ? `--${name} is deprecated; set ${field} in the --config file` : `--${name} is deprecated`;
  });
}

/** Flags first, then files, each from top to bottom. */
function inReadingOrder(errors: readonly ConfigurationError[]): ConfigurationError[] {
  const files = [...new Set(errors.map(({ file }) => file))].filter((file) => file !== undefined);
  const rank = ({ file }: ConfigurationError) => (file === undefined ? -1 : files.indexOf(file));
  return errors.toSorted((a, b) => rank(a) - rank(b) || (a.line ?? 0) - (b.line ?? 0));
}
