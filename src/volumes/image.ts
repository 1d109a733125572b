/**
 * image: the content of an image, read-only. Nothing of it is on the node's disk as far as volumes go: the
 * image is fetched beside those of the containers, and the runtime mounts it.
 */
import type { Volume } from '../kubernetes/types.ts';
import type { VolumeKind } from './volume-kind.ts';

export const imageVolumes: VolumeKind<NonNullable<Volume['image']>> = {
  setUp: ({ name }) =>
    Promise.resolve({ name, kind: 'image', hostPath: '', readOnly: true, relabels: false }),
};
