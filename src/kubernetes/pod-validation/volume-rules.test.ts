import { describe } from 'node:test';
import { testCases } from './pod-cases.ts';

const v = 'spec.volumes[2]';
const source = (fields: object) => ({ [v]: { name: 'v', ...fields } });

describe('volumes', () => {
  testCases([
    [source({})],
    [{ [v]: { emptyDir: {} } }, `Required ${v}.name`],
    [{ [v]: { name: 'V', emptyDir: {} } }, `Invalid ${v}.name`],
    [{ [v]: { name: 'scratch', emptyDir: {} } }, `Duplicate ${v}.name`],
    [source({ emptyDir: {}, hostPath: { path: '/' } }), `Forbidden ${v}.hostPath`],
  ]);
});

describe('volumes of the node', () => {
  testCases([
    [source({ emptyDir: { medium: 'Memory', sizeLimit: '1Gi' } })],
    [source({ emptyDir: { medium: 'HugePages-2Mi' } })],
    [source({ emptyDir: { medium: 'Tape' } }), `NotSupported ${v}.emptyDir.medium`],
    [source({ emptyDir: { sizeLimit: '-1' } }), `Forbidden ${v}.emptyDir.sizeLimit`],
    [source({ hostPath: { path: '/a..b' } })],
    [source({ hostPath: { path: '/a', type: 'FileOrCreate' } })],
    [source({ hostPath: {} }), `Required ${v}.hostPath.path`],
    [source({ hostPath: { path: '/a/../b' } }), `Invalid ${v}.hostPath.path`],
    [source({ hostPath: { path: '/a', type: 'Pipe' } }), `NotSupported ${v}.hostPath.type`],
    [source({ image: { reference: 'registry.example/data:1' } })],
    [source({ image: {} }), `Required ${v}.image.reference`],
    [
      source({ image: { reference: 'x ', pullPolicy: 'No' } }),
      `Invalid ${v}.image.reference`,
      `NotSupported ${v}.image.pullPolicy`,
    ],
    [source({ gitRepo: { repository: 'r', directory: 'd' } })],
    [
      source({ gitRepo: { directory: '/d' } }),
      `Required ${v}.gitRepo.repository`,
      `Invalid ${v}.gitRepo.directory`,
    ],
  ]);
});

describe('volumes from API objects', () => {
  const items = (...list: object[]) => ({ secret: { secretName: 's', items: list } });
  const fieldRef = { fieldPath: 'metadata.labels' };
  testCases([
    [source(items({ key: 'k', path: 'a/b', mode: 0o777 }))],
    [source({ secret: {} }), `Required ${v}.secret.secretName`],
    [source({ secret: { secretName: 's', defaultMode: 0o1000 } }), `Invalid ${v}.secret.defaultMode`],
    [source(items({ path: 'a' })), `Required ${v}.secret.items[0].key`],
    [source(items({ key: 'k' })), `Required ${v}.secret.items[0].path`],
    [source(items({ key: 'k', path: '/a' })), `Invalid ${v}.secret.items[0].path`],
    [source(items({ key: 'k', path: 'a/../b' })), `Invalid ${v}.secret.items[0].path`],
    [source(items({ key: 'k', path: '..data' })), `Invalid ${v}.secret.items[0].path`],
    [source(items({ key: 'k', path: '..' })), `Invalid ${v}.secret.items[0].path`],
    [source(items({ key: 'k', path: 'a', mode: -1 })), `Invalid ${v}.secret.items[0].mode`],
    [source({ configMap: { name: 'm', items: [{ key: 'k', path: 'p' }] } })],
    [
      source({ configMap: { defaultMode: 512 } }),
      `Required ${v}.configMap.name`,
      `Invalid ${v}.configMap.defaultMode`,
    ],
    [source({ downwardAPI: { items: [{ path: 'labels', fieldRef }] } })],
    [
      source({ downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'spec.nodeName' } }] } }),
      `NotSupported ${v}.downwardAPI.items[0].fieldRef.fieldPath`,
    ],
    [source({ downwardAPI: { items: [{ path: 'p' }] } }), `Required ${v}.downwardAPI.items[0]`],
    [
      source({ downwardAPI: { items: [{ path: 'p', resourceFieldRef: { resource: 'limits.cpu' } }] } }),
      `Required ${v}.downwardAPI.items[0].resourceFieldRef.containerName`,
    ],
    [
      source({
        downwardAPI: {
          items: [
            { path: 'p', fieldRef, resourceFieldRef: { resource: 'limits.cpu', containerName: 'app' } },
          ],
        },
      }),
      `Invalid ${v}.downwardAPI.items[0]`,
    ],
    [source({ persistentVolumeClaim: {} }), `Required ${v}.persistentVolumeClaim.claimName`],
    [source({ csi: { driver: 'csi.example.com', nodePublishSecretRef: { name: 's' } } })],
    [
      source({ csi: { nodePublishSecretRef: {} } }),
      `Required ${v}.csi.driver`,
      `Required ${v}.csi.nodePublishSecretRef.name`,
    ],
    [source({ csi: { driver: '-x' } }), `Invalid ${v}.csi.driver`],
  ]);
});

