/**
 * The status of a pod, from what is seen, what is remembered and what the plan waits for. Pure; the
 * status reported last goes in so that times and facts the runtime has forgotten are kept.
 */

import { type ContainerKind, podContainers } from '../../kubernetes/init-containers.ts';
import { podQosClass } from '../../kubernetes/qos.ts';
import type { ContainerStatus, PodStatus } from '../../kubernetes/types.ts';
import { newestSandbox } from '../instances.ts';
import type { Plan } from '../plan.ts';
import type { PodView, TerminalVerdict } from '../pod-view.ts';
import { containerStatus, timestamp } from './container-status.ts';
import { lastWords } from './last-words.ts';
import { podConditions } from './pod-conditions.ts';
import { isOver, podPhase } from './pod-phase.ts';
import { volumeMountStatuses } from './volume-mount-statuses.ts';

/** What the status of a pod is made from. */
export interface PodStatusInput {
  readonly view: PodView;
  readonly plan: Plan;
  readonly previous: PodStatus | undefined;
  readonly runtimeName: string;
  /** Addresses of the node, first family first; empty while the node runs alone. */
  readonly hostIps: readonly string[];
  /** The pod's runtime handler makes a mount and all below it read-only. */
  readonly recursiveReadOnly?: boolean;
}

/**
 * The whole `status` of a pod (core/v1 PodStatus), as `/pods` and the API server show it. `previous` is the
 * status to build on: times of conditions that stand, addresses and ends the runtime has forgotten.
 */
export function podStatus(input: PodStatusInput): PodStatus {
  const { view, plan, previous, runtimeName, hostIps, recursiveReadOnly = false } = input;
  const { terminal: verdict } = view.memory;
  if (verdict?.refused) return refusedStatus(view, verdict, previous);
  const containers = [...podContainers(view.pod.spec)];
  const before = new Map(allStatuses(previous).map((status) => [status.name, status]));
  const statuses: Record<string, ContainerStatus> = {};
  for (const place of containers) {
    const { name } = place.container;
    const seen = before.get(name);
    const status = containerStatus({
      view,
      place,
      waiting: plan.waiting[name],
      runtimeName,
      ...(seen ? { previous: seen } : {}),
    });
    const volumeMounts = volumeMountStatuses(place.container, recursiveReadOnly);
    statuses[name] = volumeMounts.length > 0 ? { ...status, volumeMounts } : status;
  }

  const told = lastWords(view, containers, statuses);
  const phase = podPhase({ view, containers, statuses });
  const ofRole = (...roles: ContainerKind[]) =>
    containers.filter(({ kind }) => roles.includes(kind)).map(({ container: spec }) => told[spec.name]!);
  const inits = ofRole('init', 'sidecar');
  const ephemerals = ofRole('ephemeral');
  const ips = podIps(view, previous, hostIps);
  const terminal = isOver(view) ? view.memory.terminal : undefined;

  return {
    ...(view.pod.metadata.generation === undefined
      ? {}
      : { observedGeneration: view.pod.metadata.generation }),
    phase,
    conditions: podConditions({ view, phase, containers, statuses, previous: previous?.conditions ?? [] }),
    ...(terminal?.reason ? { reason: terminal.reason } : {}),
    ...(terminal?.message ? { message: terminal.message } : {}),
    ...(hostIps[0] === undefined ? {} : { hostIP: hostIps[0], hostIPs: hostIps.map((ip) => ({ ip })) }),
    ...(ips[0] === undefined ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
    ...(view.memory.startTime === undefined ? {} : { startTime: timestamp(view.memory.startTime) }),
    ...(inits.length > 0 ? { initContainerStatuses: inits } : {}),
    containerStatuses: ofRole('regular').sort((a, b) => (a.name < b.name ? -1 : 1)),
    ...(ephemerals.length > 0 ? { ephemeralContainerStatuses: ephemerals } : {}),
    qosClass: podQosClass(view.pod.spec),
  };
}

/** Of a pod that was not let in there is nothing to tell but why. */
function refusedStatus(
  { pod, memory }: PodView,
  { phase, reason, message }: TerminalVerdict,
  previous: PodStatus | undefined,
): PodStatus {
  const { generation } = pod.metadata;
  return {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    phase,
    ...(previous?.conditions && { conditions: previous.conditions }),
    ...(reason ? { reason } : {}),
    ...(message ? { message } : {}),
    ...(memory.startTime === undefined ? {} : { startTime: timestamp(memory.startTime) }),
    qosClass: podQosClass(pod.spec),
  };
}

function allStatuses(status: PodStatus | undefined): ContainerStatus[] {
  return [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
}

/** At most one address of each family; a pod on the host's network has the node's. */
function podIps(
  { pod, observed }: PodView,
  previous: PodStatus | undefined,
  hostIps: readonly string[],
): string[] {
  if (pod.spec.hostNetwork) return [...hostIps];
  const ips = newestSandbox(observed)?.ips ?? [];
  if (ips.length === 0) return previous?.podIPs?.map(({ ip }) => ip) ?? [];
  const v6 = (ip: string) => ip.includes(':');
  const preferV6 = hostIps[0] !== undefined && v6(hostIps[0]);
  const first = ips.find((ip) => v6(ip) === preferV6);
  const second = ips.find((ip) => v6(ip) !== preferV6);
  return [first, second].filter((ip) => ip !== undefined);
}
