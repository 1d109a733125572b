/**
 * Decides whether a Pod is one that the API server of Kubernetes 1.36 would accept, and says everything
 * that is wrong with it at once, by field path.
 *
 * Two passes: the types and names of all fields (`pod-structure.ts`), then the rules of meaning
 * (`spec-rules.ts` and the files it names). What has a wrong type is left out of the second pass, and the
 * second pass says nothing about such places, so one mistake gives one error.
 *
 * Takes any value, never throws, and needs time proportional to the size of the manifest.
 */
import { type FieldError, FieldErrors } from './field-error.ts';
import { checkMetadata } from './metadata-rules.ts';
import { checkPodStructure, type PodStructure } from './pod-structure.ts';
import type { RuleContext } from './rule-context.ts';
import { checkSpec, lookUps } from './spec-rules.ts';

export { type FieldError, formatFieldError } from './field-error.ts';
export { staticPodReferences } from './static-pod-references.ts';

export interface PodValidationOptions {
  /** Whether a Kubernetes feature gate is on; without it the rules of alpha features do not apply. */
  featureEnabled?: (gate: string) => boolean;
  /** A pod may not be created with ephemeral containers; one that runs already may have them. */
  allowEphemeralContainers?: boolean;
}

/**
 * All that is wrong with a new pod; an empty list when nothing is. Defaults must be filled in before
 * (`defaultPod`): fields that they give a value are required here.
 */
export function validatePod(pod: unknown, options: PodValidationOptions = {}): FieldError[] {
  const structural = new FieldErrors();
  const structure = checkPodStructure(pod, structural);
  return [...structural.list(), ...checkMeaning(structure, options)];
}

function checkMeaning(structure: PodStructure, options: PodValidationOptions): FieldError[] {
  const { pod, wrong } = structure;
  const errors = new FieldErrors();
  if (pod.apiVersion) errors.optionalOneOf('apiVersion', pod.apiVersion, ['v1']);
  if (pod.kind) errors.optionalOneOf('kind', pod.kind, ['Pod']);
  const spec = pod.spec ?? { containers: [] };
  const context: RuleContext = {
    errors,
    spec,
    ...lookUps(spec),
    featureEnabled: options.featureEnabled ?? (() => false),
  };
  checkMetadata(errors, pod.metadata, spec);
  checkSpec(context, pod.metadata?.name, options.allowEphemeralContainers ?? false);
  return wrong.size === 0 ? errors.list() : withoutConsequences(errors.list(), wrong);
}

/** Leaves out what follows only from values of a wrong type. */
function withoutConsequences(errors: FieldError[], wrong: ReadonlySet<string>): FieldError[] {
  const parents = new Set([...wrong].map(parentOf));
  // A name that could not be read may be the one that is looked for.
  const namesAreUnsure = [...wrong].some((path) => /^spec\.(?:volumes|resourceClaims)|\.name$/.test(path));
  return errors.filter(({ path, type }) => {
    if (type === 'NotFound' && namesAreUnsure) return false;
    if (type === 'Required' && parents.has(path)) return false;
    for (let at = path; at !== ''; at = parentOf(at)) if (wrong.has(at)) return false;
    return true;
  });
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('.'), path.lastIndexOf('['), 0));
}