describe('projected volumes', () => {
  const projected = (...sources: object[]) => source({ projected: { sources } });
  const s0 = `${v}.projected.sources[0]`;
  testCases([
    [
      projected(
        { secret: { name: 's', items: [{ key: 'k', path: 'a' }] } },
        { configMap: { name: 'm' } },
        { downwardAPI: { items: [{ path: 'b', fieldRef: { fieldPath: 'metadata.name' } }] } },
        { serviceAccountToken: { path: 'c' } },
        { clusterTrustBundle: { signerName: 'x/y', path: 'd' } },
        { podCertificate: { signerName: 'x/y', keyType: 'ED25519', credentialBundlePath: 'e' } },
      ),
    ],
    [projected({}), `Required ${s0}`],
    [projected({ secret: { name: 's' }, configMap: { name: 'm' } }), `Forbidden ${s0}.configMap`],
    [
      projected(
        { serviceAccountToken: { path: 'a' } },
        { secret: { name: 's', items: [{ key: 'k', path: 'a' }] } },
      ),
      `Invalid ${v}.projected.sources[1]`,
    ],
    [projected({ secret: {} }), `Required ${s0}.secret.name`],
    [projected({ serviceAccountToken: {} }), `Required ${s0}.serviceAccountToken.path`],
    [
      projected({ serviceAccountToken: { path: 'a', expirationSeconds: 599 } }),
      `Invalid ${s0}.serviceAccountToken.expirationSeconds`,
    ],
    [
      projected({ serviceAccountToken: { path: 'a', expirationSeconds: 2 ** 32 + 1 } }),
      `Invalid ${s0}.serviceAccountToken.expirationSeconds`,
    ],
    [projected({ clusterTrustBundle: { path: 'a' } }), `Required ${s0}.clusterTrustBundle`],
    [
      projected({ clusterTrustBundle: { path: 'a', name: 'n', signerName: 'x/y' } }),
      `Invalid ${s0}.clusterTrustBundle`,
    ],
    [
      projected({ podCertificate: { signerName: 'x', keyType: 'DSA', maxExpirationSeconds: 60 } }),
      `Invalid ${s0}.podCertificate.signerName`,
      `NotSupported ${s0}.podCertificate.keyType`,
      `Invalid ${s0}.podCertificate.maxExpirationSeconds`,
      `Required ${s0}.podCertificate`,
    ],
  ]);
});

