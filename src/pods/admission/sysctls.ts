/**
 * Admission of kernel parameters: those that cannot hurt other pods are free, further ones the operator
 * allows, and none may reach the host's own namespaces.
 */
import { dottedSysctl } from '../../kubernetes/sysctl-name.ts';
import type { AdmissionHandler } from './admission.ts';

/** Parameters any pod may set, with the kernel from which on they belong to a namespace. */
const safeSysctls: ReadonlyMap<string, string> = new Map([
  ['kernel.shm_rmid_forced', ''],
  ['net.ipv4.ip_local_port_range', ''],
  ['net.ipv4.tcp_syncookies', ''],
  ['net.ipv4.ping_group_range', ''],
  ['net.ipv4.ip_unprivileged_port_start', ''],
  ['net.ipv4.ip_local_reserved_ports', '3.16'],
  ['net.ipv4.tcp_keepalive_time', '4.5'],
  ['net.ipv4.tcp_fin_timeout', '4.6'],
  ['net.ipv4.tcp_keepalive_intvl', '4.5'],
  ['net.ipv4.tcp_keepalive_probes', '4.5'],
  ['net.ipv4.tcp_rmem', '4.15'],
  ['net.ipv4.tcp_wmem', '4.15'],
]);

/** Refuses kernel parameters that are neither safe nor allowed, or that would be the host's. */
export const refuseSysctls: AdmissionHandler = ({ spec }, { node }) => {
  const shared = { ipc: spec.hostIPC === true, net: spec.hostNetwork === true };
  for (const { name } of spec.securityContext?.sysctls ?? []) {
    const sysctl = dottedSysctl(name);
    const namespace = namespaceOf(sysctl);
    const isAllowed = isSafe(sysctl, node.kernelRelease) || isListed(sysctl, node.allowedUnsafeSysctls);
    if (!namespace || !isAllowed) return forbidden(sysctl, 'not allowlisted');
    if (shared[namespace]) return forbidden(sysctl, `not allowed with host ${namespace} enabled`);
  }
  return undefined;
};

const forbidden = (sysctl: string, why: string) => ({
  reason: 'SysctlForbidden',
  message: `forbidden sysctl: "${sysctl}" ${why}`,
});

/** The namespace that keeps a parameter apart between pods; `undefined` for the whole kernel's parameters. */
function namespaceOf(sysctl: string): 'ipc' | 'net' | undefined {
  if (sysctl.startsWith('net.')) return 'net';
  const isIpc = /^(?:kernel\.(?:shm|msg|sem)|fs\.mqueue\.)/.test(sysctl);
  return isIpc ? 'ipc' : undefined;
}

function isSafe(sysctl: string, kernelRelease: string): boolean {
  const since = safeSysctls.get(sysctl);
  return since !== undefined && (since === '' || isAtLeast(kernelRelease, since));
}

function isListed(sysctl: string, allowed: readonly string[]): boolean {
  return allowed.map(dottedSysctl).some((entry) => {
    return entry.endsWith('*') ? sysctl.startsWith(entry.slice(0, -1)) : sysctl === entry;
  });
}

/** Compares the first two numbers of a kernel's release. */
function isAtLeast(release: string, wanted: string): boolean {
  const [major = 0, minor = 0] = release.split('.').map((part) => Number.parseInt(part, 10) || 0);
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}
