/** Who a node is in its certificates. */
import type { CertificateSubject } from './certificate-request.ts';

export const nodeOrganization = 'system:nodes';

/** `O=system:nodes, CN=system:node:<name>`. */
export function nodeSubject(nodeName: string): CertificateSubject {
  return { commonName: `system:node:${nodeName}`, organizations: [nodeOrganization] };
}