describe('ephemeral volumes', () => {
  const template = (spec: object, more: object = {}) =>
    source({ ephemeral: { volumeClaimTemplate: { spec, ...more } } });
  const t = `${v}.ephemeral.volumeClaimTemplate`;
  const good = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  testCases([
    [template(good, { metadata: { labels: { a: 'b' } } })],
    [source({ ephemeral: {} }), `Required ${t}`],
    [template({}), `Required ${t}.spec.accessModes`, `Required ${t}.spec.resources.requests[storage]`],
    [template(good, { metadata: { name: 'x' } }), `Forbidden ${t}.metadata.name`],
    [template({ ...good, accessModes: ['Shared'] }), `NotSupported ${t}.spec.accessModes[0]`],
    [
      template({ ...good, resources: { requests: { storage: '0' } } }),
      `Invalid ${t}.spec.resources.requests[storage]`,
    ],
    [
      {
        ...template(good),
        'spec.volumes[1].persistentVolumeClaim.claimName': 'web-v',
      },
      `Invalid ${v}.name`,
    ],
  ]);
});

describe('network and cloud volumes', () => {
  testCases([
    [source({ nfs: { server: 's', path: '/p' } })],
    [source({ nfs: { path: 'p' } }), `Required ${v}.nfs.server`, `Invalid ${v}.nfs.path`],
    [source({ iscsi: { targetPortal: 'p', iqn: 'iqn.2001-04.com.example:disk', lun: 0 } })],
    [source({ iscsi: { targetPortal: 'p', iqn: 'eui.0123456789ABCDEF', lun: 0 } })],
    [
      source({ iscsi: { iqn: 'x', lun: 256 } }),
      `Required ${v}.iscsi.targetPortal`,
      `Invalid ${v}.iscsi.iqn`,
      `Invalid ${v}.iscsi.lun`,
    ],
    [
      source({ iscsi: { targetPortal: 'p', iqn: 'iqn.2001-04.com.example', lun: 0, chapAuthSession: true } }),
      `Required ${v}.iscsi.secretRef`,
    ],
    [source({ fc: { wwids: ['w'] } })],
    [source({ fc: {} }), `Required ${v}.fc.targetWWNs`],
    [source({ fc: { targetWWNs: ['w'] } }), `Required ${v}.fc.lun`],
    [source({ fc: { targetWWNs: ['w'], wwids: ['w'], lun: 1 } }), `Invalid ${v}.fc.targetWWNs`],
    [source({ rbd: {} }), `Required ${v}.rbd.monitors`, `Required ${v}.rbd.image`],
    [source({ cephfs: {} }), `Required ${v}.cephfs.monitors`],
    [source({ glusterfs: {} }), `Required ${v}.glusterfs.endpoints`, `Required ${v}.glusterfs.path`],
    [
      source({ cinder: { secretRef: {} } }),
      `Required ${v}.cinder.volumeID`,
      `Required ${v}.cinder.secretRef.name`,
    ],
    [source({ flocker: {} }), `Required ${v}.flocker`],
    [source({ flocker: { datasetName: 'a/b' } }), `Invalid ${v}.flocker.datasetName`],
    [source({ flexVolume: { driver: 'x/y', options: { a: 'b' } } })],
    [
      source({ flexVolume: { driver: 'x/y', options: { 'a.k8s.io/b': '' } } }),
      `Invalid ${v}.flexVolume.options[a.k8s.io/b]`,
    ],
    [
      source({ awsElasticBlockStore: { partition: 256 } }),
      `Required ${v}.awsElasticBlockStore.volumeID`,
      `Invalid ${v}.awsElasticBlockStore.partition`,
    ],
    [source({ gcePersistentDisk: {} }), `Required ${v}.gcePersistentDisk.pdName`],
    [source({ azureDisk: { diskName: 'd', diskURI: 'https://a.blob.core.windows.net/d.vhd' } })],
    [
      source({ azureDisk: { diskName: 'd', diskURI: '/subscriptions/x' } }),
      `NotSupported ${v}.azureDisk.diskURI`,
    ],
    [source({ azureFile: {} }), `Required ${v}.azureFile.secretName`, `Required ${v}.azureFile.shareName`],
    [source({ vsphereVolume: {} }), `Required ${v}.vsphereVolume.volumePath`],
    [source({ photonPersistentDisk: {} }), `Required ${v}.photonPersistentDisk.pdID`],
    [source({ portworxVolume: {} }), `Required ${v}.portworxVolume.volumeID`],
    [source({ quobyte: { registry: 'a:1,b:2', volume: 'v' } })],
    [source({ quobyte: { registry: 'a', volume: 'v' } }), `Invalid ${v}.quobyte.registry`],
    [
      source({ scaleIO: {} }),
      `Required ${v}.scaleIO.gateway`,
      `Required ${v}.scaleIO.system`,
      `Required ${v}.scaleIO.volumeName`,
    ],
    [source({ storageos: {} }), `Required ${v}.storageos.volumeName`],
  ]);
});

