/**
 * The certificate the agent's HTTPS server shows: signed by its own key (`kubelet.crt`, `kubelet.key`), or by
 * the cluster (`serverTLSBootstrap`, signer `kubernetes.io/kubelet-serving`) for the node's addresses.
 *
 * Guarantees: a signed certificate always fits the addresses it was last given; when they change, or 70 % to
 * 90 % of its life have passed, a new one is asked for while the old one serves on.
 */
import { mkdir } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { ApiClient } from '../client/api-client.ts';
import { type Clock, sleep } from '../concurrency/clock.ts';
import { readFileIfExists, writeFileAtomically } from '../linux/atomic-file.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Counter, Metrics } from '../telemetry/metrics.ts';
import { retryDelay, rotationTime } from './certificate-pace.ts';
import { certificateRequest, generateKey, keyPem, selfSignedCertificate } from './certificate-request.ts';
import { ApprovalNotice, CertificateRefusedError, signCertificate } from './certificate-signing.ts';
import { type CertificateStore, decodePair, type StoredCertificate } from './certificate-store.ts';
import { CertificateTrouble } from './certificate-trouble.ts';
import { nodeSubject } from './node-identity.ts';

/** PEM texts, as TLS takes them. */
export interface ServingPair {
  readonly certificate: string;
  readonly key: string;
}

/** An entry of `Node.status.addresses`. */
export interface ServingAddress {
  readonly type: string;
  readonly address: string;
}

const selfSignedDays = 365;
const dayMs = 86_400_000;
/** Clocks differ: a certificate made this instant must be valid for those who are a little behind. */
const leewayMs = 60 * 60_000;
/** Share of its life after which a self-signed certificate is replaced at the next start. */
const oldAge = 0.9;

/**
 * `kubelet.crt` and `kubelet.key` of `--cert-dir`, made when they are missing, damaged or nearly expired.
 * Valid for a year, `CN=<host>@<unix time>`.
 *
 * Differs from the kubelet: P-256 instead of RSA, and an expired one is replaced.
 */
export async function selfSignedServingCertificate(options: {
  readonly directory: string;
  readonly hostName: string;
  readonly ips?: readonly string[];
  readonly clock: Clock;
}): Promise<ServingPair> {
  const { directory, hostName, ips = [], clock } = options;
  const paths = { certificate: join(directory, 'kubelet.crt'), key: join(directory, 'kubelet.key') };
  const now = clock.now();
  const certificate = await readFileIfExists(paths.certificate);
  const key = await readFileIfExists(paths.key);
  if (certificate !== undefined && key !== undefined) {
    try {
      const pair = decodePair(certificate, key, paths.certificate);
      if (now < pair.notBefore + (pair.notAfter - pair.notBefore) * oldAge) return { certificate, key };
    } catch {
      // Damaged, or one of the two is from another time: both are made anew.
    }
  }
  const fresh = await generateKey();
  const names =
    isIP(hostName) === 0 ? { dnsNames: [hostName], ips } : { ips: [...new Set([hostName, ...ips])] };
  const pair: ServingPair = {
    certificate: selfSignedCertificate(
      fresh,
      { commonName: `${hostName}@${Math.floor(now / 1000)}`, ...names },
      { from: new Date(now - leewayMs), to: new Date(now + selfSignedDays * dayMs) },
    ),
    key: keyPem(fresh),
  };
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await writeFileAtomically(paths.key, pair.key, { mode: 0o600 });
  await writeFileAtomically(paths.certificate, pair.certificate, { mode: 0o644 });
  return pair;
}

export interface ServingCertificateOptions {
  /** Of `kubelet-server`, in `--cert-dir`. */
  readonly store: CertificateStore;
  readonly client: ApiClient;
  readonly nodeName: string;
  /** Told of each certificate to serve with from now on, the stored one first. */
  readonly onChange: (pair: ServingPair) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const rotationBuckets = [
  60, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000,
];
const longestWaitMs = 10 * 60_000;

interface Names {
  readonly dnsNames: readonly string[];
  readonly ips: readonly string[];
}

export class ServingCertificate {
  readonly #options: ServingCertificateOptions;
  readonly #notice: ApprovalNotice;
  readonly #failures: Counter;
  readonly #rotated;
  #current: StoredCertificate | undefined;
  #rotateAt = 0;
  #names: Names = { dnsNames: [], ips: [] };
  /** Aborted when other addresses make what is under way pointless. */
  #changed = new AbortController();

