/** Rules for environment variables, and for the pod fields and resources that they (and volumes) can show. */
import { checkConfigMapKey, checkEnvVarName, checkQualifiedName } from '../names.ts';
import { tryParseQuantity } from '../quantity.ts';
import { isHugePages } from './aggregate-resources.ts';
import type { FieldErrors } from './field-error.ts';
import { checkDescendingPath } from './path-rules.ts';
import { isBlank, type RuleContext } from './rule-context.ts';
import type { Container, EnvVar } from './unvalidated-pod.ts';

type EnvSource = NonNullable<EnvVar['valueFrom']>;
export type FieldRef = NonNullable<EnvSource['fieldRef']>;
export type ResourceFieldRef = NonNullable<EnvSource['resourceFieldRef']>;

/** Fields of a pod that a variable can show. */
const envFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];

/** Fields of a pod that a file of a volume can show. */
const volumeFields = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];

const shownResources = ['cpu', 'memory', 'ephemeral-storage'].flatMap((name) => [
  `limits.${name}`,
  `requests.${name}`,
]);
const cpuDivisors = new Set(['0', '1m', '1']);
const byteDivisors = new Set('0 1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei'.split(' '));
/** A key in a file of variables. */
const maxFileKeyLength = 128;

export function checkEnv(context: RuleContext, path: string, env: readonly EnvVar[] | undefined): void {
  const { errors } = context;
  env?.forEach((variable, index) => {
    const at = `${path}[${index}]`;
    if (isBlank(variable.name)) errors.required(`${at}.name`);
    else errors.problems(`${at}.name`, variable.name, checkEnvVarName(variable.name));
    if (variable.valueFrom) checkEnvSource(context, `${at}.valueFrom`, variable, variable.valueFrom);
  });
}

function checkEnvSource(context: RuleContext, path: string, variable: EnvVar, source: EnvSource): void {
  const { errors } = context;
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  const given = Object.values(source).filter((value) => value !== undefined).length;
  if (given === 0) {
    errors.invalid(
      path,
      source,
      'must have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef',
    );
  } else if (given > 1) errors.invalid(path, source, 'must not have more than one source');
  if (given > 0 && !isBlank(variable.value)) {
    errors.invalid(path, source, 'may not be set together with a value');
  }
  if (fieldRef) checkFieldRef(errors, `${path}.fieldRef`, fieldRef, 'env');
  if (resourceFieldRef) {
    checkResourceFieldRef(errors, `${path}.resourceFieldRef`, resourceFieldRef, 'env');
  }
  if (configMapKeyRef) checkKeyRef(errors, `${path}.configMapKeyRef`, configMapKeyRef);
  if (secretKeyRef) checkKeyRef(errors, `${path}.secretKeyRef`, secretKeyRef);
  if (fileKeyRef) checkFileKeyRef(context, `${path}.fileKeyRef`, fileKeyRef);
}

function checkKeyRef(errors: FieldErrors, path: string, ref: { name?: string; key?: string }): void {
  if (isBlank(ref.name)) errors.required(`${path}.name`);
  if (isBlank(ref.key)) errors.required(`${path}.key`);
  else if (ref.key !== undefined) errors.problems(`${path}.key`, ref.key, checkConfigMapKey(ref.key));
}

function checkFileKeyRef(
  context: RuleContext,
  path: string,
  ref: NonNullable<EnvSource['fileKeyRef']>,
): void {
  const { errors, volumes } = context;
  if (isBlank(ref.key)) errors.required(`${path}.key`);
  else {
    errors.problems(`${path}.key`, ref.key, checkEnvVarName(ref.key));
    if (ref.key.length > maxFileKeyLength) errors.tooLong(`${path}.key`, maxFileKeyLength);
  }
  if (isBlank(ref.path)) errors.required(`${path}.path`);
  else checkDescendingPath(errors, `${path}.path`, ref.path);
  if (isBlank(ref.volumeName)) {
    errors.required(`${path}.volumeName`);
    return;
  }
  const volume = volumes.get(ref.volumeName);
  if (!volume) errors.notFound(`${path}.volumeName`, ref.volumeName);
  else if (!volume.emptyDir) {
    errors.invalid(`${path}.volumeName`, ref.volumeName, 'must be a volume of type emptyDir');
  }
}

