/** A node without an API server: its pods are static, and nobody is told of anything. */
import { environmentObjects } from '../../objects/environment-objects.ts';
import { type EventRecorder, silentEvents } from '../../telemetry/events.ts';
import type { Membership } from './membership.ts';

export function standAlone(events: EventRecorder = silentEvents): Membership {
  return {
    api: undefined,
    servingCertificate: undefined,
    events,
    node: {
      // A node without an API server has no addresses to report.
      hostIps: () => [],
      placement: () => undefined,
      runtimeFound() {},
      runtimeLooked() {},
      relisted() {},
      imageUsed() {},
    },
    objects: {
      environment: (request, signal) => environmentObjects({ ...request, objects: undefined }, signal),
      serviceVariables: async () => new Map(),
      // The handler of a runtime class is known to the API server only; without one there is the default.
      runtimeHandler: async () => '',
      volumeContents: undefined,
      serviceAccounts: undefined,
      pullSecrets: async () => [],
    },
    pods: { sources: () => [], objects: undefined, wanted() {}, handedOver() {}, report() {}, gone() {} },
    remembered: async () => [],
    attach() {},
    run: async () => {},
    close() {},
  };
}
