/** From a kubeconfig to a client. */
import { readFile } from 'node:fs/promises';
import { credentialSource } from './credential-source.ts';
import { Http2ApiClient, type Http2ApiClientOptions } from './http2-api-client.ts';
import { type Kubeconfig, type KubeconfigCluster, KubeconfigError, parseKubeconfig } from './kubeconfig.ts';
import { type Environment, proxyFromEnvironment } from './proxy-environment.ts';

/** What a client is made with beside its kubeconfig. */
export interface ApiClientOptions
  extends Pick<
    Http2ApiClientOptions,
    'userAgent' | 'qps' | 'burst' | 'clock' | 'random' | 'logger' | 'metrics' | 'onRequest' | 'onDate'
  > {
  /** Where `HTTPS_PROXY` and `NO_PROXY` stand; the process's own when absent. */
  readonly environment?: Environment;
}

/** Reads and checks the file. Rejects with {@link KubeconfigError}, which says what to do. */
export async function readKubeconfig(path: string): Promise<Kubeconfig> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const why = missing
      ? 'there is no such file: correct --kubeconfig, or give --bootstrap-kubeconfig to have it made'
      : (cause as Error).message;
    throw new KubeconfigError(`kubeconfig ${path} cannot be read: ${why}`, { cause });
  }
  return parseKubeconfig(text, path);
}

/**
 * A client for the kubeconfig's current context. Connects with the first request, not before. Without
 * `proxy-url` in the kubeconfig the proxy variables of the environment count. Throws `ProxyVariableError`.
 */
export function createApiClient(kubeconfig: Kubeconfig, options: ApiClientOptions): Http2ApiClient {
  const { user, path } = kubeconfig;
  const cluster = throughProxy(kubeconfig.cluster, options.environment ?? process.env);
  const { authority } = cluster;
  const credentials = credentialSource({
    user,
    cluster,
    authorityPem: async () =>
      authority && ('pem' in authority ? authority.pem : await readFile(authority.file, 'utf8')),
    clock: options.clock,
    metrics: options.metrics,
  });
  return new Http2ApiClient({ ...options, cluster, credentials, kubeconfig: path });
}

function throughProxy(cluster: KubeconfigCluster, environment: Environment): KubeconfigCluster {
  if (cluster.proxyUrl !== undefined) return cluster;
  const proxy = proxyFromEnvironment(new URL(cluster.server), environment);
  return proxy ? { ...cluster, proxyUrl: proxy.href } : cluster;
}
