/**
 * Whether a container that has ended is started again. The container's own rules come first, then its own
 * policy, then the pod's; init containers and sidecars follow their role.
 */
import type { ContainerKind } from './init-containers.ts';
import type { Container, PodSpec } from './types.ts';

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** `RestartAllContainers`: the whole pod starts over, init containers too. */
export type RestartDecision = 'Restart' | 'RestartAllContainers' | 'Stay';

type Restartable = Pick<Container, 'restartPolicy' | 'restartPolicyRules'>;

/** The policy that holds for one container: always for sidecars, never for ephemeral containers. */
export function effectiveRestartPolicy(
  container: Restartable,
  kind: ContainerKind,
  spec: Pick<PodSpec, 'restartPolicy'>,
): RestartPolicy {
  if (kind === 'sidecar') return 'Always';
  if (kind === 'ephemeral') return 'Never';
  return policyOf(container.restartPolicy) ?? policyOf(spec.restartPolicy) ?? 'Always';
}

/**
 * What follows when the container has ended with `exitCode`; `undefined` when the runtime has lost it, which
 * counts as a failure. An init container that succeeded stays done whatever its policy.
 */
export function restartDecision(
  container: Restartable,
  kind: ContainerKind,
  spec: Pick<PodSpec, 'restartPolicy'>,
  exitCode: number | undefined,
): RestartDecision {
  if (kind === 'ephemeral') return 'Stay';
  const action = exitCode === undefined ? undefined : matchingAction(container, exitCode);
  if (action === 'RestartAllContainers') return action;
  if (kind === 'init' && exitCode === 0) return 'Stay';
  if (action === 'Restart') return action;
  switch (effectiveRestartPolicy(container, kind, spec)) {
    case 'Always':
      return 'Restart';
    case 'OnFailure':
      return exitCode === 0 ? 'Stay' : 'Restart';
    case 'Never':
      return 'Stay';
  }
}

/** After a failed liveness or startup probe: only the policy counts, rules are not asked. */
export function restartsAfterProbeFailure(
  container: Restartable,
  kind: ContainerKind,
  spec: Pick<PodSpec, 'restartPolicy'>,
): boolean {
  return effectiveRestartPolicy(container, kind, spec) !== 'Never';
}

/** The action of the first rule whose exit codes match. */
function matchingAction(
  container: Restartable,
  exitCode: number,
): 'Restart' | 'RestartAllContainers' | undefined {
  for (const { action, exitCodes } of container.restartPolicyRules ?? []) {
    if (!exitCodes) continue;
    const listed = (exitCodes.values ?? []).includes(exitCode);
    const matches = exitCodes.operator === 'In' ? listed : exitCodes.operator === 'NotIn' && !listed;
    if (matches && (action === 'Restart' || action === 'RestartAllContainers')) return action;
  }
  return undefined;
}

function policyOf(text: string | undefined): RestartPolicy | undefined {
  return text === 'Always' || text === 'OnFailure' || text === 'Never' ? text : undefined;
}
