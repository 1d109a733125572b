/** Every flag of the kubelet of Kubernetes 1.36, by group. In flag names `_` and `-` are the same. */
import type { FlagDefinition, ValueOfFlagType } from './flag.ts';
import { loggingFlags } from './logging-flags.ts';
import { nodeFlags } from './node-flags.ts';
import { podsFlags } from './pods-flags.ts';
import { resourcesFlags } from './resources-flags.ts';
import { runtimeFlags } from './runtime-flags.ts';
import { servingFlags } from './serving-flags.ts';
import { statisticsFlags } from './statistics-flags.ts';

const all = {
  ...nodeFlags,
  ...podsFlags,
  ...runtimeFlags,
  ...resourcesFlags,
  ...servingFlags,
  ...loggingFlags,
  ...statisticsFlags,
};

type All = typeof all;

/** The name of a flag, without dashes. */
export type FlagName = keyof All;

/** Every flag by name. */
export const FLAGS: Readonly<Record<FlagName, FlagDefinition>> = all;

/** Every flag, group by group. */
export const FLAG_NAMES = Object.keys(all) as FlagName[];

/** Groups in the order `--help` and the reference page show them. */
export const FLAG_GROUPS: readonly { title: string; names: readonly FlagName[] }[] = [
  { title: 'Node and cluster', names: Object.keys(nodeFlags) as FlagName[] },
  { title: 'Pods', names: Object.keys(podsFlags) as FlagName[] },
  { title: 'Container runtime and images', names: Object.keys(runtimeFlags) as FlagName[] },
  { title: 'Resources and eviction', names: Object.keys(resourcesFlags) as FlagName[] },
  { title: 'Serving', names: Object.keys(servingFlags) as FlagName[] },
  { title: 'Logging', names: Object.keys(loggingFlags) as FlagName[] },
  { title: 'Statistics', names: Object.keys(statisticsFlags) as FlagName[] },
];

/** Flags that were on the command line. */
export type GivenFlags = { [N in FlagName]?: ValueOfFlagType[All[N]['type']] };

/** Flags without a configuration field, given or by default. The others are in the configuration. */
export type FlagValues = {
  [N in FlagName as All[N] extends { field: string } ? never : N]: ValueOfFlagType[All[N]['type']];
};

/** Values of the flags that no configuration field stands for: those given, and defaults. */
export function flagValues(given: GivenFlags): FlagValues {
  const values: Record<string, unknown> = {};
  for (const name of FLAG_NAMES) {
    const definition = FLAGS[name];
    if (definition.field !== undefined) continue;
    values[name] = given[name] ?? structuredClone(definition.default);
  }
  return values as FlagValues;
}
