/** Builds admission from settings, facts of the machine, and what the node's object says now. */
import type { Clock } from '../concurrency/clock.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import { goArchitecture } from '../node/machine-identity.ts';
import { registrationLabels } from '../node/node-object.ts';
import type { NodeState } from '../pods/admission/admission.ts';
import { PodAdmission } from '../pods/admission/pod-admission.ts';
import type { RuntimeFacts } from '../runtime/cri/runtime-check.ts';
import type { EventRecorder } from '../telemetry/events.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Membership } from './cluster/membership.ts';
import { declaredFeatures } from './declared-features.ts';
import type { MachineFacts } from './node-facts.ts';

export interface AdmissionInput {
  readonly settings: NodeAgentSettings;
  readonly featureEnabled: (gate: string) => boolean;
  readonly facts: MachineFacts;
  readonly nodeName: string;
  readonly runtimeFacts: () => RuntimeFacts;
  readonly allocatable: ResourceAmounts;
  readonly membership: Pick<Membership, 'node'>;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

export function buildAdmission(input: AdmissionInput): PodAdmission {
  const { settings, facts, nodeName, runtimeFacts, featureEnabled, allocatable } = input;
  const { events, metrics, logger, clock } = input;
  // A node that stands alone has the labels that every node has.
  const identity = { labels: {}, hostname: nodeName, architecture: goArchitecture(process.arch) };
  const alone: NodeState['placement'] = { labels: registrationLabels(identity), taints: [], known: true };
  return new PodAdmission({
    node: {
      name: nodeName,
      kernelRelease: facts.kernelRelease,
      allocatable,
      allowedUnsafeSysctls: settings.allowedUnsafeSysctls,
      get strictGroups() {
        return runtimeFacts().features?.supplementalGroupsPolicy ?? false;
      },
      appArmor: facts.appArmor,
      podLevelResources: featureEnabled('PodLevelResources'),
      comparedTaints: featureEnabled('TaintTolerationComparisonOperators'),
      get undeclaredFeatures() {
        return declaredFeatures(featureEnabled, runtimeFacts().features).missing;
      },
    },
    state: () => ({
      placement: input.membership.node.placement() ?? alone,
      missingDevices: new Set(),
      pressures: [],
      shuttingDown: false,
    }),
    events,
    metrics,
    logger,
    clock,
  });
}
