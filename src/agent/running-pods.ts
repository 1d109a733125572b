/** Pods as the runtime shows them, whoever made them: what `/runningpods/` lists. */
import type { PodManifest } from '../kubernetes/types.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';

/** Those with a container that runs, with these containers only. */
export function* runningPods(pods: Iterable<ObservedPod>): Generator<PodManifest> {
  for (const { name, namespace, uid, containers } of pods) {
    const running = containers.filter(({ state }) => state === 'Running');
    if (running.length === 0) continue;
    yield {
      metadata: { name, namespace, uid },
      spec: { containers: running.map((container) => ({ name: container.name, image: container.image })) },
    };
  }
}
