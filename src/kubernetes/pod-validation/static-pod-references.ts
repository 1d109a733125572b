/**
 * What a static pod may not have: references to objects of the API. Such a pod is known from its file alone,
 * and its mirror in the API is made by the node, so it must not reach what the API guards.
 */

import { type FieldError, FieldErrors } from './field-error.ts';
import type { Container, EphemeralContainer, PodManifest, Volume } from './unvalidated-pod.ts';

type Source = NonNullable<NonNullable<Volume['projected']>['sources']>[number];

/**
 * References to secrets, config maps, service accounts, claims and other API objects, one `Forbidden` error
 * each (feature gate PreventStaticPodAPIReferences). The pod must have passed validation.
 */
export function staticPodReferences(pod: PodManifest): FieldError[] {
  const errors = new FieldErrors();
  const spec = pod.spec;
  if (!spec) return [];
  if (spec.serviceAccountName || spec.serviceAccount) {
    refuse(
      errors,
      spec.serviceAccountName ? 'spec.serviceAccountName' : 'spec.serviceAccount',
      'service accounts',
    );
  }
  spec.imagePullSecrets?.forEach((_, index) => refuse(errors, `spec.imagePullSecrets[${index}]`, 'secrets'));
  spec.resourceClaims?.forEach((_, index) =>
    refuse(errors, `spec.resourceClaims[${index}]`, 'resource claims'),
  );
  spec.volumes?.forEach((volume, index) => checkVolume(errors, `spec.volumes[${index}]`, volume));
  for (const kind of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    spec[kind]?.forEach((container, index) => checkContainer(errors, `spec.${kind}[${index}]`, container));
  }
  return errors.list();
}

function refuse(errors: FieldErrors, path: string, objects: string): void {
  errors.forbidden(path, `static pods may not reference ${objects}`);
}

function checkContainer(errors: FieldErrors, path: string, container: Container | EphemeralContainer): void {
  container.envFrom?.forEach(({ secretRef, configMapRef }, index) => {
    if (secretRef) refuse(errors, `${path}.envFrom[${index}].secretRef`, 'secrets');
    if (configMapRef) refuse(errors, `${path}.envFrom[${index}].configMapRef`, 'config maps');
  });
  container.env?.forEach(({ valueFrom }, index) => {
    const at = `${path}.env[${index}].valueFrom`;
    if (valueFrom?.secretKeyRef) refuse(errors, `${at}.secretKeyRef`, 'secrets');
    if (valueFrom?.configMapKeyRef) refuse(errors, `${at}.configMapKeyRef`, 'config maps');
  });
}

/** Volumes that are themselves references, and what they refer to. */
const referring: readonly (readonly [keyof Volume, string])[] = [
  ['secret', 'secrets'],
  ['configMap', 'config maps'],
  ['persistentVolumeClaim', 'persistent volume claims'],
  ['ephemeral', 'persistent volume claims'],
  ['glusterfs', 'endpoints'],
  ['azureFile', 'secrets'],
];

/** Volumes of network storage that take their credentials from a secret. */
const withSecret = ['cephfs', 'cinder', 'flexVolume', 'iscsi', 'rbd', 'scaleIO', 'storageos'] as const;

const projections: Readonly<Record<keyof Source, string | undefined>> = {
  secret: 'secrets',
  configMap: 'config maps',
  serviceAccountToken: 'service accounts',
  clusterTrustBundle: 'cluster trust bundles',
  podCertificate: 'pod certificates',
  downwardAPI: undefined,
};

function checkVolume(errors: FieldErrors, path: string, volume: Volume): void {
  for (const [kind, objects] of referring) if (volume[kind]) refuse(errors, `${path}.${kind}`, objects);
  for (const kind of withSecret) {
    if (volume[kind]?.secretRef) refuse(errors, `${path}.${kind}.secretRef`, 'secrets');
  }
  if (volume.csi?.nodePublishSecretRef) refuse(errors, `${path}.csi.nodePublishSecretRef`, 'secrets');
  volume.projected?.sources?.forEach((source, index) => {
    for (const [kind, objects] of Object.entries(projections)) {
      if (objects === undefined || !source[kind as keyof Source]) continue;
      refuse(errors, `${path}.projected.sources[${index}].${kind}`, objects);
    }
  });
}
