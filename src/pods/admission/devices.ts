/**
 * Admission by devices that are on their way: after a restart of the agent, resources of device plugins are
 * missing until the plugins have registered again.
 */
import { podRequests } from '../../kubernetes/pod-resources.ts';
import { quantityValue } from '../../kubernetes/quantity.ts';
import type { AdmissionHandler } from './admission.ts';

export const refuseMissingDevices: AdmissionHandler = ({ spec }, { node, state: { missingDevices } }) => {
  if (missingDevices.size === 0) return undefined;
  for (const [name, amount] of podRequests(spec)) {
    if (!missingDevices.has(name) || quantityValue(amount) === 0 || node.allocatable.has(name)) continue;
    return {
      reason: 'UnexpectedAdmissionError',
      message:
        'Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ' +
        `${name}, which is unexpected`,
      waitsFor: { kind: 'device-plugin' },
    };
  }
  return undefined;
};
