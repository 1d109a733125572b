/**
 * Splits a command line into flags and words, the way Go's flag library does: `--name=value`,
 * `--name value`, `-v 2`, `-v2`; a boolean takes its value only behind `=`; `--` ends the flags.
 * Every mistake is reported, not only the first.
 */

import { nearestName } from '../../kubernetes/nearest-name.ts';
import type { ConfigurationError } from '../configuration-error.ts';
import { FlagValueError, readFlagValue } from './flag-value.ts';
import { FLAG_NAMES, FLAGS, type FlagName, type GivenFlags } from './flags.ts';

/** A command line taken apart. */
export interface ParsedArguments {
  readonly given: GivenFlags;
  /** What is not a flag: the command, file names. */
  readonly words: string[];
  readonly errors: ConfigurationError[];
}

const SHORTHANDS = new Map(
  FLAG_NAMES.flatMap((name) => (FLAGS[name].shorthand ? [[FLAGS[name].shorthand, name] as const] : [])),
);

function knownFlag(name: string): FlagName | undefined {
  const normal = name.replaceAll('_', '-');
  return Object.hasOwn(FLAGS, normal) ? (normal as FlagName) : undefined;
}

/** Flags that mean something alone: booleans, and `--version`. */
const standsAlone = (name: FlagName) => FLAGS[name].type === 'bool' || FLAGS[name].type === 'version';

/** `argv` without the executable. Never throws; everything that is wrong is among the errors. */
export function parseArguments(argv: readonly string[]): ParsedArguments {
  const given: Partial<Record<FlagName, unknown>> = {};
  const words: string[] = [];
  const errors: ConfigurationError[] = [];

  const set = (name: FlagName, text: string) => {
    try {
      given[name] = readFlagValue(FLAGS[name], text, given[name]);
    } catch (error) {
      if (!(error instanceof FlagValueError)) throw error;
      errors.push({ flag: name, message: error.message });
    }
  };

  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index]!;
    if (argument === '--') {
      words.push(...argv.slice(index + 1));
      break;
    }
    if (!argument.startsWith('-') || argument === '-') {
      words.push(argument);
      continue;
    }
    const found = argument.startsWith('--') ? splitLong(argument) : splitShort(argument);
    if ('error' in found) {
      errors.push(found.error);
      // `--unknown value` is one mistake, not two.
      if (found.mayTakeNext && argv[index + 1] !== undefined && !argv[index + 1]!.startsWith('-')) index++;
      continue;
    }
    if (found.text !== undefined) set(found.name, found.text);
    else if (standsAlone(found.name)) set(found.name, 'true');
    else if (index + 1 < argv.length) set(found.name, argv[++index]!);
    else errors.push({ flag: found.name, message: 'needs a value' });
  }
  return { given: given as GivenFlags, words, errors };
}

type Found =
  | { name: FlagName; text: string | undefined }
  | { error: ConfigurationError; mayTakeNext: boolean };

function splitLong(argument: string): Found {
  const [, name = '', text] = /^--([^=]*)(?:=([\s\S]*))?$/.exec(argument) ?? [];
  const known = knownFlag(name);
  if (known) return { name: known, text };
  return { error: unknownFlag(`--${name}`, name), mayTakeNext: text === undefined };
}

function splitShort(argument: string): Found {
  const name = SHORTHANDS.get(argument[1]!);
  const rest = argument.slice(2);
  if (name && (rest === '' || rest.startsWith('=') || !standsAlone(name))) {
    return { name, text: rest === '' ? undefined : rest.replace(/^=/, '') };
  }
  const long = argument.slice(1).replace(/=[\s\S]*/, '');
  return { error: unknownFlag(`-${long}`, long), mayTakeNext: !argument.includes('=') };
}

/** Flags that older kubelets had, with what to do: command lines that tools once wrote still carry them. */
const departedFlags: ReadonlyMap<string, string> = new Map([
  [
    'pod-infra-container-image',
    'removed in Kubernetes 1.35; take it out (kubeadm: /var/lib/kubelet/kubeadm-flags.env), the runtime has a ' +
      'setting for the image of sandboxes',
  ],
  ['container-runtime', 'removed in Kubernetes 1.27; take it out, every runtime is reached by CRI'],
  ['network-plugin', 'removed in Kubernetes 1.24; take it out, networks are the matter of the runtime'],
  ['cloud-config', 'removed in Kubernetes 1.31; take it out, clouds have controllers of their own'],
]);

function unknownFlag(written: string, name: string): ConfigurationError {
  const departed = departedFlags.get(name);
  if (departed !== undefined) return { message: `unknown flag ${written}: ${departed}` };
  const nearest = knownFlag(name) ?? nearestName(name.replaceAll('_', '-'), FLAG_NAMES);
  return { message: `unknown flag ${written}${nearest ? `; did you mean --${nearest}?` : ''}` };
}
