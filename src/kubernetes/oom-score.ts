/**
 * Which processes the kernel should kill first when memory runs out: `oom_score_adj` of a container, from
 * −997 (nearly never) to 1000 (first).
 */
import { isRestartableInit } from './init-containers.ts';
import { isNodeCriticalPod } from './pod-identity.ts';
import { bytesOf, containerRequests, podRequests } from './pod-resources.ts';
import { podQosClass } from './qos.ts';
import { quantityValue, tryParseQuantity } from './quantity.ts';
import type { Container, ObjectMeta, PodSpec } from './types.ts';

const guaranteed = -997;
const bestEffort = 1000;

/**
 * `nodeMemoryBytes` is the node's memory capacity. Burstable containers score lower the more memory they
 * ask for; a sidecar never scores above the regular container with the smallest request, since the pod
 * needs it at least as long.
 */
export function oomScoreAdj(
  pod: { metadata?: ObjectMeta; spec: PodSpec },
  container: Container,
  nodeMemoryBytes: number,
): number {
  if (isNodeCriticalPod(pod)) return guaranteed;
  switch (podQosClass(pod.spec)) {
    case 'Guaranteed':
      return guaranteed;
    case 'BestEffort':
      return bestEffort;
    case 'Burstable':
      break;
  }
  const request = bytesOf(containerRequests(container)) + sharedPodMemory(pod.spec, container);
  let score = scoreOf(request, nodeMemoryBytes);
  if (isSidecarOf(pod.spec, container)) {
    // The shared part of pod-level memory is left out here, as the kubelet does.
    const smallest = Math.min(...pod.spec.containers.map((regular) => bytesOf(containerRequests(regular))));
    score = Math.min(score, scoreOf(smallest, nodeMemoryBytes));
  }
  // Above every Guaranteed container, below every BestEffort one.
  return Math.min(Math.max(score, bestEffort + guaranteed), bestEffort - 1);
}

function scoreOf(requestBytes: number, nodeMemoryBytes: number): number {
  return bestEffort - Math.trunc((bestEffort * requestBytes) / Math.max(nodeMemoryBytes, 1));
}

function isSidecarOf(spec: PodSpec, container: Container): boolean {
  return (
    isRestartableInit(container) && (spec.initContainers ?? []).some(({ name }) => name === container.name)
  );
}

/** Pod-level memory no container has claimed, shared equally by those that run together. */
function sharedPodMemory(spec: PodSpec, container: Container): number {
  const podLevel = tryParseQuantity(
    spec.resources?.requests?.['memory'] ?? spec.resources?.limits?.['memory'],
  );
  if (!podLevel) return 0;
  const sidecars = (spec.initContainers ?? []).filter(isRestartableInit);
  const together = [...spec.containers, ...sidecars];
  if (!together.some(({ name }) => name === container.name)) return 0;
  const { resources: _replaced, ...bare } = spec;
  const claimed = bytesOf(podRequests(bare, { withoutOverhead: true }));
  return Math.max(0, Math.floor((quantityValue(podLevel) - claimed) / together.length));
}
