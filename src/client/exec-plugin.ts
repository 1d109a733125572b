/**
 * Runs a credential plugin (`client.authentication.k8s.io`): a program that prints an `ExecCredential` with
 * a token, a client certificate, or both. What it gave is kept until it expires or the server refuses it;
 * callers that ask at the same time share one run.
 */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import type { Clock } from '../concurrency/clock.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { type Metrics, silentMetrics } from '../telemetry/metrics.ts';
import { type ClientCertificate, CredentialError } from './credentials.ts';
import type { ExecPluginConfig, KubeconfigCluster } from './kubeconfig.ts';

export interface ExecPluginOptions {
  readonly config: ExecPluginConfig;
  /** Told to the plugin when it asks for it; `authorityPem` is its authority's text. */
  readonly cluster: KubeconfigCluster;
  readonly authorityPem: () => Promise<string | undefined>;
  readonly clock: Clock;
  readonly metrics?: Metrics;
  /** What the plugin inherits; the process's own when absent. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

export interface PluginCredentials {
  readonly token?: string;
  readonly certificate?: ClientCertificate;
  /** Epoch milliseconds. */
  readonly expiresAt?: number;
}

const runMs = 60_000;
const largestOutput = 1024 * 1024;
/** From ten minutes to four years. */
const rotationAges = [
  600, 1800, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000,
];
/** A plugin that has just failed, or whose answer was just refused, is not run again for every request. */
const pauseMs = 1000;

export class ExecPlugin {
  readonly #options: ExecPluginOptions;
  readonly #calls;
  readonly #ttl;
  readonly #rotationAge;
  readonly #flight = new SingleFlight<PluginCredentials>();
  #cached: PluginCredentials | undefined;
  #ranAt = Number.NEGATIVE_INFINITY;
  #failure: CredentialError | undefined;
  /** When the certificate in use came, epoch milliseconds. */
  #certificateSince = 0;

