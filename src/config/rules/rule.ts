/** The shape of a rule over several fields: it reports every breach it finds. */
import type { FieldPath } from '../configuration-error.ts';
import type { FeatureGates } from '../feature-gates.ts';
import type { KubeletConfiguration } from '../kubelet-configuration.ts';

/** Reports what is wrong with a whole configuration whose fields are right by themselves. */
export type Rule = (
  configuration: KubeletConfiguration,
  report: (path: FieldPath, message: string) => void,
  gates: FeatureGates,
) => void;