  constructor(options: ServingCertificateOptions) {
    const { logger, clock, metrics } = options;
    this.#options = options;
    this.#notice = new ApprovalNotice(logger, clock);
    this.#rotated = metrics.histogram({
      name: 'kubelet_certificate_manager_server_rotation_seconds',
      help: 'How long the former serving certificate had been in use when it was renewed, in seconds.',
      buckets: rotationBuckets,
    });
    this.#failures = metrics.counter({
      name: 'kubelet_server_expiration_renew_errors',
      help: '[ALPHA] Times that renewing the serving certificate failed.',
    });
    metrics.observedGauge(
      {
        name: 'kubelet_certificate_manager_server_ttl_seconds',
        help: 'Seconds until the serving certificate expires, negative when it has expired.',
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

  /** What to serve with; undefined until the cluster has signed one for the first time. */
  current(): ServingPair | undefined {
    return this.#current;
  }

  /** The node's addresses as its status reports them; without any, nothing is asked for. */
  setAddresses(addresses: readonly ServingAddress[]): void {
    const names = namesOf(addresses);
    if (sameNames(names, this.#names)) return;
    this.#names = names;
    this.#changed.abort(new Error('the node has other addresses now'));
    this.#changed = new AbortController();
  }

  /** Follows until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, clock, random, logger } = this.#options;
    try {
      const stored = await store.current();
      if (stored && clock.now() < stored.notAfter) this.#use(stored);
    } catch (error) {
      logger.error('The stored serving certificate cannot be used', error);
    }
    const trouble = new CertificateTrouble(
      logger,
      'The serving certificate could not be renewed, trying again',
    );
    let failures = 0;
    while (!signal.aborted) {
      const end = new AbortController();
      const onAbort = (from: AbortSignal) => () => end.abort(from.reason);
      const stops = [signal, this.#changed.signal].map((from) => {
        const stop = onAbort(from);
        from.addEventListener('abort', stop, { once: true });
        return () => from.removeEventListener('abort', stop);
      });
      const changed = this.#changed.signal;
      try {
        const wait = this.#waitMs();
        if (wait > 0) await sleep(clock, Math.min(wait, longestWaitMs), end.signal);
        else {
          await this.#renew(end.signal);
          failures = 0;
          trouble.succeeded();
        }
      } catch (error) {
        if (!signal.aborted && !changed.aborted) {
          this.#failures.inc();
          trouble.failed(error);
          await sleep(clock, retryDelay(++failures, error, random), end.signal).catch(() => {});
        }
      } finally {
        for (const stop of stops) stop();
      }
    }
  }

  #waitMs(): number {
    const { dnsNames, ips } = this.#names;
    if (dnsNames.length === 0 && ips.length === 0) return longestWaitMs;
    if (!this.#current || !covers(this.#current, this.#names)) return 0;
    return Math.max(0, this.#rotateAt - this.#options.clock.now());
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { client, store, nodeName, clock, logger } = this.#options;
    const key = await generateKey();
    const request = certificateRequest(key, { ...nodeSubject(nodeName), ...this.#names });
    const signer = 'kubernetes.io/kubelet-serving';
    const certificate = await signCertificate(
      { client, signer, request, clock, notice: this.#notice },
      signal,
    );
    const former = this.#current;
    const stored = await store.save(certificate, keyPem(key));
    if (former) this.#rotated.observe((clock.now() - former.notBefore) / 1000);
    this.#use(stored, clock.now());
    if (clock.now() >= stored.notAfter || !covers(stored, this.#names))
      throw new CertificateRefusedError(
        'the new serving certificate has expired already, or lacks addresses of this node: ' +
          "check this machine's clock and the signer of kubernetes.io/kubelet-serving",
        true,
      );
    logger.info('The cluster has signed a serving certificate', {
      addresses: [...this.#names.dnsNames, ...this.#names.ips],
      expires: stored.leaf.validToDate.toISOString(),
    });
  }

  #use(stored: StoredCertificate, issuedAt?: number): void {
    this.#current = stored;
    this.#rotateAt = rotationTime(stored, this.#options.random(), issuedAt);
    this.#options.onChange({ certificate: stored.certificate, key: stored.key });
  }
}

/** Sorted, so that their order means nothing. */
function namesOf(addresses: readonly ServingAddress[]): Names {
  const dnsNames = new Set<string>();
  const ips = new Set<string>();
  for (const { type, address } of addresses) {
    if (isIP(address) !== 0) ips.add(address);
    else if (type === 'Hostname' || type.endsWith('DNS')) dnsNames.add(address);
  }
  // Signers refuse a request without an address to reach the node by.
  return ips.size === 0
    ? { dnsNames: [], ips: [] }
    : { dnsNames: [...dnsNames].sort(), ips: [...ips].sort() };
}

function sameNames(a: Names, b: Names): boolean {
  return a.dnsNames.join() === b.dnsNames.join() && a.ips.join() === b.ips.join();
}

function covers({ leaf }: StoredCertificate, { dnsNames, ips }: Names): boolean {
  const listed = (leaf.subjectAltName ?? '').split(', ');
  return (
    ips.every((ip) => leaf.checkIP(ip) !== undefined) &&
    dnsNames.every((name) => listed.includes(`DNS:${name}`))
  );
}
