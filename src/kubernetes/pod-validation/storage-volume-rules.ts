/** Rules for volumes of network storage and of cloud providers. */
import { type FieldErrors, keyPath } from './field-error.ts';
import { checkNoParent } from './path-rules.ts';
import { isBlank, isEmptyList } from './rule-context.ts';
import type { VolumeKind, VolumeRules } from './volume-rule.ts';

type StorageKind = Exclude<
  VolumeKind,
  | 'emptyDir'
  | 'hostPath'
  | 'image'
  | 'gitRepo'
  | 'secret'
  | 'configMap'
  | 'downwardAPI'
  | 'projected'
  | 'persistentVolumeClaim'
  | 'ephemeral'
  | 'csi'
>;

/** The naming schemes of iSCSI: reversed domain, EUI-64, NAA. */
const iscsiNames = [
  /^iqn\.\d{4}-\d{2}\.[a-z0-9]+(?:[.-][a-z0-9]+)*(?::[^\s_]+)?$/,
  /^eui\.[0-9a-fA-F]{16}$/,
  /^naa\.(?:[0-9a-fA-F]{16}|[0-9a-fA-F]{32})$/,
];

/** Fields that must not be empty. */
function needed<T extends object>(
  errors: FieldErrors,
  path: string,
  source: T,
  ...fields: (keyof T & string)[]
): void {
  for (const field of fields) {
    const value: unknown = source[field];
    if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) {
      errors.required(`${path}.${field}`);
    }
  }
}

function checkPartition(errors: FieldErrors, path: string, partition: number | undefined): void {
  errors.range(`${path}.partition`, partition, 0, 255);
}

function checkSecretRef(errors: FieldErrors, path: string, ref: { name?: string } | undefined): void {
  if (ref && isBlank(ref.name)) errors.required(`${path}.secretRef.name`);
}

function checkIscsiName(errors: FieldErrors, path: string, name: string): void {
  if (name.length <= 223 && iscsiNames.some((scheme) => scheme.test(name))) return;
  errors.invalid(
    path,
    name,
    'must be an iSCSI name: iqn.<year-month>.<domain>[:<name>], eui.<id> or naa.<id>',
  );
}

