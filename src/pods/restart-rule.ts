import type { ContainerKind } from '../kubernetes/init-containers.ts';
import { restartDecision } from '../kubernetes/restart-policy.ts';
import type { Container, EphemeralContainer, Pod } from '../kubernetes/types.ts';
import type { ObservedContainer } from '../runtime/observed-pod.ts';

/** Whether the container may run again after the end of `instance`. */
export function mayRestart(
  pod: Pod,
  container: Container | EphemeralContainer,
  kind: ContainerKind,
  instance: ObservedContainer,
): boolean {
  return restartDecision(container, kind, pod.spec, instance.exitCode) !== 'Stay';
}
