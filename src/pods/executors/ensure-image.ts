import { findContainer } from '../../kubernetes/init-containers.ts';
import type { Executor } from './executor.ts';

/** Makes sure that the image of a container is on the node. */
export const ensureImage: Executor<'ensure-image'> = async (action, { pod, signal }, { images }) => {
  const place = findContainer(pod.spec, action.container);
  if (!place)
    return { ok: false, reason: 'InternalError', message: `the pod has no container ${action.container}` };
  const result = await images.ensure({ pod, place, signal });
  if (!result.ok) return result;
  const { imageRef: ref } = result;
  return { ok: true, learned: { image: { container: action.container, ref, attempt: action.attempt } } };
};
