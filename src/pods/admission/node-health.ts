/** Admission by how the node is: short of something, or on its way down. */
import { isCriticalPod } from '../../kubernetes/pod-identity.ts';
import { podQosClass } from '../../kubernetes/qos.ts';
import { tolerates } from '../../kubernetes/tolerations.ts';
import type { AdmissionHandler } from './admission.ts';

const memoryPressure = 'MemoryPressure';
const memoryTaint = { key: 'node.kubernetes.io/memory-pressure', effect: 'NoSchedule' };

/** A node that is short of memory alone still takes pods that say how much of it they need. */
export const refuseUnderPressure: AdmissionHandler = (pod, { state: { pressures } }) => {
  if (pressures.length === 0 || isCriticalPod(pod)) return undefined;
  if (pressures.length === 1 && pressures[0] === memoryPressure) {
    if (podQosClass(pod.spec) !== 'BestEffort') return undefined;
    if (tolerates(pod.spec.tolerations, memoryTaint)) return undefined;
  }
  return { reason: 'Evicted', message: `The node had condition: [${pressures.join(' ')}]. ` };
};

export const refuseOnShutdown: AdmissionHandler = (_pod, { state: { shuttingDown } }) => {
  if (!shuttingDown) return undefined;
  return { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' };
};
