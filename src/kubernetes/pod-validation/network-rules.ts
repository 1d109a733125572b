/** Rules for a pod's place in the network: host namespaces, host names, DNS. */
import { isIP } from 'node:net';
import { checkDns1123Label, checkDns1123Subdomain } from '../names.ts';
import type { FieldErrors } from './field-error.ts';
import { isBlank, isEmptyList, type RuleContext } from './rule-context.ts';
import type { Container, PodDnsConfig } from './unvalidated-pod.ts';

const maxNameservers = 3;
const maxSearches = 32;
const maxSearchBytes = 2048;
/** Linux' limit for a host name. */
const maxHostnameLength = 64;

export function checkNetwork(context: RuleContext): void {
  const { errors, spec } = context;
  errors.oneOf('spec.dnsPolicy', spec.dnsPolicy, [
    'ClusterFirstWithHostNet',
    'ClusterFirst',
    'Default',
    'None',
  ]);
  checkDnsConfig(errors, 'spec.dnsConfig', spec.dnsConfig, spec.dnsPolicy);
  if (spec.hostname) errors.problems('spec.hostname', spec.hostname, checkDns1123Label(spec.hostname));
  if (spec.subdomain) errors.problems('spec.subdomain', spec.subdomain, checkDns1123Label(spec.subdomain));
  checkHostnameOverride(context);
  spec.hostAliases?.forEach(({ ip, hostnames }, index) => {
    const at = `spec.hostAliases[${index}]`;
    checkIp(errors, `${at}.ip`, ip ?? '');
    for (const [n, name] of (hostnames ?? []).entries()) {
      errors.problems(`${at}.hostnames[${n}]`, name, checkDns1123Subdomain(name));
    }
  });
  checkHostNamespaces(context);
  if (spec.hostNetwork === true) {
    checkHostNetworkPorts(errors, 'spec.containers', spec.containers);
    checkHostNetworkPorts(errors, 'spec.initContainers', spec.initContainers);
  }
}

/** An address as everybody reads it: no zone, no leading zeros, which some readers take for octal. */
function checkIp(errors: FieldErrors, path: string, ip: string): void {
  if (isIP(ip) === 0 || ip.includes('%')) {
    errors.invalid(path, ip, 'must be an IP address (e.g. 10.9.8.7 or 2001:db8::ffff)');
  }
}

function checkHostnameOverride({ errors, spec }: RuleContext): void {
  const name = spec.hostnameOverride;
  if (name === undefined) return;
  const at = 'spec.hostnameOverride';
  errors.problems(at, name, checkDns1123Subdomain(name));
  if (name.length > maxHostnameLength) errors.tooLong(at, maxHostnameLength);
  if (spec.hostNetwork === true) errors.forbidden(at, 'may not be set when `hostNetwork` is true');
  if (spec.setHostnameAsFQDN === true)
    errors.forbidden(at, 'may not be set when `setHostnameAsFQDN` is true');
}

function checkDnsConfig(
  errors: FieldErrors,
  path: string,
  config: PodDnsConfig | undefined,
  policy: string | undefined,
): void {
  if (policy === 'None') {
    if (!config) errors.required(path, 'must be set when `dnsPolicy` is None');
    else if (isEmptyList(config.nameservers)) {
      errors.required(`${path}.nameservers`, 'at least one is needed when `dnsPolicy` is None');
    }
  }
  if (!config) return;
  const nameservers = config.nameservers ?? [];
  if (nameservers.length > maxNameservers) {
    errors.invalid(
      `${path}.nameservers`,
      nameservers,
      `must not have more than ${maxNameservers} nameservers`,
    );
  }
  for (const [index, server] of nameservers.entries())
    checkIp(errors, `${path}.nameservers[${index}]`, server);

  const searches = config.searches ?? [];
  if (searches.length > maxSearches) {
    errors.invalid(`${path}.searches`, searches, `must not have more than ${maxSearches} search paths`);
  }
  if (searches.join(' ').length > maxSearchBytes) {
    errors.invalid(
      `${path}.searches`,
      searches,
      `must not have more than ${maxSearchBytes} characters together`,
    );
  }
  for (const [index, search] of searches.entries()) checkSearch(errors, `${path}.searches[${index}]`, search);
  config.options?.forEach(({ name }, index) => {
    if (isBlank(name)) errors.required(`${path}.options[${index}].name`);
  });
}

/** A search domain may be the root alone, end in a dot, and have underscores. */
function checkSearch(errors: FieldErrors, path: string, search: string): void {
  if (search === '.') return;
  const domain = search.replace(/\.$/, '').replaceAll('_', 'a');
  errors.problems(path, search, checkDns1123Subdomain(domain));
}

function checkHostNamespaces({ errors, spec, featureEnabled }: RuleContext): void {
  if (spec.shareProcessNamespace === true && spec.hostPID === true) {
    errors.invalid('spec.shareProcessNamespace', true, 'may not be set together with `hostPID`');
  }
  if (spec.hostUsers !== false) return;
  const why = 'may not be set when `hostUsers` is false';
  if (spec.hostNetwork === true && !featureEnabled('UserNamespacesHostNetworkSupport')) {
    errors.forbidden('spec.hostNetwork', why);
  }
  if (spec.hostPID === true) errors.forbidden('spec.hostPID', why);
  if (spec.hostIPC === true) errors.forbidden('spec.hostIPC', why);
}

function checkHostNetworkPorts(
  errors: FieldErrors,
  path: string,
  containers: readonly Container[] | undefined,
): void {
  containers?.forEach((container, index) => {
    container.ports?.forEach(({ containerPort, hostPort }, n) => {
      if (!hostPort || hostPort === containerPort) return;
      const at = `${path}[${index}].ports[${n}].containerPort`;
      errors.invalid(at, containerPort, 'must match `hostPort` when `hostNetwork` is true');
    });
  });
}
