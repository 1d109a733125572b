/**
 * One command-line flag: its type, its default without `--config`, what it means, and the
 * KubeletConfiguration field it sets when it sets one.
 */
import type { JsonValue } from '../../kubernetes/yaml.ts';

/** What a flag's text becomes. Names of types are those that `--help` shows. */
export interface ValueOfFlagType {
  bool: boolean;
  int: number;
  int32: number;
  int64: number;
  Level: number;
  string: string;
  ip: string;
  /** A Go duration, still as text. */
  duration: string;
  quantity: string;
  strings: string[];
  mapStringString: Record<string, string>;
  mapStringBool: Record<string, boolean>;
  colonSeparatedMultimapStringString: Record<string, string[]>;
  '[]v1.Taint': { key: string; value?: string; effect: string }[];
  'reserved-memory': { numaNode: number; limits: Record<string, string> }[];
  'pattern=N,...': { filePattern: string; verbosity: number }[];
  /** `false`, `true`, `raw`, or a version to report (`v1.36.2`). */
  version: string;
}

/** The name of a type of flags. */
export type FlagType = keyof ValueOfFlagType;

/** What is known of a flag. */
export interface FlagDefinition {
  readonly type: FlagType;
  readonly default: JsonValue;
  readonly summary: string;
  /** Kept for existing command lines; the configuration file is the better place, or there is none. */
  readonly deprecated: boolean;
  /** Dotted path of the KubeletConfiguration field this flag sets. */
  readonly field?: string;
  readonly shorthand?: string;
  /** Between name and value in a map; `=` unless given. */
  readonly separator?: '<';
}

type Extra = Pick<FlagDefinition, 'field' | 'shorthand' | 'separator'>;

/** A flag that is the proper place of its setting. */
export function flag<T extends FlagType, const E extends Extra>(
  type: T,
  byDefault: JsonValue,
  summary: string,
  extra?: E,
): FlagDefinition & { readonly type: T } & E {
  return { type, default: byDefault, summary, deprecated: false, ...extra } as FlagDefinition & {
    type: T;
  } & E;
}

/** A deprecated flag whose setting belongs into the configuration file. */
export function configFlag<T extends FlagType, const F extends string>(
  type: T,
  byDefault: JsonValue,
  field: F,
  summary: string,
): FlagDefinition & { readonly type: T; readonly field: F } {
  return { type, default: byDefault, field, summary, deprecated: true };
}

/** A deprecated flag that no configuration field replaces. */
export function retiredFlag<T extends FlagType>(
  type: T,
  byDefault: JsonValue,
  summary: string,
): FlagDefinition & { readonly type: T } {
  return { type, default: byDefault, summary, deprecated: true };
}
