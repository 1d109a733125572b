/**
 * `status.addresses`: which addresses a node says it has. Pure: what the host and DNS tell is passed in.
 * When nothing usable is found, the answer says why, and the addresses already reported stay.
 */
import { BlockList, isIP } from 'node:net';
import type { NodeAddress } from './node-types.ts';

/** `--node-ip` is not an address or pair of addresses that a node can have. */
export class NodeIpError extends Error {
  override readonly name = 'NodeIpError';
}

/** What the machine knows of its own addresses. */
export interface HostNetwork {
  /** Of all interfaces, loopback included. */
  readonly interfaceAddresses: readonly string[];
  /** Of the interface that holds the default route, best first within a family. */
  readonly defaultAddresses: readonly string[];
}

export interface AddressFacts {
  readonly nodeName: string;
  readonly hostname: string;
  /** From {@link parseNodeIps}. */
  readonly nodeIps: readonly string[];
  readonly externalCloud: boolean;
  readonly host: HostNetwork;
  /** What DNS says of the node's name, in its order; empty when it says nothing, undefined before it answers. */
  readonly lookedUp: readonly string[] | undefined;
  /** What the Node object has now. */
  readonly existing: readonly NodeAddress[];
}

export interface AddressDecision {
  readonly addresses: readonly NodeAddress[];
  /** Why `addresses` is only what was there before. */
  readonly problem?: string;
}

const unspecified = ['0.0.0.0', '::'];

/**
 * The addresses of `--node-ip`: none, one, or one of each family, in canonical form. `0.0.0.0` and `::`
 * only say which family is preferred. Throws {@link NodeIpError}.
 *
 * Differs from the kubelet: an unreadable address is refused, not ignored with a warning.
 */
export function parseNodeIps(text: string): string[] {
  if (text.trim() === '') return [];
  const parts = text.split(',').map((part) => part.trim());
  const wrong = parts.find((part) => isIP(part) === 0);
  if (wrong !== undefined) throw new NodeIpError(`--node-ip: "${wrong}" is no IP address`);
  const ips = parts.map(canonicalIp);
  const [first = '', second] = ips;
  if (ips.length > 2 || (second !== undefined && isIP(first) === isIP(second))) {
    throw new NodeIpError(
      `--node-ip: "${text}" must be one address, or two with a comma: one IPv4 and one IPv6`,
    );
  }
  if (second !== undefined && ips.some((ip) => unspecified.includes(ip))) {
    throw new NodeIpError(`--node-ip: in the pair "${text}" neither may be 0.0.0.0 or ::`);
  }
  return ips;
}

/** Decides `status.addresses`. */
export function nodeAddresses(facts: AddressFacts): AddressDecision {
  const { nodeIps, externalCloud, existing, hostname } = facts;
  const given = nodeIps.filter((ip) => !unspecified.includes(ip));
  for (const ip of given) {
    const problem = unusable(ip, facts.host);
    if (problem !== undefined) return { addresses: existing, problem: `--node-ip ${ip}: ${problem}` };
  }
  // What DNS is going to say is most likely what it said before.
  if (given.length === 0 && facts.lookedUp === undefined && existing.length > 0) {
    return { addresses: existing };
  }
  const host: NodeAddress = { type: 'Hostname', address: hostname };
  if (externalCloud) {
    // What the cloud controller has set stands above what this host believes.
    if (existing.length > 0) return { addresses: existing };
    if (given.length === 0) return { addresses: [host] };
  }
  const found = given.length > 0 ? given : [addressFound(facts)].filter((ip) => ip !== undefined);
  if (found.length === 0) {
    return {
      addresses: existing,
      problem: `no address found for node "${facts.nodeName}": its name is no IP, DNS gives it no address of this host, and there is no default route; give --node-ip`,
    };
  }
  return { addresses: [...found.map((address) => ({ type: 'InternalIP', address })), host] };
}

/** `status.hostIPs` of pods: the first internal (else external) address, and one of the other family. */
export function hostIps(addresses: readonly NodeAddress[]): string[] {
  const ips = ['InternalIP', 'ExternalIP'].flatMap((type) =>
    addresses.filter((address) => address.type === type).map(({ address }) => address),
  );
  const [first] = ips;
  if (first === undefined) return [];
  const other = ips.find((ip) => isIP(ip) !== isIP(first));
  return other === undefined ? [first] : [first, other];
}

/** The host name when it is an address, else what DNS gives, else the default route's: preferred family first. */
function addressFound({ nodeIps, hostname, lookedUp, host }: AddressFacts): string | undefined {
  if (isIP(hostname) !== 0) return canonicalIp(hostname);
  const family = nodeIps[0] === '::' ? 6 : 4;
  const preferred = (ips: readonly string[]) => ips.find((ip) => isIP(ip) === family) ?? ips[0];
  const usable = (ips: readonly string[]) =>
    ips.filter((ip) => isIP(ip) !== 0 && unusable(ip, host) === undefined).map(canonicalIp);
  return preferred(usable(lookedUp ?? [])) ?? preferred(usable(host.defaultAddresses));
}

const local = new BlockList();
local.addSubnet('127.0.0.0', 8, 'ipv4');
local.addAddress('::1', 'ipv6');
const multicast = new BlockList();
multicast.addSubnet('224.0.0.0', 4, 'ipv4');
multicast.addSubnet('ff00::', 8, 'ipv6');
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');

/** Why `ip` cannot be a node's address; undefined when it can. */
function unusable(ip: string, host: HostNetwork): string | undefined {
  const family = isIP(ip) === 4 ? 'ipv4' : 'ipv6';
  if (unspecified.includes(ip)) return 'is no address of a host';
  if (local.check(ip, family)) return 'is a loopback address';
  if (multicast.check(ip, family)) return 'is a multicast address';
  if (linkLocal.check(ip, family)) return 'is a link-local address';
  const own = canonicalIp(ip);
  if (host.interfaceAddresses.some((address) => canonicalIp(address) === own)) return undefined;
  return 'is on no network interface of this host';
}

/** One spelling for each address; text that is none stays as it is. */
export function canonicalIp(ip: string): string {
  const plain = ip.replace(/%.*$/, '');
  return isIP(plain) === 6 ? new URL(`http://[${plain}]`).hostname.slice(1, -1) : plain;
}
