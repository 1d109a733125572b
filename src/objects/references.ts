/**
 * Which config maps and secrets a pod refers to. Pure. The Node authorizer lets a node read exactly these,
 * so the node asks for exactly these.
 */
import { podContainers } from '../kubernetes/init-containers.ts';
import type { Container, EphemeralContainer, Pod, Volume } from '../kubernetes/types.ts';
import type { ObjectKind, ObjectReference } from './object-types.ts';

type Found = (kind: ObjectKind, name: string | undefined) => void;

/** The key of a reference in maps; equal for equal references. */
export function referenceKey({ kind, namespace, name }: ObjectReference): string {
  return `${kind}/${namespace}/${name}`;
}

/**
 * Every reference of the pod once, from its containers, volumes and `imagePullSecrets`. Pull secrets of its
 * service account are among them: the API server writes them into the pod when it is created.
 */
export function podReferences(pod: Pod): ObjectReference[] {
  return collect(pod.metadata.namespace, (found) => {
    for (const { container } of podContainers(pod.spec)) environmentReferences(container, found);
    for (const volume of pod.spec.volumes ?? []) volumeReferences(volume, found);
    for (const { name } of pod.spec.imagePullSecrets ?? []) found('secret', name);
  });
}

/** What the environment of one container takes from objects. */
export function containerReferences(
  namespace: string,
  container: Container | EphemeralContainer,
): ObjectReference[] {
  return collect(namespace, (found) => environmentReferences(container, found));
}

function collect(namespace: string, visit: (found: Found) => void): ObjectReference[] {
  const references = new Map<string, ObjectReference>();
  visit((kind, name) => {
    // A nameless reference is legal in the API and leads nowhere.
    if (!name) return;
    const reference = { kind, namespace, name };
    references.set(referenceKey(reference), reference);
  });
  return [...references.values()];
}

function environmentReferences({ env, envFrom }: Container | EphemeralContainer, found: Found): void {
  for (const { configMapRef, secretRef } of envFrom ?? []) {
    found('configMap', configMapRef?.name);
    found('secret', secretRef?.name);
  }
  for (const { valueFrom } of env ?? []) {
    found('configMap', valueFrom?.configMapKeyRef?.name);
    found('secret', valueFrom?.secretKeyRef?.name);
  }
}

function volumeReferences(volume: Volume, found: Found): void {
  found('configMap', volume.configMap?.name);
  found('secret', volume.secret?.secretName);
  for (const source of volume.projected?.sources ?? []) {
    found('configMap', source.configMap?.name);
    found('secret', source.secret?.name);
  }
  // Drivers that log in to their storage with a secret of the pod's namespace.
  found('secret', volume.azureFile?.secretName);
  found('secret', volume.cephfs?.secretRef?.name);
  found('secret', volume.cinder?.secretRef?.name);
  found('secret', volume.csi?.nodePublishSecretRef?.name);
  found('secret', volume.flexVolume?.secretRef?.name);
  found('secret', volume.iscsi?.secretRef?.name);
  found('secret', volume.rbd?.secretRef?.name);
  found('secret', volume.scaleIO?.secretRef?.name);
  found('secret', volume.storageos?.secretRef?.name);
}
