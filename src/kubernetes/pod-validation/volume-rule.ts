/** What a rule for one kind of volume is, and a table of them. */
import type { RuleContext } from './rule-context.ts';
import type { Volume } from './unvalidated-pod.ts';

export type VolumeKind = Exclude<keyof Volume, 'name'>;

/** Checks the source of one kind; `path` leads to the source itself. */
export type VolumeRule<K extends VolumeKind> = (
  context: RuleContext,
  path: string,
  source: NonNullable<Volume[K]>,
) => void;

/** A rule for each of the kinds `K`. */
export type VolumeRules<K extends VolumeKind> = { readonly [Kind in K]: VolumeRule<Kind> };