export function checkEnvFrom(errors: FieldErrors, path: string, envFrom: Container['envFrom']): void {
  envFrom?.forEach(({ prefix, configMapRef, secretRef }, index) => {
    const at = `${path}[${index}]`;
    if (prefix) errors.problems(`${at}.prefix`, prefix, checkEnvVarName(prefix));
    if (configMapRef && isBlank(configMapRef.name)) errors.required(`${at}.configMapRef.name`);
    if (secretRef && isBlank(secretRef.name)) errors.required(`${at}.secretRef.name`);
    if (!configMapRef && !secretRef) {
      errors.invalid(at, envFrom[index], 'must have one of configMapRef or secretRef');
    } else if (configMapRef && secretRef) {
      errors.invalid(at, envFrom[index], 'must not have both configMapRef and secretRef');
    }
  });
}

/** `metadata.labels['key']` taken apart. */
function subscript(fieldPath: string): { field: string; key: string } | undefined {
  const match = /^(metadata\.(?:labels|annotations))\['(.*)'\]$/s.exec(fieldPath);
  return match ? { field: match[1]!, key: match[2]! } : undefined;
}

export function checkFieldRef(
  errors: FieldErrors,
  path: string,
  ref: FieldRef,
  where: 'env' | 'volume',
): void {
  if (isBlank(ref.apiVersion)) errors.required(`${path}.apiVersion`);
  if (isBlank(ref.fieldPath)) {
    errors.required(`${path}.fieldPath`);
    return;
  }
  if (ref.apiVersion && ref.apiVersion !== 'v1') {
    errors.invalid(`${path}.apiVersion`, ref.apiVersion, 'must be v1');
    return;
  }
  const keyed = subscript(ref.fieldPath);
  if (keyed) {
    const key = keyed.field === 'metadata.annotations' ? keyed.key.toLowerCase() : keyed.key;
    errors.problems(`${path}.fieldPath`, keyed.key, checkQualifiedName(key));
    return;
  }
  const supported = where === 'env' ? envFields : volumeFields;
  errors.optionalOneOf(`${path}.fieldPath`, ref.fieldPath, [
    ...supported,
    "metadata.annotations['<KEY>']",
    "metadata.labels['<KEY>']",
  ]);
}

export function checkResourceFieldRef(
  errors: FieldErrors,
  path: string,
  ref: ResourceFieldRef,
  where: 'env' | 'volume',
): void {
  if (where === 'volume' && isBlank(ref.containerName)) errors.required(`${path}.containerName`);
  if (isBlank(ref.resource)) {
    errors.required(`${path}.resource`);
    return;
  }
  const name = ref.resource.replace(/^(?:limits|requests)\./, '');
  if (!shownResources.includes(ref.resource) && (name === ref.resource || !isHugePages(name))) {
    errors.notSupported(`${path}.resource`, ref.resource, shownResources);
    return;
  }
  checkDivisor(errors, `${path}.divisor`, name, ref.divisor);
}

/** The unit a resource is shown in: canonical texts can be compared as they are. */
function checkDivisor(
  errors: FieldErrors,
  path: string,
  resource: string,
  divisor: string | undefined,
): void {
  if (divisor === undefined || tryParseQuantity(divisor)?.nano === 0n) return;
  const allowed = resource === 'cpu' ? cpuDivisors : byteDivisors;
  if (allowed.has(divisor)) return;
  const shown = [...allowed].filter((unit) => unit !== '0').join(', ');
  errors.invalid(path, divisor, `the divisor of ${resource} must be one of ${shown}`);
}
