/**
 * Reads a kubeconfig: which server, how to trust it, and as whom. Pure: names files, reads none; paths in it
 * are resolved against the kubeconfig's own directory.
 *
 * Guarantees: any text ends in a {@link Kubeconfig} or in a {@link KubeconfigError} that names the file, the
 * line and the field, and never quotes a secret. What is never used is not looked at: only the current
 * context, its cluster and its user count.
 */
import { dirname, resolve } from 'node:path';
import { type JsonValue, parseYaml, type YamlDocument, YamlError } from '../kubernetes/yaml.ts';
import { KubeconfigError, KubeconfigNode } from './kubeconfig-node.ts';

export { KubeconfigError } from './kubeconfig-node.ts';

/** PEM text that stands in the kubeconfig, or the absolute path of a file that holds it. */
export type PemSource = { readonly pem: string } | { readonly file: string };

export interface KubeconfigCluster {
  readonly name: string;
  /** Without a slash at the end, for example `https://10.0.0.1:6443`; may end in a path prefix. */
  readonly server: string;
  /** The machine's own authorities are trusted when absent. */
  readonly authority?: PemSource;
  readonly insecureSkipTlsVerify: boolean;
  /** The name to expect in the server's certificate, where it is not the host of `server`. */
  readonly tlsServerName?: string;
  /** An HTTP proxy to reach the server through. */
  readonly proxyUrl?: string;
  readonly disableCompression: boolean;
  /** What the extension `client.authentication.k8s.io/exec` holds, for exec plugins. */
  readonly execConfig?: JsonValue;
}

/** A program that gives credentials (`client.authentication.k8s.io`). */
export interface ExecPluginConfig {
  readonly apiVersion: 'client.authentication.k8s.io/v1' | 'client.authentication.k8s.io/v1beta1';
  /** A name to look up in PATH, or an absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint?: string;
  readonly provideClusterInfo: boolean;
}

export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface KubeconfigUser {
  readonly name: string;
  readonly clientCertificate?: { readonly certificate: PemSource; readonly key: PemSource };
  readonly token?: string;
  /** Wins over `token` whenever it can be read. */
  readonly tokenFile?: string;
  readonly exec?: ExecPluginConfig;
  readonly impersonate?: Impersonation;
}

