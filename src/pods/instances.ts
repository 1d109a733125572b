/** Questions about the instances of containers and sandboxes that the runtime shows. */
import type { ObservedContainer, ObservedPod, ObservedSandbox } from '../runtime/observed-pod.ts';

/** The newest instance of the container, in `sandboxId` only when that is given. */
export function newestInstance(
  observed: ObservedPod,
  name: string,
  sandboxId?: string,
): ObservedContainer | undefined {
  let newest: ObservedContainer | undefined;
  for (const container of observed.containers) {
    if (container.name !== name || (sandboxId !== undefined && container.sandboxId !== sandboxId)) continue;
    if (!newest || isNewer(container, newest)) newest = container;
  }
  return newest;
}

/** All instances of the container, newest first. */
export function instancesOf(observed: ObservedPod, name: string): ObservedContainer[] {
  return observed.containers
    .filter((container) => container.name === name)
    .sort((a, b) => (isNewer(a, b) ? -1 : 1));
}

/** By attempt, which only ever grows within a pod; the clock may have been set back between the two. */
function isNewer(
  a: Pick<ObservedContainer, 'attempt' | 'createdAt'>,
  b: Pick<ObservedContainer, 'attempt' | 'createdAt'>,
): boolean {
  return a.attempt === b.attempt ? a.createdAt > b.createdAt : a.attempt > b.attempt;
}

/** True while a process may be running: an unknown state counts, since nothing proves the contrary. */
export function isLive(container: ObservedContainer): boolean {
  return container.state === 'Running' || container.state === 'Unknown';
}

/**
 * The sandbox containers can be started in: the newest, and the only ready one, on the network the pod
 * asks for and with an address on it.
 */
export function usableSandbox(observed: ObservedPod, hostNetwork: boolean): ObservedSandbox | undefined {
  const newest = newestSandbox(observed);
  if (newest?.state !== 'Ready') return undefined;
  if (observed.sandboxes.some((sandbox) => sandbox !== newest && sandbox.state === 'Ready')) return undefined;
  if (newest.hostNetwork !== hostNetwork) return undefined;
  return hostNetwork || newest.ips.length > 0 ? newest : undefined;
}

/** The sandbox made last, whatever has become of it. */
export function newestSandbox(observed: ObservedPod): ObservedSandbox | undefined {
  let newest: ObservedSandbox | undefined;
  for (const sandbox of observed.sandboxes) {
    if (!newest || isNewer(sandbox, newest)) newest = sandbox;
  }
  return newest;
}
