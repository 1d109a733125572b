/**
 * A credential for an image registry and where it comes from. Pure. The record of pulled images keeps the
 * origin and a hash, never the credential itself.
 */
import { contentHash } from '../kubernetes/hash.ts';

/** CRI's `AuthConfig`: what a runtime is given to log in with. Absent parts are empty texts. */
export interface RegistryCredential {
  readonly username: string;
  readonly password: string;
  /** `username:password` in base64, where a runtime wants that instead. */
  readonly auth: string;
  readonly serverAddress: string;
  /** A refresh token of the registry's own login service. */
  readonly identityToken: string;
  /** A bearer token for the registry itself. */
  readonly registryToken: string;
}

/**
 * Whom a credential belongs to. One of the node opens an image for every pod, one of a Secret or of a
 * ServiceAccount only for pods that have it too.
 */
export type CredentialOrigin =
  | { readonly kind: 'node' }
  | { readonly kind: 'secret'; readonly uid: string; readonly namespace: string; readonly name: string }
  | {
      readonly kind: 'serviceAccount';
      readonly uid: string;
      readonly namespace: string;
      readonly name: string;
    };

export interface PullCredential {
  readonly credential: RegistryCredential;
  readonly origin: CredentialOrigin;
  /** Equal for equal credentials; says nothing about them otherwise. */
  readonly hash: string;
}

const nothing: RegistryCredential = {
  username: '',
  password: '',
  auth: '',
  serverAddress: '',
  identityToken: '',
  registryToken: '',
};

export function registryCredential(parts: Partial<RegistryCredential>): RegistryCredential {
  return { ...nothing, ...parts };
}

export function isEmptyCredential(credential: RegistryCredential): boolean {
  return Object.values(credential).every((part) => part === '');
}

export function pullCredential(credential: RegistryCredential, origin: CredentialOrigin): PullCredential {
  return { credential, origin, hash: contentHash(credential) };
}
