import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podWith } from './pod-cases.ts';
import { staticPodReferences } from './static-pod-references.ts';

const noVolumes = { 'spec.volumes': undefined };
const volume = (source: object) => ({ 'spec.volumes': [{ name: 'v', ...source }] });
const env = (valueFrom: object) => ({ ...noVolumes, 'spec.containers[0].env': [{ name: 'A', valueFrom }] });
const secretRef = { name: 's' };

const cases: [changes: Record<string, unknown>, ...paths: string[]][] = [
  [noVolumes],
  [volume({ hostPath: { path: '/' } })],
  [volume({ projected: { sources: [{ downwardAPI: {} }] } })],
  [volume({ iscsi: { targetPortal: 'p', iqn: 'i', lun: 0 } })],
  [env({ fieldRef: { fieldPath: 'metadata.name' } })],
  [{ ...noVolumes, 'spec.serviceAccountName': 'x' }, 'spec.serviceAccountName'],
  [{ ...noVolumes, 'spec.serviceAccount': 'x' }, 'spec.serviceAccount'],
  [{ ...noVolumes, 'spec.imagePullSecrets': [secretRef] }, 'spec.imagePullSecrets[0]'],
  [{ ...noVolumes, 'spec.resourceClaims': [{ name: 'c' }] }, 'spec.resourceClaims[0]'],
  [volume({ secret: { secretName: 's' } }), 'spec.volumes[0].secret'],
  [volume({ configMap: { name: 'm' } }), 'spec.volumes[0].configMap'],
  [volume({ persistentVolumeClaim: { claimName: 'c' } }), 'spec.volumes[0].persistentVolumeClaim'],
  [volume({ ephemeral: {} }), 'spec.volumes[0].ephemeral'],
  [volume({ rbd: { monitors: [], image: 'i', secretRef } }), 'spec.volumes[0].rbd.secretRef'],
  [
    volume({ csi: { driver: 'd', nodePublishSecretRef: secretRef } }),
    'spec.volumes[0].csi.nodePublishSecretRef',
  ],
  [
    volume({
      projected: { sources: [{ serviceAccountToken: { path: 'p' } }, { clusterTrustBundle: { path: 'q' } }] },
    }),
    'spec.volumes[0].projected.sources[0].serviceAccountToken',
    'spec.volumes[0].projected.sources[1].clusterTrustBundle',
  ],
  [env({ secretKeyRef: { name: 's', key: 'k' } }), 'spec.containers[0].env[0].valueFrom.secretKeyRef'],
  [env({ configMapKeyRef: { name: 's', key: 'k' } }), 'spec.containers[0].env[0].valueFrom.configMapKeyRef'],
  [
    { ...noVolumes, 'spec.initContainers[0].envFrom': [{ secretRef }, { configMapRef: secretRef }] },
    'spec.initContainers[0].envFrom[0].secretRef',
    'spec.initContainers[0].envFrom[1].configMapRef',
  ],
];

describe('references of static pods', () => {
  for (const [changes, ...expected] of cases) {
    it(`${JSON.stringify(changes)} ${expected.length > 0 ? 'is refused' : 'is accepted'}`, () => {
      const found = staticPodReferences(podWith(changes));
      assert.deepEqual(
        found.map(({ path }) => path),
        expected,
      );
      assert.ok(found.every(({ type }) => type === 'Forbidden'));
    });
  }

  it('says nothing about a manifest without a spec', () => assert.deepEqual(staticPodReferences({}), []));
});
