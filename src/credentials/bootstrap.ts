/**
 * Makes sure the node has credentials before anything asks for them (`--bootstrap-kubeconfig`): where the
 * kubeconfig is missing, or what it holds has expired, the node asks for a client certificate with the
 * bootstrap credentials, waits for its approval, and writes the kubeconfig.
 *
 * Guarantees: crash-safe at every step (the key under way is kept, files are whole or absent); waits with
 * growing pauses for as long as it takes, saying why; never touches a kubeconfig that still works.
 */
import { X509Certificate } from 'node:crypto';
import { access, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ApiClient } from '../client/api-client.ts';
import { readKubeconfig } from '../client/create-api-client.ts';
import type { Kubeconfig, KubeconfigCluster } from '../client/kubeconfig.ts';
import { type Clock, sleep } from '../concurrency/clock.ts';
import { writeFileAtomically } from '../linux/atomic-file.ts';
import type { Logger } from '../telemetry/logger.ts';
import { retryDelay } from './certificate-pace.ts';
import { ApprovalNotice } from './certificate-signing.ts';
import type { CertificateStore } from './certificate-store.ts';
import { CertificateTrouble } from './certificate-trouble.ts';
import { requestClientCertificate } from './client-certificate-request.ts';
import { nodeSubject } from './node-identity.ts';

