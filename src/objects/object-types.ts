/** The API objects that pods refer to, as they are on the wire. */
import type { V1ConfigMap, V1RuntimeClass, V1Secret, V1Service } from '@kubernetes/client-node';
import type { Reflector, ReflectorOptions } from '../client/api-client.ts';
import type { Wire } from '../kubernetes/types.ts';

export type ConfigMap = Wire<V1ConfigMap>;
export type Secret = Wire<V1Secret>;
export type Service = Wire<V1Service>;
export type RuntimeClass = Wire<V1RuntimeClass>;

/** Kinds of objects that are looked up one by one, each by its name. */
export interface ObjectKinds {
  readonly configMap: ConfigMap;
  readonly secret: Secret;
}

export type ObjectKind = keyof ObjectKinds;

/** One object that a pod refers to; it need not exist. */
export interface ObjectReference {
  readonly kind: ObjectKind;
  readonly namespace: string;
  readonly name: string;
}

/** What the API calls a kind: in paths, and in the texts for people. */
export const kindNames: Readonly<Record<ObjectKind, { readonly plural: string; readonly singular: string }>> =
  {
    configMap: { plural: 'configmaps', singular: 'configmap' },
    secret: { plural: 'secrets', singular: 'secret' },
  };

/** Makes a cache that follows the server once it is run. */
export type CreateReflector = <T>(options: ReflectorOptions<T>) => Reflector<T>;

/**
 * The API server could not be asked for an object or refused to show it, so whether it exists is not known.
 * An object that does not exist is an answer, not an error.
 */
export class ObjectUnavailableError extends Error {
  override readonly name = 'ObjectUnavailableError';
  readonly reference: ObjectReference;

  constructor(reference: ObjectReference, problem: string, options?: ErrorOptions) {
    const { kind, namespace, name } = reference;
    super(`cannot get ${kindNames[kind].singular} "${namespace}/${name}": ${problem}`, options);
    this.reference = reference;
  }
}
