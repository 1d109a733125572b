/** A node without an API server: its pods are static, and nobody is told of anything. */

import type { Clock } from '../../concurrency/clock.ts';
import { environmentObjects } from '../../objects/environment-objects.ts';
import { type EventRecorder, silentEvents } from '../../telemetry/events.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Membership } from './membership.ts';
import { PodCidrs } from './pod-cidrs.ts';

/** What the node's own ranges of pod addresses are told with. */
export interface OwnPodCidrs {
  readonly podCidrs: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

export function standAlone(events: EventRecorder = silentEvents, own?: OwnPodCidrs): Membership {
  const ending = new AbortController();
  const podCidrs = own && new PodCidrs({ ...own, signal: ending.signal });
  podCidrs?.set(own?.podCidrs ?? []);
  return {
    api: undefined,
    servingCertificate: undefined,
    events,
    node: {
      // A node without an API server has no addresses to report.
      hostIps: () => [],
      placement: () => undefined,
      runtimeFound: (_facts, runtime) => podCidrs?.runtimeFound(runtime),
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
    close: () => ending.abort(new Error('the agent stops')),
  };
}
