/**
 * How a pod resolves names: the node's resolv.conf, the cluster's DNS and the pod's own wishes, put together
 * by the pod's `dnsPolicy`. Pure; the runtime writes the file.
 */
import { isIP } from 'node:net';
import type { Pod } from '../../kubernetes/types.ts';

/** What goes into a resolv.conf; the shape of CRI's `DNSConfig`. */
export interface DnsConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  /** `name` or `name:value`. */
  readonly options: readonly string[];
}

/** Something the operator should know; the event's reason and text. */
export interface DnsWarning {
  readonly reason: 'DNSConfigForming' | 'MissingClusterDNS';
  readonly message: string;
  /** Also to be told about the node, with its own text. */
  readonly nodeMessage?: string;
}

/** What the node tells its pods about DNS. */
export interface NodeDns {
  /** `clusterDNS`; empty when not configured. */
  readonly clusterDns: readonly string[];
  /** `clusterDomain`; may be empty. */
  readonly clusterDomain: string;
  /** The node's resolver configuration; absent when `resolvConf` is the empty string. */
  readonly host: DnsConfig | undefined;
  /** Addresses of the node, which say whether it speaks IPv4, IPv6 or both. */
  readonly nodeIps: readonly string[];
}

/** resolv.conf of a larger size is not read. */
export const maxResolvConfBytes = 10 * 2 ** 20;

const maxServers = 3;
const maxSearches = 32;
const maxSearchLine = 2048;
/** A longer search domain makes some resolvers fail altogether. */
const maxSearchDomain = 253;

/** The text is no usable resolv.conf. */
export class ResolvConfError extends Error {
  override readonly name = 'ResolvConfError';
  constructor(line: string) {
    super(`resolv.conf has a nameserver line without an address: ${JSON.stringify(line)}`);
  }
}

/**
 * Reads a resolv.conf: all nameservers, the last `search` line, all options. Trailing dots of search domains
 * go, and so does the root domain.
 */
export function parseResolvConf(text: string): DnsConfig {
  const servers: string[] = [];
  let searches: string[] = [];
  const options: string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/);
    if (keyword === 'nameserver') {
      if (values[0] === undefined) throw new ResolvConfError(line);
      servers.push(values[0]);
    } else if (keyword === 'search') {
      searches = values.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '');
    } else if (keyword === 'options') {
      options.push(...values);
    }
  }
  return { servers, searches, options: mergedOptions(options, []) };
}

/** What the pod's resolv.conf says, and what was left out or replaced on the way. */
export function podDnsConfig(
  pod: Pick<Pod, 'metadata' | 'spec'>,
  node: NodeDns,
): { config: DnsConfig; warnings: DnsWarning[] } {
  const warnings: DnsWarning[] = [];
  const base = baseConfig(pod, node, warnings);
  const wishes = pod.spec.dnsConfig;
  const options = (wishes?.options ?? []).flatMap(({ name, value }) =>
    name === undefined ? [] : [value === undefined || value === '' ? name : `${name}:${value}`],
  );
  const config = {
    servers: unique([...base.servers, ...(wishes?.nameservers ?? [])]),
    searches: unique([...base.searches, ...(wishes?.searches ?? [])]),
    options: mergedOptions(base.options, options),
  };
  return {
    config: {
      servers: fittingServers(config.servers, warnings),
      searches: fittingSearches(config.searches, warnings),
      options: config.options,
    },
    warnings,
  };
}

function baseConfig(pod: Pick<Pod, 'metadata' | 'spec'>, node: NodeDns, warnings: DnsWarning[]): DnsConfig {
  const { dnsPolicy, hostNetwork } = pod.spec;
  if (dnsPolicy === 'None') return { servers: [], searches: [], options: [] };
  const wantsCluster =
    dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && hostNetwork !== true);
  if (wantsCluster && node.clusterDns.length > 0) {
    const { namespace } = pod.metadata;
    const { clusterDomain: domain } = node;
    const own = domain === '' ? [] : [`${namespace}.svc.${domain}`, `svc.${domain}`, domain];
    return {
      servers: node.clusterDns,
      searches: unique([...own, ...(node.host?.searches ?? [])]),
      options: ['ndots:5'],
    };
  }
  if (wantsCluster) {
    const { name, namespace, uid } = pod.metadata;
    const nodeMessage =
      'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.';
    const message = `pod: "${name}_${namespace}(${uid})". ${nodeMessage}`;
    warnings.push({ reason: 'MissingClusterDNS', message, nodeMessage });
  }
  return node.host ?? loopbackConfig(node.nodeIps);
}

/** Without a resolv.conf of the node, a resolver on the node itself is expected. */
function loopbackConfig(nodeIps: readonly string[]): DnsConfig {
  const servers = unique(nodeIps.map((ip) => (isIP(ip) === 6 ? '::1' : '127.0.0.1')));
  return { servers: servers.length > 0 ? servers : ['127.0.0.1'], searches: ['.'], options: [] };
}

/** Later options win over earlier ones of the same name and take their place. */
function mergedOptions(base: readonly string[], more: readonly string[]): string[] {
  const byName = new Map<string, string>();
  for (const option of [...base, ...more]) {
    const colon = option.indexOf(':');
    byName.set(colon < 0 ? option : option.slice(0, colon), option);
  }
  return [...byName.values()];
}

function fittingServers(servers: readonly string[], warnings: DnsWarning[]): readonly string[] {
  if (servers.length <= maxServers) return servers;
  const fitting = servers.slice(0, maxServers);
  warnings.push({
    reason: 'DNSConfigForming',
    message: `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${fitting.join(' ')}`,
  });
  return fitting;
}

function fittingSearches(searches: readonly string[], warnings: DnsWarning[]): readonly string[] {
  const fitting = searches.slice(0, maxSearches).filter((domain) => domain.length <= maxSearchDomain);
  while (fitting.join(' ').length > maxSearchLine) fitting.pop();
  if (fitting.length === searches.length) return searches;
  warnings.push({
    reason: 'DNSConfigForming',
    message: `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${fitting.join(' ')}`,
  });
  return fitting;
}

function unique(list: readonly string[]): string[] {
  return [...new Set(list)];
}