export const storageVolumeRules: VolumeRules<StorageKind> = {
  nfs({ errors }, path, source) {
    needed(errors, path, source, 'server', 'path');
    if (source.path && !source.path.startsWith('/')) {
      errors.invalid(`${path}.path`, source.path, 'must be an absolute path');
    }
  },
  iscsi({ errors }, path, source) {
    needed(errors, path, source, 'targetPortal', 'iqn');
    if (source.iqn) checkIscsiName(errors, `${path}.iqn`, source.iqn);
    if (source.initiatorName !== undefined) {
      checkIscsiName(errors, `${path}.initiatorName`, source.initiatorName);
    }
    errors.range(`${path}.lun`, source.lun, 0, 255);
    if ((source.chapAuthDiscovery || source.chapAuthSession) && !source.secretRef) {
      errors.required(`${path}.secretRef`, 'CHAP authentication needs a secret');
    }
    checkSecretRef(errors, path, source.secretRef);
  },
  fc({ errors }, path, { targetWWNs, wwids, lun }) {
    const byTarget = !isEmptyList(targetWWNs);
    const byId = !isEmptyList(wwids);
    if (!byTarget && !byId) errors.required(`${path}.targetWWNs`, 'must have one of targetWWNs and wwids');
    if (byTarget && byId)
      errors.invalid(`${path}.targetWWNs`, targetWWNs, 'may not be set together with wwids');
    if (byTarget && lun === undefined) errors.required(`${path}.lun`, 'targetWWNs need a lun');
    errors.range(`${path}.lun`, lun, 0, 255);
  },
  rbd({ errors }, path, source) {
    needed(errors, path, source, 'monitors', 'image');
  },
  cephfs({ errors }, path, source) {
    needed(errors, path, source, 'monitors');
  },
  glusterfs({ errors }, path, source) {
    needed(errors, path, source, 'endpoints', 'path');
  },
  cinder({ errors }, path, source) {
    needed(errors, path, source, 'volumeID');
    checkSecretRef(errors, path, source.secretRef);
  },
  flocker({ errors }, path, { datasetName, datasetUUID }) {
    if (isBlank(datasetName) && isBlank(datasetUUID)) {
      errors.required(path, 'must have one of datasetName and datasetUUID');
    }
    if (!isBlank(datasetName) && !isBlank(datasetUUID)) {
      errors.invalid(path, datasetName, 'may not have both datasetName and datasetUUID');
    }
    if (datasetName?.includes('/'))
      errors.invalid(`${path}.datasetName`, datasetName, "must not contain '/'");
  },
  flexVolume({ errors }, path, source) {
    needed(errors, path, source, 'driver');
    for (const key of Object.keys(source.options ?? {})) {
      const domain = key.includes('/') ? key.slice(0, key.indexOf('/')).toLowerCase() : '';
      if (/(?:^|\.)(?:kubernetes|k8s)\.io$/.test(domain)) {
        errors.invalid(
          keyPath(`${path}.options`, key),
          key,
          'names of kubernetes.io and k8s.io are reserved',
        );
      }
    }
  },
  awsElasticBlockStore({ errors }, path, source) {
    needed(errors, path, source, 'volumeID');
    checkPartition(errors, path, source.partition);
  },
  gcePersistentDisk({ errors }, path, source) {
    needed(errors, path, source, 'pdName');
    checkPartition(errors, path, source.partition);
  },
  azureDisk({ errors }, path, source) {
    needed(errors, path, source, 'diskName', 'diskURI');
    errors.optionalOneOf(`${path}.cachingMode`, source.cachingMode, ['None', 'ReadOnly', 'ReadWrite']);
    errors.optionalOneOf(`${path}.kind`, source.kind, ['Shared', 'Dedicated', 'Managed']);
    if (!source.diskURI) return;
    const isManagedUri = source.diskURI.startsWith('/subscriptions/');
    if (source.kind === 'Managed' && !isManagedUri) {
      errors.notSupported(`${path}.diskURI`, source.diskURI, [
        '/subscriptions/{id}/resourceGroups/…/disks/{name}',
      ]);
    } else if (source.kind && source.kind !== 'Managed' && !/^https?:\/\/\S/.test(source.diskURI)) {
      errors.notSupported(`${path}.diskURI`, source.diskURI, [
        'https://{account}.blob.core.windows.net/…/{disk}.vhd',
      ]);
    }
  },
  azureFile({ errors }, path, source) {
    needed(errors, path, source, 'secretName', 'shareName');
  },
  vsphereVolume({ errors }, path, source) {
    needed(errors, path, source, 'volumePath');
  },
  photonPersistentDisk({ errors }, path, source) {
    needed(errors, path, source, 'pdID');
  },
  portworxVolume({ errors }, path, source) {
    needed(errors, path, source, 'volumeID');
  },
  quobyte({ errors }, path, source) {
    needed(errors, path, source, 'registry', 'volume');
    if ((source.tenant?.length ?? 0) >= 65) errors.tooLong(`${path}.tenant`, 64);
    const hosts = source.registry ? source.registry.split(',') : [];
    if (hosts.some((host) => !/^[^:\s]+:\d+$/.test(host) && !/^\[[^\]\s]+\]:\d+$/.test(host))) {
      errors.invalid(`${path}.registry`, source.registry, 'must be a comma-separated list of <host>:<port>');
    }
  },
  scaleIO({ errors }, path, source) {
    needed(errors, path, source, 'gateway', 'system', 'volumeName');
  },
  storageos({ errors }, path, source) {
    needed(errors, path, source, 'volumeName');
    if (source.volumeName) checkNoParent(errors, `${path}.volumeName`, source.volumeName);
    checkSecretRef(errors, path, source.secretRef);
  },
};
