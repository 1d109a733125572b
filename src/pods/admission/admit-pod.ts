/**
 * The handlers of admission in Kubernetes' order. The first refusal for good counts, then the first one that
 * may pass.
 * What is no matter of admission in Kubernetes is none here: an unknown RuntimeClass and user namespaces
 * fail the sandbox, image volumes the container.
 */
import type { Pod } from '../../kubernetes/types.ts';
import type { Admission, AdmissionFacts, AdmissionHandler, Refusal } from './admission.ts';
import { refuseAppArmor } from './app-armor.ts';
import { refuseMissingDevices } from './devices.ts';
import { refuseHostPorts } from './host-ports.ts';
import {
  refuseGroupsPolicy,
  refuseNodeName,
  refuseOs,
  refusePodLevelResources,
  refuseUndeclaredFeatures,
} from './node-fit.ts';
import { refuseOnShutdown, refuseUnderPressure } from './node-health.ts';
import { refuseAffinity, refuseTaints } from './placement.ts';
import { refuseResources } from './resource-fit.ts';
import { refuseSysctls } from './sysctls.ts';

const handlers: readonly AdmissionHandler[] = [
  refuseUnderPressure,
  refuseSysctls,
  refuseMissingDevices,
  refuseOs,
  refuseGroupsPolicy,
  refuseResources,
  refuseAffinity,
  refuseNodeName,
  refuseHostPorts,
  refuseTaints,
  refuseAppArmor,
  refusePodLevelResources,
  refuseUndeclaredFeatures,
  refuseOnShutdown,
];

const apartFromResources = handlers.filter((handler) => handler !== refuseResources);

/** Whether the pod may run on the node beside the others that do. */
export function admitPod(pod: Pod, facts: AdmissionFacts): Admission {
  return ask(handlers, pod, facts);
}

/** As {@link admitPod}, as if there were enough of every resource. */
export function admitApartFromResources(pod: Pod, facts: AdmissionFacts): Admission {
  return ask(apartFromResources, pod, facts);
}

function ask(asked: readonly AdmissionHandler[], pod: Pod, facts: AdmissionFacts): Admission {
  let passing: Refusal | undefined;
  for (const handler of asked) {
    const refusal = handler(pod, facts);
    if (refusal && !refusal.waitsFor) return { admitted: false, ...refusal };
    passing ??= refusal;
  }
  return passing ? { admitted: false, ...passing } : { admitted: true };
}
