/** Rules for volumes that show objects of the API: secrets, config maps, tokens, the pod itself, claims. */
import { checkDns1123Label, checkDns1123Subdomain, checkQualifiedName } from '../names.ts';
import { tryParseQuantity } from '../quantity.ts';
import { checkFieldRef, checkResourceFieldRef } from './env-rules.ts';
import { type FieldErrors, keyPath } from './field-error.ts';
import { checkLabelSelector, checkLabels } from './label-rules.ts';
import { checkAnnotations } from './metadata-rules.ts';
import { checkFileMode, checkProjectedPath } from './path-rules.ts';
import { isBlank, isEmptyList, type RuleContext } from './rule-context.ts';
import type { Volume } from './unvalidated-pod.ts';
import type { VolumeRules } from './volume-rule.ts';

type KeyToPath = NonNullable<NonNullable<Volume['secret']>['items']>[number];
type DownwardItem = NonNullable<NonNullable<Volume['downwardAPI']>['items']>[number];
type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number];
type ClaimTemplate = NonNullable<NonNullable<Volume['ephemeral']>['volumeClaimTemplate']>;

const minTokenSeconds = 600;
const maxTokenSeconds = 2 ** 32;
const minCertificateSeconds = 3600;
const maxCertificateSeconds = 91 * 24 * 3600;
const certificateKeyTypes = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];
const accessModes = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'];

export const apiVolumeRules: VolumeRules<
  'secret' | 'configMap' | 'downwardAPI' | 'projected' | 'persistentVolumeClaim' | 'ephemeral' | 'csi'
> = {
  secret({ errors }, path, { secretName, defaultMode, items }) {
    if (isBlank(secretName)) errors.required(`${path}.secretName`);
    checkFileMode(errors, `${path}.defaultMode`, defaultMode);
    checkItems(errors, `${path}.items`, items);
  },
  configMap({ errors }, path, { name, defaultMode, items }) {
    if (isBlank(name)) errors.required(`${path}.name`);
    checkFileMode(errors, `${path}.defaultMode`, defaultMode);
    checkItems(errors, `${path}.items`, items);
  },
  downwardAPI({ errors }, path, { defaultMode, items }) {
    checkFileMode(errors, `${path}.defaultMode`, defaultMode);
    items?.forEach((item, index) => checkDownwardItem(errors, `${path}.items[${index}]`, item));
  },
  projected(context, path, { defaultMode, sources }) {
    checkFileMode(context.errors, `${path}.defaultMode`, defaultMode);
    const taken = new Set<string>();
    sources?.forEach((source, index) => checkProjection(context, `${path}.sources[${index}]`, source, taken));
  },
  persistentVolumeClaim({ errors }, path, { claimName }) {
    if (isBlank(claimName)) errors.required(`${path}.claimName`);
  },
  ephemeral({ errors }, path, { volumeClaimTemplate }) {
    if (!volumeClaimTemplate) errors.required(`${path}.volumeClaimTemplate`);
    else checkClaimTemplate(errors, `${path}.volumeClaimTemplate`, volumeClaimTemplate);
  },
  csi({ errors }, path, { driver, nodePublishSecretRef }) {
    if (isBlank(driver)) errors.required(`${path}.driver`);
    else {
      if (driver.length > 63) errors.tooLong(`${path}.driver`, 63);
      errors.problems(`${path}.driver`, driver, checkDns1123Subdomain(driver.toLowerCase()));
    }
    if (!nodePublishSecretRef) return;
    const name = nodePublishSecretRef.name;
    if (isBlank(name)) errors.required(`${path}.nodePublishSecretRef.name`);
    else if (name) errors.problems(`${path}.nodePublishSecretRef.name`, name, checkDns1123Subdomain(name));
  },
};

function checkItems(errors: FieldErrors, path: string, items: readonly KeyToPath[] | undefined): void {
  items?.forEach((item, index) => {
    const at = `${path}[${index}]`;
    if (isBlank(item.key)) errors.required(`${at}.key`);
    checkFilePath(errors, `${at}.path`, item.path);
    checkFileMode(errors, `${at}.mode`, item.mode);
  });
}

