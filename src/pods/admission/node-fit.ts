/** Admission by what kind of node this is: its name, its system, what its runtime and gates can do. */
import { isPodLevelResource } from '../../kubernetes/pod-resources.ts';
import type { Pod } from '../../kubernetes/types.ts';
import { mayRestartAll } from '../decide-restart-all.ts';
import type { AdmissionHandler } from './admission.ts';

const os = 'linux';
const osLabel = 'kubernetes.io/os';

/** Refuses pods for another operating system. */
export const refuseOs: AdmissionHandler = ({ metadata, spec }) => {
  if ((metadata.labels?.[osLabel] ?? os) !== os) {
    return {
      reason: 'PodOSSelectorNodeLabelDoesNotMatch',
      message: `Failed to admit pod as the \`${osLabel}\` label doesn't match node label`,
    };
  }
  if ((spec.os?.name ?? os) === os) return undefined;
  return {
    reason: 'PodOSNotSupported',
    message: "Failed to admit pod as the OS field doesn't match node OS",
  };
};

/** Refuses `supplementalGroupsPolicy: Strict` on a runtime that cannot follow it. */
export const refuseGroupsPolicy: AdmissionHandler = ({ spec }, { node }) => {
  if (node.strictGroups || spec.securityContext?.supplementalGroupsPolicy !== 'Strict') return undefined;
  return {
    reason: 'SupplementalGroupsPolicyNotSupported',
    message: 'SupplementalGroupsPolicy=Strict is not supported in this node',
  };
};

/** Refuses pods that are bound to another node. */
export const refuseNodeName: AdmissionHandler = ({ spec }, { node }) => {
  if (!spec.nodeName || spec.nodeName === node.name) return undefined;
  return {
    reason: 'NodeName',
    message: "Predicate NodeName failed: node(s) didn't match the requested node name",
  };
};

/** Refuses `spec.resources` while the gate PodLevelResources is off. */
export const refusePodLevelResources: AdmissionHandler = ({ spec }, { node }) => {
  const names = Object.keys({ ...spec.resources?.requests, ...spec.resources?.limits });
  if (node.podLevelResources || !names.some(isPodLevelResource)) return undefined;
  return {
    reason: 'PodLevelResourcesNotSupported',
    message: 'PodLevelResources feature gate is disabled',
  };
};

/** Features a pod can be seen to need (gate NodeDeclaredFeatures). */
const inferredFeatures: readonly (readonly [feature: string, needs: (pod: Pod) => boolean])[] = [
  ['RestartAllContainersOnContainerExits', mayRestartAll],
  ['UserNamespacesHostNetworkSupport', ({ spec }) => spec.hostNetwork === true && spec.hostUsers === false],
];

export const refuseUndeclaredFeatures: AdmissionHandler = (pod, { node: { undeclaredFeatures } }) => {
  const missing = inferredFeatures
    .filter(([feature, needs]) => undeclaredFeatures.includes(feature) && needs(pod))
    .map(([feature]) => feature);
  if (missing.length === 0) return undefined;
  return {
    reason: 'PodFeatureUnsupported',
    message: `Pod requires node features that are not available: ${missing.join(', ')}`,
  };
};