export interface BootstrapOptions {
  /** `--kubeconfig`. */
  readonly kubeconfigPath: string;
  /** `--bootstrap-kubeconfig`. */
  readonly bootstrapKubeconfigPath?: string;
  /** Of `kubelet-client`, in `--cert-dir`. */
  readonly store: CertificateStore;
  readonly nodeName: string;
  /** Makes the client for the bootstrap credentials, which is closed when it is no longer needed. */
  readonly createClient: (kubeconfig: Kubeconfig) => ApiClient & { close(): void };
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

/**
 * The kubeconfig to work with. Without a bootstrap kubeconfig that is simply the file, and the errors of
 * reading it; with one, rejects only when the bootstrap kubeconfig itself is unusable, or with the signal's
 * reason.
 */
export async function ensureKubeconfig(options: BootstrapOptions, signal: AbortSignal): Promise<Kubeconfig> {
  const { kubeconfigPath, bootstrapKubeconfigPath, logger } = options;
  if (bootstrapKubeconfigPath === undefined || bootstrapKubeconfigPath === '')
    return readKubeconfig(kubeconfigPath);
  const usable = await usableKubeconfig(options);
  if (typeof usable !== 'string') return usable;
  logger.info('Asking the cluster for a client certificate', {
    why: usable,
    bootstrapKubeconfig: bootstrapKubeconfigPath,
  });
  const bootstrap = await readKubeconfig(bootstrapKubeconfigPath);
  return writeKubeconfig(options, await obtain(options, bootstrap, signal));
}

/** The kubeconfig when it can be worked with, else why not. */
async function usableKubeconfig({
  kubeconfigPath,
  clock,
  nodeName,
  logger,
}: BootstrapOptions): Promise<Kubeconfig | string> {
  try {
    await access(kubeconfigPath);
  } catch {
    return 'there is no kubeconfig yet';
  }
  // A file that is there and wrong is the operator's to mend, not ours to overwrite.
  const kubeconfig = await readKubeconfig(kubeconfigPath);
  const certificate = kubeconfig.user.clientCertificate?.certificate;
  if (!certificate) return kubeconfig;
  let leaf: X509Certificate;
  try {
    leaf = new X509Certificate(
      'pem' in certificate ? certificate.pem : await readFile(certificate.file, 'utf8'),
    );
  } catch (error) {
    return `the client certificate cannot be read: ${(error as Error).message}`;
  }
  if (clock.now() >= leaf.validToDate.getTime())
    return `the client certificate expired on ${leaf.validToDate.toISOString()}`;
  if (clock.now() < leaf.validFromDate.getTime())
    logger.warn("The client certificate is not valid yet: this machine's clock is behind; set it", {
      validFrom: leaf.validFromDate.toISOString(),
    });
  const { commonName } = nodeSubject(nodeName);
  if (leaf.subject.includes('CN=system:node:') && !leaf.subject.split('\n').includes(`CN=${commonName}`))
    logger.warn(
      'The client certificate is for another node name: correct --hostname-override, or remove the kubeconfig and the certificate to join anew',
      {
        subject: leaf.subject.replaceAll('\n', ', '),
        node: nodeName,
      },
    );
  return kubeconfig;
}

/**
 * Has the cluster give a certificate. Resolves with the bootstrap kubeconfig it came by: the file is read again
 * for each try, since a token that has expired is replaced there.
 */
async function obtain(
  options: BootstrapOptions,
  first: Kubeconfig,
  signal: AbortSignal,
): Promise<Kubeconfig> {
  const { store, nodeName, clock, random, logger, createClient } = options;
  const stored = await store.current().catch(() => undefined);
  // A crash between the certificate and the kubeconfig: nothing left to ask for.
  if (
    stored &&
    clock.now() < stored.notAfter &&
    stored.leaf.subject.split('\n').includes(`CN=${nodeSubject(nodeName).commonName}`)
  )
    return first;
  let bootstrap = first;
  let client = createClient(bootstrap);
  const trouble = new CertificateTrouble(logger, 'The node has no client certificate yet, trying again');
  const notice = new ApprovalNotice(logger, clock);
  try {
    for (let failures = 1; ; failures++) {
      try {
        await requestClientCertificate({ client, store, nodeName, clock, notice }, signal);
        logger.info('The cluster has given this node a client certificate', { file: store.currentPath });
        return bootstrap;
      } catch (error) {
        signal.throwIfAborted();
        trouble.failed(error);
        await sleep(clock, retryDelay(failures, error, random), signal);
      }
      const now = await readKubeconfig(first.path);
      if (isDeepStrictEqual(now, bootstrap)) continue;
      client.close();
      client = createClient(now);
      bootstrap = now;
    }
  } finally {
    client.close();
  }
}

/** Writes the kubeconfig unless there is one that already points to the store. */
async function writeKubeconfig(options: BootstrapOptions, bootstrap: Kubeconfig): Promise<Kubeconfig> {
  const { kubeconfigPath, store } = options;
  const existing = await readKubeconfig(kubeconfigPath).catch(() => undefined);
  const certificate = existing?.user.clientCertificate?.certificate;
  if (!existing || !certificate || !('file' in certificate) || certificate.file !== store.currentPath) {
    await mkdir(dirname(kubeconfigPath), { recursive: true, mode: 0o755 });
    const content = kubeconfigFor(bootstrap.cluster, store.currentPath);
    await writeFileAtomically(kubeconfigPath, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  }
  return readKubeconfig(kubeconfigPath);
}

/** A kubeconfig (JSON is YAML) for the same cluster, with the node's own certificate. */
function kubeconfigFor(cluster: KubeconfigCluster, certificatePath: string): unknown {
  const { authority } = cluster;
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'default-cluster',
        cluster: {
          server: cluster.server,
          ...(authority &&
            'pem' in authority && {
              'certificate-authority-data': Buffer.from(authority.pem).toString('base64'),
            }),
          ...(authority && 'file' in authority && { 'certificate-authority': authority.file }),
          ...(cluster.insecureSkipTlsVerify && { 'insecure-skip-tls-verify': true }),
          ...(cluster.tlsServerName !== undefined && { 'tls-server-name': cluster.tlsServerName }),
          ...(cluster.proxyUrl !== undefined && { 'proxy-url': cluster.proxyUrl }),
          ...(cluster.disableCompression && { 'disable-compression': true }),
        },
      },
    ],
    users: [
      {
        name: 'default-auth',
        user: { 'client-certificate': certificatePath, 'client-key': certificatePath },
      },
    ],
    contexts: [
      {
        name: 'default-context',
        context: { cluster: 'default-cluster', user: 'default-auth', namespace: 'default' },
      },
    ],
    'current-context': 'default-context',
  };
}
