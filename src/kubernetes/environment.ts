/**
 * A container's environment: envFrom in order, then env in order, then service variables for names not yet
 * taken. It is built anew at every start of a container.
 */
import { type PodFacts, podFieldValue, resourceFieldValue } from './downward-fields.ts';
import { lookUpEnvFile } from './env-file.ts';
import { expand } from './expansion.ts';
import type { Container, EnvVar, Pod } from './types.ts';

/** Where referenced values come from. Each answers `undefined` for what does not exist. */
export interface EnvironmentSources {
  /** The `data` of a config map. */
  configMap(namespace: string, name: string): Readonly<Record<string, string>> | undefined;
  /** The decoded `data` of a secret. */
  secret(namespace: string, name: string): Readonly<Record<string, string>> | undefined;
  /** The text of a file in one of the pod's emptyDir volumes. */
  envFile(volumeName: string, path: string): string | undefined;
}

/** What a pod without an API server has: no config maps, no secrets, no env files. */
export const noEnvironmentSources: EnvironmentSources = {
  configMap: () => undefined,
  secret: () => undefined,
  envFile: () => undefined,
};

/**
 * The environment cannot be made, so the container waits with reason `CreateContainerConfigError`; `message`
 * is the text shown there.
 */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

export interface EnvironmentInput {
  readonly pod: Pod;
  readonly container: Container;
  readonly facts: PodFacts;
  readonly sources: EnvironmentSources;
  /** Variables of the services the pod can see. */
  readonly serviceVariables?: ReadonlyMap<string, string>;
}

/** Name to value, in the order the names were first set. Throws {@link EnvironmentError}. */
export function buildEnvironment(input: EnvironmentInput): Map<string, string> {
  const { container, serviceVariables } = input;
  const variables = new Map<string, string>();
  addEnvFrom(variables, input);
  const lookup = (name: string) => variables.get(name) ?? serviceVariables?.get(name);
  for (const entry of container.env ?? []) {
    const value = entry.value ? expand(entry.value, lookup) : referenced(entry, input);
    if (value !== undefined) variables.set(entry.name, value);
  }
  for (const [name, value] of serviceVariables ?? []) if (!variables.has(name)) variables.set(name, value);
  return variables;
}

function addEnvFrom(variables: Map<string, string>, { container, pod, sources }: EnvironmentInput): void {
  const { namespace } = pod.metadata;
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    const [kind, reference] = configMapRef
      ? (['configmap', configMapRef] as const)
      : (['secret', secretRef] as const);
    if (!reference) continue;
    const name = reference.name ?? '';
    const data = kind === 'configmap' ? sources.configMap(namespace, name) : sources.secret(namespace, name);
    if (!data) {
      if (reference.optional) continue;
      throw new EnvironmentError(notFound(kind, name));
    }
    for (const [key, value] of Object.entries(data)) variables.set(`${prefix}${key}`, value);
  }
}

/** The value an entry refers to; `undefined` when an optional reference leads nowhere. */
function referenced(entry: EnvVar, input: EnvironmentInput): string | undefined {
  const source = entry.valueFrom;
  if (!source) return '';
  const { pod, container, facts, sources } = input;
  const { namespace } = pod.metadata;
  try {
    if (source.fieldRef) return podFieldValue(pod, source.fieldRef.fieldPath, facts);
    if (source.resourceFieldRef) {
      return resourceFieldValue(pod, container, source.resourceFieldRef, facts.nodeAllocatable);
    }
  } catch (error) {
    throw new EnvironmentError((error as Error).message, { cause: error });
  }
  if (source.configMapKeyRef) {
    const { name = '', key, optional } = source.configMapKeyRef;
    return keyOf({ kind: 'configmap', namespace, name, key, optional }, sources.configMap(namespace, name));
  }
  if (source.secretKeyRef) {
    const { name = '', key, optional } = source.secretKeyRef;
    return keyOf({ kind: 'secret', namespace, name, key, optional }, sources.secret(namespace, name));
  }
  if (source.fileKeyRef) return fileKey(source.fileKeyRef, sources);
  return '';
}

interface KeyReference {
  kind: 'configmap' | 'secret';
  namespace: string;
  name: string;
  key: string;
  optional: boolean | undefined;
}

function keyOf(
  reference: KeyReference,
  data: Readonly<Record<string, string>> | undefined,
): string | undefined {
  const { kind, namespace, name, key, optional } = reference;
  if (data && Object.hasOwn(data, key)) return data[key];
  if (optional) return undefined;
  if (!data) throw new EnvironmentError(notFound(kind, name));
  const title = kind === 'configmap' ? 'ConfigMap' : 'Secret';
  throw new EnvironmentError(`couldn't find key ${key} in ${title} ${namespace}/${name}`);
}

function fileKey(
  reference: NonNullable<NonNullable<EnvVar['valueFrom']>['fileKeyRef']>,
  sources: EnvironmentSources,
): string | undefined {
  const { volumeName, path, key, optional } = reference;
  const text = sources.envFile(volumeName, path);
  let value: string | undefined;
  try {
    value = text === undefined ? undefined : lookUpEnvFile(text, key);
  } catch (error) {
    throw new EnvironmentError((error as Error).message, { cause: error });
  }
  if (value) return value;
  if (optional) return undefined;
  const where = `file ${JSON.stringify(path)} of volume ${JSON.stringify(volumeName)}`;
  throw new EnvironmentError(
    text === undefined
      ? `couldn't find ${where}`
      : `couldn't find a value of key ${JSON.stringify(key)} in ${where}`,
  );
}

const notFound = (kind: string, name: string) => `${kind} ${JSON.stringify(name)} not found`;
