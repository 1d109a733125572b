/**
 * Which of the cluster's pods go on while the API server has not spoken yet: those an earlier agent wrote
 * down and that the runtime still has something of. Pure. After a reboot that is none: whether such a pod
 * still belongs here, only the API server knows. With `--restore-pods-offline` it is all that were written down.
 */
import { isStaticPod } from '../../kubernetes/pod-identity.ts';
import type { Pod } from '../../kubernetes/types.ts';
import type { PodRecord } from '../../pods/pod-records.ts';
import type { ObservedPod } from '../../runtime/observed-pod.ts';

export function rememberedPods(
  records: readonly PodRecord[],
  observe: (uid: string) => ObservedPod,
  { offline = false }: { readonly offline?: boolean } = {},
): readonly Pod[] {
  return records
    .filter(({ pod }) => !isStaticPod(pod))
    .filter(
      ({ pod }) => offline || observe(pod.metadata.uid).sandboxes.some(({ state }) => state === 'Ready'),
    )
    .map(({ pod }) => pod);
}
