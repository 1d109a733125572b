/**
 * The handlers of admission in Kubernetes' order. The first refusal counts.
 *
 * Left out: what only an API server can know (node affinity, taints, which static pods are exempt from
 * anyway). Differs from the kubelet: a critical pod that does not fit makes no room by preempting others.
 * It is refused with the resource it lacks, like any other pod; on a node alone every pod is a static one
 * and so equally critical, and the kubelet's attempt would only replace the reason by an unexpected error.
 */
import type { Pod } from '../../kubernetes/types.ts';
import type { Admission, AdmissionFacts, AdmissionHandler } from './admission.ts';
import { refuseAppArmor } from './app-armor.ts';
import { refuseHostPorts } from './host-ports.ts';
import { refuseGroupsPolicy, refuseNodeName, refuseOs, refusePodLevelResources } from './node-fit.ts';
import { refuseResources } from './resource-fit.ts';
import { refuseSysctls } from './sysctls.ts';

const handlers: readonly AdmissionHandler[] = [
  refuseSysctls,
  refuseOs,
  refuseGroupsPolicy,
  refuseResources,
  refuseNodeName,
  refuseHostPorts,
  refuseAppArmor,
  refusePodLevelResources,
];

/** Whether the pod may run on the node beside the others that do. */
export function admitPod(pod: Pod, facts: AdmissionFacts): Admission {
  for (const handler of handlers) {
    const refusal = handler(pod, facts);
    if (refusal) return { admitted: false, ...refusal };
  }
  return { admitted: true };
}
