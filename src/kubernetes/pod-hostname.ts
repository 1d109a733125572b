/**
 * The host name a pod sees, and its cluster domain.
 */
import type { ObjectMeta, PodSpec } from './types.ts';

/** The kernel holds no longer host name. */
const longestKernelName = 64;
const longestLabel = 63;

export interface PodHostname {
  /** Short host name, at most 63 characters (64 with `hostnameOverride`). */
  readonly hostname: string;
  /** `<subdomain>.<namespace>.svc.<cluster domain>`; absent without a subdomain. */
  readonly domain?: string;
  /** What `hostname(1)` prints in the pod: the short name, or the FQDN with `setHostnameAsFQDN`. */
  readonly kernelHostname: string;
}

/** The pod's fully qualified name is longer than the kernel takes; the pod cannot be started. */
export class HostnameTooLongError extends Error {
  override readonly name = 'HostnameTooLongError';

  constructor(fqdn: string) {
    super(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long ` +
        `(${longestKernelName} characters is the max, ${fqdn.length} characters requested)`,
    );
  }
}

/**
 * Host name and domain of a pod that has a network of its own; pods on the host's network use the node's
 * name. Throws {@link HostnameTooLongError}.
 */
export function podHostname(
  pod: { metadata: ObjectMeta & { name: string; namespace: string }; spec: PodSpec },
  clusterDomain: string,
): PodHostname {
  const { spec, metadata } = pod;
  // The override says what the pod sees and nothing about DNS, so it goes without a domain.
  if (spec.hostnameOverride) {
    return { hostname: spec.hostnameOverride, kernelHostname: spec.hostnameOverride };
  }
  const hostname = truncated(spec.hostname || metadata.name);
  if (!spec.subdomain) return { hostname, kernelHostname: hostname };
  const domain = `${spec.subdomain}.${metadata.namespace}.svc.${clusterDomain}`;
  if (!spec.setHostnameAsFQDN) return { hostname, domain, kernelHostname: hostname };
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > longestKernelName) throw new HostnameTooLongError(fqdn);
  return { hostname, domain, kernelHostname: fqdn };
}

function truncated(name: string): string {
  return name.length <= longestLabel ? name : name.slice(0, longestLabel).replace(/[-.]+$/, '');
}
