/** How far a container has come, for whoever follows it through its instances. */
import { containerHash } from '../kubernetes/hash.ts';
import { findContainer } from '../kubernetes/init-containers.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';
import { newestInstance } from './instances.ts';
import type { PodWorker } from './pod-worker.ts';
import { mayRestart } from './restart-rule.ts';

export interface ContainerProgress {
  /** The attempt of the newest instance. */
  readonly attempt: number;
  /** It has not ended. */
  readonly isRunning: boolean;
  /** Another instance will come after it, as far as the pod's rules tell now. */
  readonly continues: boolean;
}

/** Undefined when the runtime has no instance of the container, or the pod names none. */
export function containerProgress(
  { pod, intent, memory }: Pick<PodWorker, 'pod' | 'intent' | 'memory'>,
  observed: ObservedPod,
  name: string,
): ContainerProgress | undefined {
  const newest = newestInstance(observed, name);
  const place = findContainer(pod.spec, name);
  if (!newest || !place) return undefined;
  const { container, kind } = place;
  const isRunning = newest.state !== 'Exited';
  const mayContinue =
    isRunning ||
    newest.hash !== containerHash(container) ||
    mayRestart({ pod, memory }, container, kind, newest);
  return {
    attempt: newest.attempt,
    isRunning,
    continues: mayContinue && intent.kind === 'run' && memory.terminal === undefined,
  };
}