describe('volume mounts', () => {
  const m = 'spec.containers[0].volumeMounts';
  const mount = (fields: object) => ({ [m]: [{ name: 'scratch', mountPath: '/a', ...fields }] });
  const privileged = { 'spec.containers[0].securityContext.privileged': true };
  testCases([
    [mount({})],
    [mount({ mountPath: '/a:b' })],
    [mount({ name: 'x' }), `NotFound ${m}[0].name`],
    [mount({ name: undefined }), `Required ${m}[0].name`],
    [mount({ mountPath: '' }), `Required ${m}[0].mountPath`],
    [
      {
        [m]: [
          { name: 'scratch', mountPath: '/a' },
          { name: 'disk', mountPath: '/a' },
        ],
      },
      `Invalid ${m}[1].mountPath`,
    ],
    [mount({ subPath: 'a/b' })],
    [mount({ subPath: '/a' }), `Invalid ${m}[0].subPath`],
    [mount({ subPath: 'a/..' }), `Invalid ${m}[0].subPath`],
    [mount({ subPathExpr: '$(A)/b' })],
    [mount({ subPathExpr: '../b' }), `Invalid ${m}[0].subPathExpr`],
    [mount({ subPathExpr: 'a', subPath: 'b' }), `Invalid ${m}[0].subPathExpr`],
    [mount({ mountPropagation: 'HostToContainer' })],
    [mount({ mountPropagation: 'Both' }), `NotSupported ${m}[0].mountPropagation`],
    [mount({ mountPropagation: 'Bidirectional' }), `Forbidden ${m}[0].mountPropagation`],
    [{ ...mount({ mountPropagation: 'Bidirectional' }), ...privileged }],
    [mount({ recursiveReadOnly: 'Enabled', readOnly: true, mountPropagation: 'None' })],
    [mount({ recursiveReadOnly: 'Disabled' })],
    [mount({ recursiveReadOnly: 'Enabled' }), `Forbidden ${m}[0].recursiveReadOnly`],
    [
      mount({ recursiveReadOnly: 'IfPossible', readOnly: true, mountPropagation: 'HostToContainer' }),
      `Forbidden ${m}[0].recursiveReadOnly`,
    ],
    [mount({ recursiveReadOnly: 'Yes' }), `NotSupported ${m}[0].recursiveReadOnly`],
  ]);
});

describe('raw devices', () => {
  const d = 'spec.containers[0].volumeDevices';
  const device = (fields: object) => ({ [d]: [{ name: 'disk', devicePath: '/dev/x', ...fields }] });
  testCases([
    [device({})],
    [device({ name: 'scratch' }), `Invalid ${d}[0].name`],
    [device({ name: 'x' }), `NotFound ${d}[0].name`],
    [device({ name: '' }), `Required ${d}[0].name`],
    [device({ devicePath: '' }), `Required ${d}[0].devicePath`],
    [device({ devicePath: '/dev/../x' }), `Invalid ${d}[0].devicePath`],
    [
      {
        [d]: [
          { name: 'disk', devicePath: '/x' },
          { name: 'disk', devicePath: '/x' },
        ],
      },
      `Invalid ${d}[1].name`,
      `Invalid ${d}[1].devicePath`,
    ],
    [
      { ...device({}), 'spec.containers[0].volumeMounts': [{ name: 'disk', mountPath: '/dev/x' }] },
      'Invalid spec.containers[0].volumeMounts[0].name',
      'Invalid spec.containers[0].volumeMounts[0].mountPath',
    ],
    [{ ...device({}), 'spec.hostUsers': false }, `Forbidden ${d}`],
  ]);
});
