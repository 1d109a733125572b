/**
 * Which HTTP proxy the environment asks for: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in upper or lower
 * case, read as every Go program (and so the kubelet) reads them. Pure.
 */
import { BlockList, isIP } from 'node:net';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A proxy variable holds what is no proxy we can use; the message names the variable and the remedy. */
export class ProxyVariableError extends Error {
  override readonly name = 'ProxyVariableError';
}

/**
 * The proxy to reach `server` through; `undefined` for a straight way. Servers on this machine's loopback are
 * always reached straight. Throws {@link ProxyVariableError}.
 */
export function proxyFromEnvironment(server: URL, environment: Environment): URL | undefined {
  const name = server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const value = either(environment, name);
  if (value === '') return undefined;
  const target: Target = {
    host: server.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase(),
    port: server.port || (server.protocol === 'https:' ? '443' : '80'),
  };
  if (isLoopback(target.host) || isExempt(target, either(environment, 'NO_PROXY'))) return undefined;
  return proxyUrl(name, value);
}

interface Target {
  readonly host: string;
  readonly port: string;
}

function either(environment: Environment, name: string): string {
  return (environment[name] || environment[name.toLowerCase()] || '').trim();
}

function proxyUrl(name: string, value: string): URL {
  // `proxy:3128` would be read as a scheme and a path.
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.hostname && (url.protocol === 'http:' || url.protocol === 'https:')) return url;
  // Not the whole value: it may hold a password.
  const what = url ? `a proxy of the kind ${url.protocol}//` : 'no URL';
  throw new ProxyVariableError(
    `${name} in the agent's environment names ${what}: use http://HOST:PORT or https://HOST:PORT, ` +
      'or put the API server into NO_PROXY',
  );
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function isLoopback(host: string): boolean {
  const family = isIP(host);
  return family === 0 ? host === 'localhost' : loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/**
 * `*`, an address, a range (`10.0.0.0/8`), a domain (`example.com`, with all below it) or only what is below
 * it (`.example.com`); all but a range may end in `:PORT`.
 */
function isExempt(target: Target, list: string): boolean {
  const entries = list.split(',').map((entry) => entry.trim().toLowerCase());
  return entries.some((entry) => entry === '*' || (entry !== '' && matches(entry, target)));
}

function matches(entry: string, { host, port }: Target): boolean {
  if (entry.includes('/')) return isInRange(entry, host);
  const { name, port: wantedPort } = split(entry);
  if (wantedPort !== undefined && wantedPort !== port) return false;
  if (isIP(name) !== 0) return isIP(host) === isIP(name) && isSameAddress(name, host);
  const domain = name.replace(/^\*?\./, '');
  if (domain === '') return false;
  return host.endsWith(`.${domain}`) || (name === domain && host === domain);
}

function split(entry: string): { name: string; port?: string } {
  if (isIP(entry) !== 0) return { name: entry };
  const [, name = entry, port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  return { name: name.replace(/^\[(.*)\]$/, '$1'), ...(port !== undefined && { port }) };
}

function isInRange(range: string, host: string): boolean {
  const [network = '', bits = ''] = range.split('/');
  const family = isIP(network);
  const isBits = /^\d+$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
  if (family === 0 || isIP(host) !== family || !isBits) return false;
  const block = new BlockList();
  block.addSubnet(network, Number(bits), family === 4 ? 'ipv4' : 'ipv6');
  return block.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

function isSameAddress(a: string, b: string): boolean {
  const block = new BlockList();
  const family = isIP(a) === 4 ? 'ipv4' : 'ipv6';
  block.addAddress(a, family);
  return block.check(b, family);
}