export interface Kubeconfig {
  /** The file it was read from. */
  readonly path: string;
  readonly context: string;
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;

/** Parses and checks. Throws {@link KubeconfigError}. */
export function parseKubeconfig(text: string, path: string): Kubeconfig {
  const root = parseRoot(text, path);
  const kind = root.text('kind');
  if (kind !== undefined && kind !== 'Config') throw root.field('kind').error(`is ${kind}, not Config`);
  const apiVersion = root.text('apiVersion');
  if (apiVersion !== undefined && apiVersion !== 'v1')
    throw root.field('apiVersion').error(`is ${apiVersion}, not v1`);
  const { name: context, value } = currentContext(root);
  const clusterName = value.requiredText('cluster');
  const userName = value.text('user');
  return {
    path,
    context,
    cluster: readCluster(clusterName, named(root, 'cluster', clusterName, value), path),
    user:
      userName === undefined ? { name: '' } : readUser(userName, named(root, 'user', userName, value), path),
  };
}

function parseRoot(text: string, path: string): KubeconfigNode {
  let documents: YamlDocument[];
  try {
    documents = parseYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw new KubeconfigError(`kubeconfig ${path}: ${error.message}`, { cause: error });
  }
  const [document] = documents;
  if (!document || document.value === null) throw new KubeconfigError(`kubeconfig ${path} is empty`);
  return new KubeconfigNode(path, document, [], document.value).asMapping();
}

/** Differs from the kubelet: with exactly one context, that one is meant even if nothing says so. */
function currentContext(root: KubeconfigNode): { name: string; value: KubeconfigNode } {
  const contexts = root.field('contexts').items();
  const current = root.text('current-context');
  const only = contexts.length === 1 ? contexts[0]!.text('name') : undefined;
  const name = current ?? only;
  if (name === undefined)
    throw root.field('current-context').error('is missing: name the context that the node shall use');
  const entry = contexts.find((candidate) => candidate.text('name') === name);
  if (!entry) {
    const names = contexts.map((candidate) => candidate.text('name') ?? '?').join(', ') || 'none';
    throw root.field('current-context').error(`names the context "${name}", which is not there (${names})`);
  }
  return { name, value: entry.field('context').asMapping() };
}

function named(
  root: KubeconfigNode,
  key: 'cluster' | 'user',
  name: string,
  context: KubeconfigNode,
): KubeconfigNode {
  const list = `${key}s`;
  const entries = root.field(list).items();
  const entry = entries.find((candidate) => candidate.text('name') === name);
  if (!entry) throw context.field(key).error(`names "${name}", which is not in ${list}`);
  return entry.field(key).asMapping();
}

function readCluster(name: string, node: KubeconfigNode, path: string): KubeconfigCluster {
  const authority = pemSource(node, 'certificate-authority', path);
  const insecureSkipTlsVerify = node.flag('insecure-skip-tls-verify');
  if (authority && insecureSkipTlsVerify)
    throw node
      .field('insecure-skip-tls-verify')
      .error('is set beside a certificate authority: remove one of the two');
  const tlsServerName = node.text('tls-server-name');
  const proxyUrl = node.text('proxy-url');
  if (proxyUrl !== undefined && !/^https?:$/.test(urlOf(node.field('proxy-url'), proxyUrl).protocol))
    throw node
      .field('proxy-url')
      .error('must begin with http:// or https://: other kinds of proxies are not supported');
  const extension = node
    .field('extensions')
    .items()
    .find((candidate) => candidate.text('name') === 'client.authentication.k8s.io/exec');
  const execConfig = extension?.field('extension').value;
  return {
    name,
    server: readServer(node),
    ...(authority && { authority }),
    insecureSkipTlsVerify,
    ...(tlsServerName !== undefined && { tlsServerName }),
    ...(proxyUrl !== undefined && { proxyUrl }),
    disableCompression: node.flag('disable-compression'),
    ...(execConfig !== undefined && { execConfig }),
  };
}

/** `host:port` alone means http, as everywhere in Kubernetes. */
function readServer(node: KubeconfigNode): string {
  const given = node.requiredText('server');
  const url = urlOf(node.field('server'), /^[a-z]+:\/\//i.test(given) ? given : `http://${given}`);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw node.field('server').error(`must begin with https://, not ${url.protocol}//`);
  if (url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '')
    throw node.field('server').error('must be scheme, host, port and path only');
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

function urlOf(node: KubeconfigNode, text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw node.error('is not an address: expected something like https://10.0.0.1:6443');
  }
}

function readUser(name: string, node: KubeconfigNode, path: string): KubeconfigUser {
  for (const field of ['username', 'password'])
    if (node.text(field) !== undefined)
      throw node
        .field(field)
        .error('is not supported: no API server accepts basic authentication; use a certificate or a token');
  if (node.has('auth-provider'))
    throw node
      .field('auth-provider')
      .error('is not supported: Kubernetes removed it; use an exec plugin (users[].user.exec)');
  const certificate = pemSource(node, 'client-certificate', path);
  const key = pemSource(node, 'client-key', path);
  if (certificate && !key)
    throw node.error('has a client-certificate and no client-key: a key may stand in the same file');
  if (key && !certificate) throw node.error('has a client-key and no client-certificate');
  const token = node.text('token');
  if (token !== undefined && /[\r\n]/.test(token)) throw node.field('token').error('holds a line break');
  const tokenFile = node.text('tokenFile');
  const exec = node.has('exec') ? readExec(node.field('exec').asMapping(), path) : undefined;
  const impersonate = readImpersonation(node);
  return {
    name,
    ...(certificate && key && { clientCertificate: { certificate, key } }),
    ...(token !== undefined && { token }),
    ...(tokenFile !== undefined && { tokenFile: resolve(dirname(path), tokenFile) }),
    ...(exec && { exec }),
    ...(impersonate && { impersonate }),
  };
}

function readExec(node: KubeconfigNode, path: string): ExecPluginConfig {
  const apiVersion = execVersions.find((version) => version === node.requiredText('apiVersion'));
  if (!apiVersion) throw node.field('apiVersion').error(`must be one of ${execVersions.join(', ')}`);
  const mode = node.text('interactiveMode');
  if (mode === undefined && apiVersion.endsWith('/v1'))
    throw node.field('interactiveMode').error('is missing: a node agent has no terminal, so write Never');
  if (mode === 'Always')
    throw node
      .field('interactiveMode')
      .error('is Always, but a node agent has no terminal: use another plugin');
  if (mode !== undefined && mode !== 'Never' && mode !== 'IfAvailable')
    throw node.field('interactiveMode').error('must be Never, IfAvailable or Always');
  const command = node.requiredText('command');
  const installHint = node.text('installHint');
  const env: Record<string, string> = {};
  for (const entry of node.field('env').items()) env[entry.requiredText('name')] = entry.text('value') ?? '';
  return {
    apiVersion,
    command: command.includes('/') ? resolve(dirname(path), command) : command,
    args: node.texts('args'),
    env,
    ...(installHint !== undefined && { installHint }),
    provideClusterInfo: node.flag('provideClusterInfo'),
  };
}

function readImpersonation(node: KubeconfigNode): Impersonation | undefined {
  const user = node.text('as');
  const uid = node.text('as-uid');
  const groups = node.texts('as-groups');
  const extra: Record<string, readonly string[]> = {};
  for (const key of node.field('as-user-extra').keys()) extra[key] = node.field('as-user-extra').texts(key);
  if (user === undefined) {
    if (uid === undefined && groups.length === 0 && Object.keys(extra).length === 0) return undefined;
    throw node.field('as').error('is missing: groups, uid and extras can only be taken on with a user');
  }
  return { user, ...(uid !== undefined && { uid }), groups, extra };
}

/** `<field>-data` (base64 of PEM) wins over `<field>` (a file). */
function pemSource(node: KubeconfigNode, field: string, path: string): PemSource | undefined {
  const data = node.text(`${field}-data`);
  if (data !== undefined) {
    const pem = Buffer.from(data, 'base64').toString('utf8');
    if (!pem.includes('-----BEGIN '))
      throw node.field(`${field}-data`).error('is not the base64 of a PEM text (-----BEGIN …)');
    return { pem };
  }
  const file = node.text(field);
  return file === undefined ? undefined : { file: resolve(dirname(path), file) };
}
