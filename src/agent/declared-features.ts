/**
 * Features that pods may ask of a node by their spec (`status.declaredFeatures`, gate NodeDeclaredFeatures):
 * which this node has, and which it has not.
 */
export interface DeclaredFeatures {
  /** Undefined while the gate is off: the node declares nothing, and nothing is asked of it. */
  readonly declared: readonly string[] | undefined;
  readonly missing: readonly string[];
}

export function declaredFeatures(featureEnabled: (gate: string) => boolean): DeclaredFeatures {
  if (!featureEnabled('NodeDeclaredFeatures')) return { declared: undefined, missing: [] };
  const known = ['RestartAllContainersOnContainerExits'];
  return {
    declared: known.filter((name) => featureEnabled(name)),
    missing: known.filter((name) => !featureEnabled(name)),
  };
}
