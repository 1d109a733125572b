/**
 * From flags to the client that speaks as this node: bootstraps where needed, and keeps the certificate fresh.
 * The one place that knows how `--kubeconfig`, `--bootstrap-kubeconfig`, `--cert-dir` and
 * `rotateCertificates` play together.
 */
import { resolve } from 'node:path';
import { type ApiClientOptions, createApiClient, readKubeconfig } from '../client/create-api-client.ts';
import type { Http2ApiClient } from '../client/http2-api-client.ts';
import type { Kubeconfig } from '../client/kubeconfig.ts';
import { ensureKubeconfig } from './bootstrap.ts';
import { CertificateStore } from './certificate-store.ts';
import { ClientCertificateRotation, withRotatedCertificate } from './client-certificate.ts';

export interface NodeCredentialsOptions {
  /** `--kubeconfig`. */
  readonly kubeconfig: string;
  /** `--bootstrap-kubeconfig`; empty when not given. */
  readonly bootstrapKubeconfig: string;
  /** `--cert-dir`. */
  readonly certificateDirectory: string;
  readonly rotateCertificates: boolean;
  readonly nodeName: string;
  readonly client: ApiClientOptions;
}

export interface NodeCredentials {
  readonly client: Http2ApiClient;
  /** What the client uses, after bootstrap. */
  readonly kubeconfig: Kubeconfig;
  /** Keeps the client certificate fresh until `signal` aborts; ends at once where there is nothing to keep. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Waits for a certificate for as long as bootstrap takes. Rejects with `KubeconfigError` when a kubeconfig is
 * unusable, or with the signal's reason.
 */
export async function nodeCredentials(
  options: NodeCredentialsOptions,
  signal: AbortSignal,
): Promise<NodeCredentials> {
  const { nodeName, client: clientOptions, rotateCertificates } = options;
  const { clock, random, logger, metrics } = clientOptions;
  const store = new CertificateStore({
    directory: resolve(options.certificateDirectory),
    name: 'kubelet-client',
    clock,
  });
  const bootstrapKubeconfigPath = options.bootstrapKubeconfig;
  const found = await ensureKubeconfig(
    {
      kubeconfigPath: resolve(options.kubeconfig),
      ...(bootstrapKubeconfigPath !== '' && { bootstrapKubeconfigPath: resolve(bootstrapKubeconfigPath) }),
      store,
      nodeName,
      createClient: (kubeconfig) => createApiClient(kubeconfig, clientOptions),
      clock,
      random,
      logger,
    },
    signal,
  );
  const rotates = rotateCertificates && found.user.clientCertificate !== undefined;
  const kubeconfig = rotates ? await withRotatedCertificate(found, store) : found;
  const client = createApiClient(kubeconfig, clientOptions);
  return {
    client,
    kubeconfig,
    async run(runSignal) {
      if (!rotates) return;
      await new ClientCertificateRotation({
        store,
        nodeName,
        client,
        ...(bootstrapKubeconfigPath !== '' && {
          bootstrapClient: async () =>
            createApiClient(await readKubeconfig(resolve(bootstrapKubeconfigPath)), clientOptions),
        }),
        clock,
        random,
        logger,
        metrics,
      }).run(runSignal);
    },
  };
}
