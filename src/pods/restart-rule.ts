import type { ContainerKind } from '../kubernetes/init-containers.ts';
import { restartDecision, restartsAfterProbeFailure } from '../kubernetes/restart-policy.ts';
import type { Container, EphemeralContainer } from '../kubernetes/types.ts';
import type { ObservedContainer } from '../runtime/observed-pod.ts';
import type { PodView } from './pod-view.ts';

/**
 * Whether the container may run again after the end of `instance`. One that a probe has put an end to has
 * failed, whatever exit code it found time to return.
 */
export function mayRestart(
  { pod, memory }: Pick<PodView, 'pod' | 'memory'>,
  container: Container | EphemeralContainer,
  kind: ContainerKind,
  instance: ObservedContainer,
): boolean {
  if (memory.endedByProbe[instance.id]) return restartsAfterProbeFailure(container, kind, pod.spec);
  return restartDecision(container, kind, pod.spec, instance.exitCode) !== 'Stay';
}