function checkFilePath(errors: FieldErrors, path: string, file: string | undefined): void {
  if (file === undefined || file === '') errors.required(path);
  else checkProjectedPath(errors, path, file);
}

function checkDownwardItem(errors: FieldErrors, path: string, item: DownwardItem): void {
  checkFilePath(errors, `${path}.path`, item.path);
  checkFileMode(errors, `${path}.mode`, item.mode);
  if (item.fieldRef && item.resourceFieldRef) {
    errors.invalid(path, item, 'may not have both fieldRef and resourceFieldRef');
  } else if (item.fieldRef) checkFieldRef(errors, `${path}.fieldRef`, item.fieldRef, 'volume');
  else if (item.resourceFieldRef) {
    checkResourceFieldRef(errors, `${path}.resourceFieldRef`, item.resourceFieldRef, 'volume');
  } else errors.required(path, 'must have one of fieldRef and resourceFieldRef');
}

type ProjectionRule<K extends keyof Projection> = (
  errors: FieldErrors,
  path: string,
  source: NonNullable<Projection[K]>,
) => (string | undefined)[];

type ProjectionRules<K extends keyof Projection> = { readonly [Kind in K]: ProjectionRule<Kind> };

/** Each rule gives the paths that the source writes, for finding two sources that write the same one. */
const projectionRules: ProjectionRules<keyof Projection> = {
  secret(errors, path, { name, items }) {
    if (isBlank(name)) errors.required(`${path}.name`);
    checkItems(errors, `${path}.items`, items);
    return items?.map((item) => item.path) ?? [];
  },
  configMap(errors, path, { name, items }) {
    if (isBlank(name)) errors.required(`${path}.name`);
    checkItems(errors, `${path}.items`, items);
    return items?.map((item) => item.path) ?? [];
  },
  downwardAPI(errors, path, { items }) {
    items?.forEach((item, index) => checkDownwardItem(errors, `${path}.items[${index}]`, item));
    return items?.map((item) => item.path) ?? [];
  },
  serviceAccountToken(errors, path, { path: file, expirationSeconds }) {
    checkFilePath(errors, `${path}.path`, file);
    const at = `${path}.expirationSeconds`;
    if (expirationSeconds !== undefined && expirationSeconds < minTokenSeconds) {
      errors.invalid(at, expirationSeconds, `must be at least ${minTokenSeconds} (10 minutes)`);
    } else if (expirationSeconds !== undefined && expirationSeconds > maxTokenSeconds) {
      errors.invalid(at, expirationSeconds, `must be at most ${maxTokenSeconds}`);
    }
    return [file];
  },
  clusterTrustBundle(errors, path, { name, signerName, labelSelector, path: file }) {
    if (name !== undefined && signerName !== undefined) {
      errors.invalid(path, signerName, 'may not have both name and signerName');
    } else if (name !== undefined) {
      if (name === '') errors.required(`${path}.name`);
      if (labelSelector)
        errors.invalid(`${path}.labelSelector`, labelSelector, 'goes with signerName, not name');
    } else if (signerName !== undefined) {
      if (signerName === '') errors.required(`${path}.signerName`);
      checkLabelSelector(errors, `${path}.labelSelector`, labelSelector);
    } else errors.required(path, 'must have one of name and signerName');
    checkFilePath(errors, `${path}.path`, file);
    return [file];
  },
  podCertificate: checkPodCertificate,
};

function checkProjection(context: RuleContext, path: string, source: Projection, taken: Set<string>): void {
  const { errors } = context;
  const kinds = Object.keys(projectionRules) as (keyof Projection)[];
  const [first, ...others] = kinds.filter((kind) => source[kind] !== undefined);
  if (first === undefined) {
    errors.required(path, `must have one of ${kinds.join(', ')}`);
    return;
  }
  for (const kind of others) {
    errors.forbidden(`${path}.${kind}`, 'may not specify more than 1 volume type per source');
  }
  for (const file of applyProjection(errors, `${path}.${first}`, first, source)) {
    if (file === undefined || file === '') continue;
    if (taken.has(file)) errors.invalid(path, file, 'another source of this volume writes the same path');
    taken.add(file);
  }
}

