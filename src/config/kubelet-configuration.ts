/** KubeletConfiguration v1beta1: every field, and its TypeScript type with defaults filled in. */
import type { Configured, Field } from './field.ts';
import { nodeFields } from './fields/node-fields.ts';
import { podsFields } from './fields/pods-fields.ts';
import { resourcesFields } from './fields/resources-fields.ts';
import { runtimeFields } from './fields/runtime-fields.ts';
import { servingFields } from './fields/serving-fields.ts';

/** `apiVersion` of every configuration file. */
export const API_VERSION = 'kubelet.config.k8s.io/v1beta1';

/** `kind` of every configuration file. */
export const KIND = 'KubeletConfiguration';

/** Every field of a KubeletConfiguration. */
export const CONFIGURATION_FIELDS = {
  ...nodeFields,
  ...podsFields,
  ...runtimeFields,
  ...resourcesFields,
  ...servingFields,
};

/** The fields in the order the reference page shows them. */
export const FIELD_GROUPS = [
  { title: 'Node and cluster', fields: nodeFields },
  { title: 'Pods', fields: podsFields },
  { title: 'Container runtime and images', fields: runtimeFields },
  { title: 'Resources and eviction', fields: resourcesFields },
  { title: 'Serving', fields: servingFields },
] as const;

/**
 * The wire form: durations and quantities are texts, `[]`/`{}` fields without a default may be absent.
 * `settings.ts` has the same facts as numbers.
 */
export type KubeletConfiguration = Configured<typeof CONFIGURATION_FIELDS>;

/** Dotted path (`[]` behind lists of objects) → field, objects before their members. */
export function listFields(): Map<string, Field> {
  const found = new Map<string, Field>();
  const visit = (fields: Readonly<Record<string, Field>>, prefix: string) => {
    for (const [name, described] of Object.entries(fields)) {
      const path = `${prefix}${name}`;
      found.set(path, described);
      if (described.members) visit(described.members, `${path}.`);
      if (described.items) visit(described.items, `${path}[].`);
    }
  };
  visit(CONFIGURATION_FIELDS, '');
  return found;
}
