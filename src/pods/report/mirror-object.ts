/** The API server's copy of a static pod: what it looks like, and whose copy it is. Pure. */
import { podAnnotations } from '../../kubernetes/pod-identity.ts';
import type { Pod, PodManifest } from '../../kubernetes/types.ts';
import type { PodObject } from './pod-objects.ts';

/** The mirror of `pod` as it is created; the node owns it, so it goes with the node's object. */
export function mirrorOf(pod: Pod, node: { readonly name: string; readonly uid: string }): PodManifest {
  const { name, namespace, labels, annotations } = pod.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      ...(labels && { labels }),
      annotations: { ...annotations, [podAnnotations.configMirror]: hashOf(pod) },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid, controller: true }],
    },
    spec: pod.spec,
  };
}

/** True for the mirror of exactly this version of the pod, owned by this node's object where that is known. */
export function isMirrorOf(mirror: PodObject, pod: Pod, nodeUid: string | undefined): boolean {
  const { annotations = {}, ownerReferences = [] } = mirror.metadata;
  if (annotations[podAnnotations.configMirror] !== hashOf(pod)) return false;
  return nodeUid === undefined || ownerReferences.some(({ kind, uid }) => kind === 'Node' && uid === nodeUid);
}

const hashOf = ({ metadata }: Pod) => metadata.annotations?.[podAnnotations.configHash] ?? metadata.uid;
