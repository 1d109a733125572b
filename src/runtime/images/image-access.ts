/**
 * Who may use an image that is on the node already. Pure. Without such rules, a pod could run an image that
 * only somebody else's secret opens, merely because that pod came first (gate
 * `KubeletEnsureSecretPulledImages`).
 */
import { tryParseImageReference } from '../../kubernetes/image-reference.ts';
import type { AuthConfig } from '../generated/cri.ts';

/** `imagePullCredentialsVerificationPolicy` */
export type VerificationPolicy =
  | 'NeverVerify'
  | 'NeverVerifyPreloadedImages'
  | 'NeverVerifyAllowlistedImages'
  | 'AlwaysVerify';

/** Names an object of the API and one life of it. */
export interface Coordinates {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** A credential, whom it belongs to, and a hash that is equal for equal credentials. */
export interface PullCredential {
  readonly credential: AuthConfig;
  readonly origin: { readonly kind: 'node' } | ({ readonly kind: 'secret' | 'serviceAccount' } & Coordinates);
  readonly hash: string;
}

/** What has opened an image in the registry so far; the shape in which `ImagePulledRecord` keeps it. */
export interface ImageOpeners {
  /** It came without credentials, or with those of the node: every pod may use it. */
  readonly nodePodsAccessible?: boolean;
  readonly kubernetesSecrets?: readonly (Coordinates & { readonly credentialHash: string })[];
  readonly kubernetesServiceAccounts?: readonly Coordinates[];
}

/** Openers kept of each kind; the oldest are forgotten, which costs no more than a pull. */
const mostOpeners = 100;

/** Whether access to an image must be shown. `pulledByAgent`: it came onto the node by a pull of ours. */
export function needsVerification(
  image: string,
  pulledByAgent: boolean,
  rules: { readonly policy: VerificationPolicy; readonly allowlist: readonly string[] },
): boolean {
  switch (rules.policy) {
    case 'NeverVerify':
      return false;
    case 'NeverVerifyPreloadedImages':
      return pulledByAgent;
    case 'NeverVerifyAllowlistedImages':
      return pulledByAgent || !isListed(image, rules.allowlist);
    case 'AlwaysVerify':
      return true;
  }
}

function isListed(image: string, allowlist: readonly string[]): boolean {
  const names = [repositoryOf(image), fullRepositoryOf(image)];
  return allowlist.some((pattern) =>
    names.some((name) => (pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern)),
  );
}

/** The image as written, without tag and digest: the key under which openers are kept. */
export function repositoryOf(image: string): string {
  return image.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
}

function fullRepositoryOf(image: string): string {
  const reference = tryParseImageReference(image);
  return reference ? `${reference.domain}/${reference.path}` : repositoryOf(image);
}

/**
 * The credential of a pod by which it may use an image, `'everybody'` when it needs none, undefined when it
 * has none. A Secret that has opened the image keeps doing so when its content changes, and so does equal
 * content in another Secret.
 */
export function openerOf(
  openers: ImageOpeners,
  credentials: readonly PullCredential[],
): PullCredential | 'everybody' | undefined {
  if (openers.nodePodsAccessible) return 'everybody';
  const { kubernetesSecrets: secrets = [], kubernetesServiceAccounts: accounts = [] } = openers;
  return credentials.find(({ origin, hash }) => {
    if (origin.kind === 'node') return false;
    if (origin.kind === 'serviceAccount') return accounts.some((account) => isSame(account, origin));
    return secrets.some((secret) => secret.credentialHash === hash || isSame(secret, origin));
  });
}

/** Openers with one more; `undefined` stands for a pull without credentials. The same object when it is known. */
export function withOpener(openers: ImageOpeners, credential: PullCredential | undefined): ImageOpeners {
  const { kubernetesSecrets: secrets = [], kubernetesServiceAccounts: accounts = [] } = openers;
  if (openers.nodePodsAccessible) return openers;
  // Open to all: who else could open it no longer matters.
  if (credential === undefined || credential.origin.kind === 'node') return { nodePodsAccessible: true };
  const { uid, namespace, name, kind } = credential.origin;
  const coordinates = { uid, namespace, name };
  if (kind === 'serviceAccount') {
    if (accounts.some((account) => isSame(account, coordinates))) return openers;
    return { ...openers, kubernetesServiceAccounts: [...accounts, coordinates].slice(-mostOpeners) };
  }
  const { hash: credentialHash } = credential;
  if (secrets.some((secret) => isSame(secret, coordinates) && secret.credentialHash === credentialHash)) {
    return openers;
  }
  const others = secrets.filter((secret) => !isSame(secret, coordinates));
  return {
    ...openers,
    kubernetesSecrets: [...others, { ...coordinates, credentialHash }].slice(-mostOpeners),
  };
}

function isSame(a: Coordinates, b: Coordinates): boolean {
  return a.uid === b.uid && a.namespace === b.namespace && a.name === b.name;
}
