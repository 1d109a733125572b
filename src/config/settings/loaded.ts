/** What settings are made from, and how single values of it are read. */
import path from 'node:path';
import type { FeatureGates } from '../feature-gates.ts';
import type { FlagValues } from '../flags/flags.ts';
import type { KubeletConfiguration } from '../kubelet-configuration.ts';

/** A checked configuration, with the flags and gates that came with it. */
export interface Loaded {
  readonly configuration: KubeletConfiguration;
  readonly flags: FlagValues;
  readonly gates: FeatureGates;
}

/** Absolute; a relative path starts at `cwd`, and an empty one stands for none. */
export function absolute(file: string, cwd: string): string | undefined {
  return file === '' ? undefined : path.resolve(cwd, file);
}

/** Undefined for the empty text, which is how the configuration says "not set". */
export function given(text: string): string | undefined {
  return text === '' ? undefined : text;
}
