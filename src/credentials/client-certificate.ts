/**
 * Renews the node's client certificate (`rotateCertificates`) between 70 % and 90 % of its life. The client
 * reads `kubelet-client-current.pem` and goes over to a new certificate by itself.
 *
 * Guarantees: `run` ends only with its signal; one that has expired is asked for anew with the bootstrap
 * credentials where there are some, and without a crash loop where there are none.
 *
 * Differs from the kubelet: it does not exit five minutes after the certificate has expired to be started
 * again; it bootstraps again in place.
 */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ApiClient } from '../client/api-client.ts';
import type { Kubeconfig, PemSource } from '../client/kubeconfig.ts';
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { retryDelay, rotationTime } from './certificate-pace.ts';
import { ApprovalNotice } from './certificate-signing.ts';
import type { CertificateStore, StoredCertificate } from './certificate-store.ts';
import { CertificateTrouble } from './certificate-trouble.ts';
import { requestClientCertificate } from './client-certificate-request.ts';

export interface ClientCertificateRotationOptions {
  readonly store: CertificateStore;
  readonly nodeName: string;
  /** Speaks as the node. */
  readonly client: ApiClient;
  /** Speaks with the bootstrap credentials, for when the node's own have expired. */
  readonly bootstrapClient?: () => Promise<ApiClient & { close(): void }>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Timers go wrong when a machine is suspended or its clock set; so they are kept short. */
const longestWaitMs = 10 * 60_000;

export class ClientCertificateRotation {
  readonly #options: ClientCertificateRotationOptions;
  readonly #notice: ApprovalNotice;
  readonly #renewErrors;
  #current: StoredCertificate | undefined;
  #rotateAt = 0;

  constructor(options: ClientCertificateRotationOptions) {
    const { logger, clock, metrics } = options;
    this.#options = options;
    this.#notice = new ApprovalNotice(logger, clock);
    this.#renewErrors = metrics.counter({
      name: 'kubelet_certificate_manager_client_expiration_renew_errors',
      help: 'Renewals of the client certificate that failed.',
    });
    metrics.observedGauge(
      {
        name: 'kubelet_certificate_manager_client_ttl_seconds',
        help: 'Seconds until the client certificate expires, negative when it has expired.',
      },
      () => [
        {
          value: this.#current
            ? Math.round((this.#current.notAfter - clock.now()) / 1000)
            : Number.POSITIVE_INFINITY,
        },
      ],
    );
  }

  /** When the certificate will be renewed, epoch milliseconds; 0 before `run`. */
  get rotateAt(): number {
    return this.#rotateAt;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { store, clock, random, logger } = this.#options;
    const trouble = new CertificateTrouble(
      logger,
      'The client certificate could not be renewed, trying again',
    );
    let failures = 0;
    while (!signal.aborted) {
      try {
        this.#current ??= await this.#load(store);
        if (this.#current && this.#rotateAt === 0) this.#rotateAt = rotationTime(this.#current, random());
        const wait = this.#current ? this.#rotateAt - clock.now() : 0;
        if (wait > 0) {
          await sleep(clock, Math.min(wait, longestWaitMs), signal);
          continue;
        }
        await this.#renew(signal);
        failures = 0;
        trouble.succeeded();
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        this.#renewErrors.inc();
        trouble.failed(error, { expires: this.#current?.leaf.validToDate.toISOString() });
        await sleep(clock, retryDelay(failures, error, random), signal).catch(() => {});
      }
    }
  }

  async #load(store: CertificateStore): Promise<StoredCertificate | undefined> {
    try {
      return await store.current();
    } catch (error) {
      this.#options.logger.error('The stored client certificate cannot be used', error);
      return undefined;
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { clock, client, bootstrapClient, store, nodeName, random, logger } = this.#options;
    const expired = this.#current === undefined || clock.now() >= this.#current.notAfter;
    const own = expired && bootstrapClient ? await bootstrapClient() : undefined;
    try {
      this.#current = await requestClientCertificate(
        { client: own ?? client, store, nodeName, clock, notice: this.#notice },
        signal,
      );
    } finally {
      own?.close();
    }
    this.#rotateAt = rotationTime(this.#current, random(), clock.now());
    logger.info('The client certificate was renewed', {
      expires: this.#current.leaf.validToDate.toISOString(),
      renewAt: new Date(this.#rotateAt).toISOString(),
    });
  }
}

/**
 * The kubeconfig with its client certificate replaced by the store's current one, which rotation renews. A
 * store that is empty, or holds an older certificate, is given the kubeconfig's first. A kubeconfig without a
 * client certificate stays as it is.
 */
export async function withRotatedCertificate(
  kubeconfig: Kubeconfig,
  store: CertificateStore,
): Promise<Kubeconfig> {
  const { user } = kubeconfig;
  const source = user.clientCertificate;
  if (!source) return kubeconfig;
  const current: PemSource = { file: store.currentPath };
  const own = 'file' in source.certificate && source.certificate.file === store.currentPath;
  if (!own) {
    const certificate = await pemText(source.certificate);
    const stored = await store.current().catch(() => undefined);
    const expires = new X509Certificate(certificate).validToDate.getTime();
    if (!stored || stored.notAfter < expires) await store.save(certificate, await pemText(source.key));
  }
  return { ...kubeconfig, user: { ...user, clientCertificate: { certificate: current, key: current } } };
}

async function pemText(source: PemSource): Promise<string> {
  return 'pem' in source ? source.pem : readFile(source.file, 'utf8');
}
