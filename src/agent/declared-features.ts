/**
 * Features that pods may ask of a node by their spec (`status.declaredFeatures`, gate NodeDeclaredFeatures):
 * which this node has, and which it has not.
 *
 * Differs from the kubelet: the two that tell of resizing in place (`GuaranteedQoSPodCPUResize`,
 * `InPlacePodLevelResourcesVerticalScaling`) are not declared, since this node resizes nothing.
 */
export interface DeclaredFeatures {
  /** Sorted; undefined while the gate is off: the node declares nothing, and nothing is asked of it. */
  readonly declared: readonly string[] | undefined;
  readonly missing: readonly string[];
}

/** What the runtime says it can (CRI RuntimeFeatures). */
interface RuntimeAbilities {
  readonly userNamespacesHostNetwork: boolean;
}

type FeatureEnabled = (gate: string) => boolean;

const known: Readonly<Record<string, (enabled: FeatureEnabled, runtime?: RuntimeAbilities) => boolean>> = {
  ExtendWebSocketsToKubelet: (enabled) => enabled('ExtendWebSocketsToKubelet'),
  RestartAllContainersOnContainerExits: (enabled) => enabled('RestartAllContainersOnContainerExits'),
  UserNamespacesHostNetworkSupport: (enabled, runtime) =>
    enabled('UserNamespacesHostNetworkSupport') && runtime?.userNamespacesHostNetwork === true,
};

/** `runtime` is undefined while the runtime has not told. */
export function declaredFeatures(
  featureEnabled: FeatureEnabled,
  runtime: RuntimeAbilities | undefined,
): DeclaredFeatures {
  if (!featureEnabled('NodeDeclaredFeatures')) return { declared: undefined, missing: [] };
  const names = Object.keys(known).sort();
  const has = (name: string) => known[name]?.(featureEnabled, runtime) === true;
  return { declared: names.filter(has), missing: names.filter((name) => !has(name)) };
}
