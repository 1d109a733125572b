/**
 * Admission by where the pod wants to be and what the node wants of it: `nodeSelector`, node affinity, and
 * taints with the effect NoExecute.
 */
import { matchesNode } from '../../kubernetes/node-affinity.ts';
import { isStaticPod } from '../../kubernetes/pod-identity.ts';
import { tolerates } from '../../kubernetes/tolerations.ts';
import type { AdmissionHandler } from './admission.ts';

export const refuseAffinity: AdmissionHandler = ({ spec }, { node, state: { placement } }) => {
  if (matchesNode(spec, { name: node.name, labels: placement.labels })) return undefined;
  return {
    reason: 'NodeAffinity',
    message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    ...(!placement.known && { waitsFor: { kind: 'node-object' } }),
  };
};

/** Static pods belong to the node and put up with whatever it is tainted with. */
export const refuseTaints: AdmissionHandler = (pod, { node, state: { placement } }) => {
  if (isStaticPod(pod)) return undefined;
  const refused = placement.taints.some(
    (taint) =>
      taint.effect === 'NoExecute' &&
      !tolerates(pod.spec.tolerations, taint, { comparisons: node.comparedTaints }),
  );
  if (!refused) return undefined;
  return {
    reason: 'TaintToleration',
    message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
  };
};
