/** The user a client certificate stands for: common name → user name, organizations → groups. */
import type { X509Certificate } from 'node:crypto';
import type { User } from './route.ts';

/** Undefined for a certificate without a common name. */
export function certificateUser(leaf: X509Certificate): User | undefined {
  const { subject, fingerprint256 } = leaf.toLegacyObject() as {
    subject: Readonly<Record<string, string | string[] | undefined>>;
    fingerprint256: string;
  };
  const name = valuesOf(subject['CN']).at(-1) ?? '';
  if (name === '') return undefined;
  const fingerprint = fingerprint256.replaceAll(':', '').toLowerCase();
  return {
    name,
    groups: valuesOf(subject['O']),
    extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
  };
}

function valuesOf(attribute: string | string[] | undefined): string[] {
  if (attribute === undefined) return [];
  return Array.isArray(attribute) ? attribute : [attribute];
}
