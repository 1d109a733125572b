/**
 * Every credential this node has for an image: those of the pod's own secrets first, then those in Docker's
 * files on the node, then those of credential provider plugins. A source that fails is told in the log and
 * leaves the others to try.
 */
import type { Clock } from '../concurrency/clock.ts';
import { parseImageReference } from '../kubernetes/image-reference.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type Metrics, silentMetrics } from '../telemetry/metrics.ts';
import { CredentialPlugin, type PullingPod, type ServiceAccountTokens } from './credential-provider.ts';
import { type CredentialProviderSource, readCredentialProviders } from './credential-provider-config.ts';
import { DockerConfigFiles } from './docker-config.ts';
import { type PullSecret, secretCredentials } from './pull-secrets.ts';
import { type PullCredential, pullCredential } from './registry-credential.ts';

export interface ImageKeyringOptions {
  readonly rootDirectory: string;
  readonly homeDirectory?: string | undefined;
  /** Plugins; absent when none are configured. */
  readonly providers?: CredentialProviderSource | undefined;
  /** Absent while there is no API server. */
  readonly serviceAccounts?: ServiceAccountTokens | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics?: Metrics | undefined;
}

export interface CredentialRequest {
  /** Absent: credentials of the node alone. */
  readonly pod?: PullingPod | undefined;
  /** The pod's pull secrets, in its order; none while there is no API server. */
  readonly podSecrets?: readonly PullSecret[] | undefined;
}

export class ImageKeyring {
  readonly #files: DockerConfigFiles;
  readonly #plugins: readonly CredentialPlugin[];
  readonly #logger: Logger;
  readonly #countError: (plugin: string) => void;

  /** Reads the providers' configuration; throws `CredentialProviderConfigError`. */
  static open(options: ImageKeyringOptions): ImageKeyring {
    const { providers: source, metrics = silentMetrics, clock, environment, serviceAccounts } = options;
    if (!source) return new ImageKeyring(options, []);
    const { providers, hash } = readCredentialProviders(source);
    const info = metrics.gauge({
      name: 'kubelet_credential_provider_config_info',
      help: 'Information about the last applied credential provider configuration with hash as label.',
      labels: ['hash'],
    });
    info.set(1, { hash });
    const durations = metrics.histogram({
      name: 'kubelet_credential_provider_plugin_duration',
      help: 'Duration of execution in seconds of credential provider plugins.',
      labels: ['plugin_name'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    });
    const plugins = providers.map(
      (provider) =>
        new CredentialPlugin({
          provider,
          binDirectory: source.binDirectory,
          clock,
          environment,
          serviceAccounts,
          onRun: (ms) => durations.observe(ms / 1000, { plugin_name: provider.name }),
        }),
    );
    return new ImageKeyring(options, plugins);
  }

  private constructor(options: ImageKeyringOptions, plugins: readonly CredentialPlugin[]) {
    const { logger, metrics = silentMetrics } = options;
    this.#files = new DockerConfigFiles(options);
    this.#plugins = plugins;
    this.#logger = logger;
    const errors = metrics.counter({
      name: 'kubelet_credential_provider_plugin_errors_total',
      help: 'Number of errors of credential provider plugins.',
      labels: ['plugin_name'],
    });
    this.#countError = (plugin) => errors.inc({ plugin_name: plugin });
  }

  /** Equal credentials once, in the order in which they should be tried. `image` may have tag and digest. */
  async credentialsFor(
    image: string,
    { pod, podSecrets = [] }: CredentialRequest = {},
  ): Promise<PullCredential[]> {
    const { domain, path } = parseImageReference(image);
    const repository = `${domain}/${path}`;
    const ofSecrets = secretCredentials(repository, podSecrets, (secret, problem) =>
      this.#logger.warn('A pull secret holds no usable credentials', { secret, problem }),
    );
    const ofFiles = this.#files
      .lookup(repository)
      .map((credential) => pullCredential(credential, { kind: 'node' }));
    const ofPlugins = await Promise.all(
      this.#plugins.map(async (plugin) => {
        try {
          return await plugin.credentialsFor(repository, pod);
        } catch (error) {
          this.#countError(plugin.name);
          this.#logger.error('No credentials from a credential provider', error, {
            pluginName: plugin.name,
            image: repository,
          });
          return [];
        }
      }),
    );
    const seen = new Set<string>();
    return [...ofSecrets, ...ofFiles, ...ofPlugins.flat()].filter(
      ({ hash }) => !seen.has(hash) && seen.add(hash),
    );
  }
}