  constructor(options: ExecPluginOptions) {
    this.#options = options;
    const metrics = options.metrics ?? silentMetrics;
    this.#calls = metrics.counter({
      name: 'rest_client_exec_plugin_call_total',
      help: 'Runs of credential plugins, by exit code and how they ended.',
      labels: ['code', 'call_status'],
    });
    this.#ttl = metrics.gauge({
      name: 'rest_client_exec_plugin_ttl_seconds',
      help: 'Seconds until the certificate that the credential plugin gave expires.',
    });
    this.#rotationAge = metrics.histogram({
      name: 'rest_client_exec_plugin_certificate_rotation_age',
      help: 'Seconds that a certificate of the credential plugin had been in use when it gave another one.',
      buckets: rotationAges,
    });
  }

  async current(signal?: AbortSignal): Promise<PluginCredentials> {
    const now = this.#options.clock.now();
    if (this.#cached && (this.#cached.expiresAt === undefined || now < this.#cached.expiresAt))
      return this.#cached;
    if (this.#failure && now - this.#ranAt < pauseMs) throw this.#failure;
    return this.#runOnce(signal);
  }

  /** True when another run gave something else. */
  async refresh(signal?: AbortSignal): Promise<boolean> {
    const before = this.#cached;
    if (this.#options.clock.now() - this.#ranAt < pauseMs) return false;
    const after = await this.#runOnce(signal);
    return (
      after.token !== before?.token || after.certificate?.certificate !== before?.certificate?.certificate
    );
  }

  /** The run is shared, so one caller's signal only ends that caller's wait. */
  #runOnce(signal?: AbortSignal): Promise<PluginCredentials> {
    const run = this.#flight.run('', async () => {
      this.#ranAt = this.#options.clock.now();
      try {
        const given = await this.#run();
        this.#failure = undefined;
        const former = this.#cached;
        this.#cached = sameCertificate(former, given);
        if (former?.certificate && former.certificate !== this.#cached.certificate) {
          this.#rotationAge.observe((this.#options.clock.now() - this.#certificateSince) / 1000);
        }
        if (former?.certificate !== this.#cached.certificate) {
          this.#certificateSince = this.#options.clock.now();
        }
        return this.#cached;
      } catch (error) {
        this.#failure = error as CredentialError;
        throw error;
      }
    });
    if (!signal) return run;
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      if (signal.aborted) onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      void run.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
    });
  }

  async #run(): Promise<PluginCredentials> {
    const { command, args, env } = this.#options.config;
    const environment = {
      ...(this.#options.environment ?? process.env),
      ...env,
      KUBERNETES_EXEC_INFO: JSON.stringify(await this.#info()),
    };
    const output = await new Promise<string>((resolve, reject) => {
      execFile(
        command,
        [...args],
        { env: environment, timeout: runMs, maxBuffer: largestOutput, killSignal: 'SIGKILL' },
        (error, stdout, stderr) => (error ? reject(this.#runFailure(error, stderr)) : resolve(stdout)),
      ).stdin?.end();
    });
    this.#calls.inc({ code: '0', call_status: 'no_error' });
    return this.#decode(output);
  }

  #runFailure(
    error: Error & { code?: string | number | null; killed?: boolean },
    stderr: string,
  ): CredentialError {
    const { command, installHint } = this.#options.config;
    if (error.code === 'ENOENT') {
      this.#calls.inc({ code: '1', call_status: 'plugin_not_found_error' });
      const hint =
        installHint === undefined ? 'install it, or correct users[].user.exec.command' : installHint.trim();
      return new CredentialError(`credential plugin ${command} is not there: ${hint}`, { cause: error });
    }
    const code = typeof error.code === 'number' ? error.code : 1;
    this.#calls.inc({ code: String(code), call_status: 'plugin_execution_error' });
    const how = error.killed
      ? `took longer than ${runMs / 1000} s or wrote too much, and was killed`
      : `failed (${typeof error.code === 'number' ? `exit code ${code}` : (error.code ?? error.message)})`;
    const said = stderr.trim().slice(-1024);
    return new CredentialError(`credential plugin ${command} ${how}${said && `: ${said}`}`, { cause: error });
  }

  async #info(): Promise<unknown> {
    const { config, cluster, authorityPem } = this.#options;
    const spec: Record<string, unknown> = { interactive: false };
    if (config.provideClusterInfo) {
      const authority = await authorityPem();
      spec.cluster = {
        server: cluster.server,
        ...(cluster.tlsServerName !== undefined && { 'tls-server-name': cluster.tlsServerName }),
        ...(cluster.insecureSkipTlsVerify && { 'insecure-skip-tls-verify': true }),
        ...(authority !== undefined && {
          'certificate-authority-data': Buffer.from(authority).toString('base64'),
        }),
        ...(cluster.proxyUrl !== undefined && { 'proxy-url': cluster.proxyUrl }),
        ...(cluster.disableCompression && { 'disable-compression': true }),
        ...(cluster.execConfig !== undefined && { config: cluster.execConfig }),
      };
    }
    return { kind: 'ExecCredential', apiVersion: config.apiVersion, spec };
  }

  #decode(output: string): PluginCredentials {
    const { command, apiVersion } = this.#options.config;
    const refuse = (why: string, cause?: unknown) =>
      new CredentialError(`credential plugin ${command}: ${why}`, { cause });
    let answer: Record<string, unknown>;
    try {
      answer = record(JSON.parse(output));
    } catch {
      // The cause would quote the output, which may hold a token.
      throw refuse('its output is not JSON');
    }
    if (answer.kind !== 'ExecCredential') throw refuse('its output is no ExecCredential');
    if (answer.apiVersion !== apiVersion)
      throw refuse(`it speaks ${String(answer.apiVersion)}, the kubeconfig asks for ${apiVersion}`);
    const status = record(answer.status);
    const token = text(status.token);
    const certificate = text(status.clientCertificateData);
    const key = text(status.clientKeyData);
    if ((certificate === undefined) !== (key === undefined))
      throw refuse('it gave one of clientCertificateData and clientKeyData without the other');
    if (token === undefined && certificate === undefined)
      throw refuse('it gave neither a token nor a certificate');
    const expiration = text(status.expirationTimestamp);
    const expiresAt = expiration === undefined ? undefined : Date.parse(expiration);
    if (Number.isNaN(expiresAt)) throw refuse('its expirationTimestamp is not an RFC 3339 time');
    if (certificate !== undefined) this.#measure(certificate, refuse);
    return {
      ...(token !== undefined && { token }),
      ...(certificate !== undefined && key !== undefined && { certificate: { certificate, key } }),
      ...(expiresAt !== undefined && { expiresAt }),
    };
  }

  #measure(certificate: string, refuse: (why: string, cause?: unknown) => CredentialError): void {
    try {
      const { validToDate } = new X509Certificate(certificate);
      this.#ttl.set((validToDate.getTime() - this.#options.clock.now()) / 1000);
    } catch (cause) {
      throw refuse('its clientCertificateData is not a PEM certificate', cause);
    }
  }
}

/** Keeps the former certificate object when it is the same one, so that connections stay. */
function sameCertificate(former: PluginCredentials | undefined, given: PluginCredentials): PluginCredentials {
  const a = former?.certificate;
  const b = given.certificate;
  return a && b && a.certificate === b.certificate && a.key === b.key ? { ...given, certificate: a } : given;
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