function applyProjection<K extends keyof Projection>(
  errors: FieldErrors,
  path: string,
  kind: K,
  source: Pick<Projection, K>,
): (string | undefined)[] {
  const part = source[kind];
  const rule: ProjectionRule<K> = projectionRules[kind];
  return part ? rule(errors, path, part) : [];
}

function checkPodCertificate(
  errors: FieldErrors,
  path: string,
  source: NonNullable<Projection['podCertificate']>,
): (string | undefined)[] {
  if (isBlank(source.signerName)) errors.required(`${path}.signerName`);
  else if (!/^[^/]+\/[^/]+$/.test(source.signerName)) {
    errors.invalid(`${path}.signerName`, source.signerName, 'must be <domain>/<name>');
  }
  errors.oneOf(`${path}.keyType`, source.keyType, certificateKeyTypes);
  errors.range(
    `${path}.maxExpirationSeconds`,
    source.maxExpirationSeconds,
    minCertificateSeconds,
    maxCertificateSeconds,
  );
  const files = ['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const;
  for (const field of files) {
    const file = source[field];
    if (file) checkProjectedPath(errors, `${path}.${field}`, file);
  }
  const written = files.map((field) => source[field]);
  if (written.every((file) => !file)) {
    errors.required(path, `must have at least one of ${files.join(', ')}`);
  }
  for (const key of Object.keys(source.userAnnotations ?? {})) {
    errors.problems(keyPath(`${path}.userAnnotations`, key), key, checkQualifiedName(key.toLowerCase()));
  }
  return written;
}

/** The claim that is made for an ephemeral volume. */
function checkClaimTemplate(errors: FieldErrors, path: string, template: ClaimTemplate): void {
  const { metadata, spec } = template;
  for (const field of Object.keys(metadata ?? {})) {
    if (field !== 'labels' && field !== 'annotations') {
      errors.forbidden(`${path}.metadata.${field}`, 'only labels and annotations may be set');
    }
  }
  checkLabels(errors, `${path}.metadata.labels`, metadata?.labels);
  checkAnnotations(errors, `${path}.metadata.annotations`, metadata?.annotations);
  const at = `${path}.spec`;
  if (isEmptyList(spec?.accessModes))
    errors.required(`${at}.accessModes`, 'at least 1 access mode is required');
  spec?.accessModes?.forEach((mode, index) => {
    errors.optionalOneOf(`${at}.accessModes[${index}]`, mode, accessModes);
  });
  if ((spec?.accessModes?.length ?? 0) > 1 && spec?.accessModes?.includes('ReadWriteOncePod')) {
    errors.forbidden(`${at}.accessModes`, 'ReadWriteOncePod may not be combined with other access modes');
  }
  const storage = spec?.resources?.requests?.['storage'];
  if (storage === undefined) errors.required(keyPath(`${at}.resources.requests`, 'storage'));
  else if ((tryParseQuantity(storage)?.nano ?? 0n) <= 0n) {
    errors.invalid(keyPath(`${at}.resources.requests`, 'storage'), storage, 'must be greater than 0');
  }
  errors.optionalOneOf(`${at}.volumeMode`, spec?.volumeMode, ['Filesystem', 'Block']);
  if (spec?.storageClassName) {
    errors.problems(
      `${at}.storageClassName`,
      spec.storageClassName,
      checkDns1123Subdomain(spec.storageClassName),
    );
  }
  checkLabelSelector(errors, `${at}.selector`, spec?.selector);
  const source = spec?.dataSource;
  if (source) {
    if (isBlank(source.kind)) errors.required(`${at}.dataSource.kind`);
    if (isBlank(source.name)) errors.required(`${at}.dataSource.name`);
  }
  const sourceRef = spec?.dataSourceRef;
  if (sourceRef?.namespace) {
    errors.problems(
      `${at}.dataSourceRef.namespace`,
      sourceRef.namespace,
      checkDns1123Label(sourceRef.namespace),
    );
  }
}
