/**
 * Certificates of pods (`podCertificate` sources): each source of a pod has a key of its own, which a signer of
 * the cluster signs and which is replaced, with a new key, when the signer would have it replaced.
 *
 * ```
 *   pending ──issued──▶ fresh ──beginRefreshAt──▶ due ──issued──▶ fresh
 *      │                                           │ │
 *      └──denied, failed──▶ refused, for good      │ └──notAfter──▶ expired ──issued──▶ fresh
 *                                                  └──denied, failed, no answer: asks again
 * ```
 *
 * Guarantees: a key is only in memory and in the files of the pod; one request at a time for each source; a
 * certificate serves to its end while no new one can be had; what lies in the files serves on after a restart.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import { podKey } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import { errorText } from '../telemetry/error-text.ts';
import { type EventRecorder, podEventObject } from '../telemetry/events.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import {
  CertificateRefusal,
  type PodCertificateProjection,
  PodCertificateRequests,
  type PodCertificateRequestsOptions,
} from './pod-certificate-requests.ts';
import {
  type DatedCredential,
  issuedCredential,
  type PodCredential,
  UnfitCertificateError,
  writtenCredential,
} from './pod-credential.ts';
import { waitAtMost } from './waiting.ts';

/** A pod has no certificate that serves, and why. */
export class PodCertificateError extends Error {
  override readonly name = 'PodCertificateError';
}

export interface PodCertificateWish {
  readonly pod: Pod;
  /** Names the source among those of the pod; the same each time. */
  readonly source: string;
  readonly projection: PodCertificateProjection;
  /** What the files of the source hold now; serves on when it still can. */
  readonly existing: string;
}

export interface PodCertificatesOptions extends PodCertificateRequestsOptions {
  /** Makes a key of a type, PKCS #8 in PEM, and the request to sign it, PKCS #10 in DER. */
  readonly makeKey: (keyType: string) => Promise<{ readonly key: string; readonly request: Uint8Array }>;
  /** The pod's certificate is another one now, or is refused. */
  readonly onChange: (podUid: string) => void;
  readonly events: EventRecorder;
  readonly metrics: Metrics;
  /** From 0 up to 1, for spreading renewals. */
  readonly random: () => number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** One source of one pod. */
interface Entry {
  readonly pod: Pod;
  readonly projection: PodCertificateProjection;
  readonly ending: AbortController;
  /** Resolves with the first certificate or refusal. */
  readonly first: PromiseWithResolvers<void>;
  held: DatedCredential | undefined;
  refusal: CertificateRefusal | undefined;
  /** The request that is waited for: `namespace/name`. */
  waitsFor: string | undefined;
  /** What went wrong last. */
  problem: string | undefined;
  /** Takes back what is to be said when the certificate gets too old. */
  warnings: readonly (() => void)[];
}

type State = 'pending' | 'fresh' | 'overdue' | 'expired' | 'denied' | 'failed';

/** Signers in the cluster answer within that; a pod that waits longer says so. */
const patienceMs = 5_000;
const longestJitterMs = 5 * 60_000;
const overdueMs = 10 * 60_000;
const firstRetryMs = 5_000;
const longestRetryMs = 5 * 60_000;

export class PodCertificates {
  readonly #options: PodCertificatesOptions;
  readonly #requests: PodCertificateRequests;
  /** By pod, then by source. */
  readonly #pods = new Map<string, Map<string, Entry>>();

  constructor(options: PodCertificatesOptions) {
    this.#options = options;
    this.#requests = new PodCertificateRequests(options);
    options.metrics.observedGauge(
      {
        name: 'kubelet_podcertificate_states',
        help: 'Certificates of pods, by signer and state.',
        labels: ['signer_name', 'state'],
      },
      () => this.#series(),
    );
  }

  /**
   * The credential that serves now. Rejects with {@link PodCertificateError} when there is none (yet): the pod is
   * told when that changes, unless a signer has refused; or with the signal's reason.
   */
  async credential(wish: PodCertificateWish, signal: AbortSignal): Promise<PodCredential> {
    signal.throwIfAborted();
    const { clock } = this.#options;
    const entry = this.#entry(wish);
    if (!entry.held && !entry.refusal) {
      await waitAtMost(entry.first.promise, { ms: patienceMs, clock, signal });
    }
    const { held, refusal } = entry;
    if (held && held.notAfter > clock.now()) return held;
    const { signerName } = entry.projection;
    if (refusal) {
      throw new PodCertificateError(
        `the signer "${signerName}" issues no certificate for this pod: ${refusal.message}; ` +
          'once the reason is gone, delete the pod to ask again',
        { cause: refusal },
      );
    }
    const expired = held && `the certificate has expired at ${new Date(held.notAfter).toISOString()}, and `;
    const why =
      entry.waitsFor === undefined
        ? `no certificate could be requested of the signer "${signerName}": ${entry.problem ?? 'no answer yet'}`
        : `PodCertificateRequest ${entry.waitsFor} waits for the signer "${signerName}"; does it run?`;
    throw new PodCertificateError(`${expired ?? ''}${why}`);
  }

  /** The pod is gone: nothing is renewed for it any more. */
  forget(podUid: string): void {
    for (const entry of this.#pods.get(podUid)?.values() ?? []) {
      entry.ending.abort(new Error('the pod needs no certificate any more'));
      for (const cancel of entry.warnings) cancel();
    }
    this.#pods.delete(podUid);
  }

  close(): void {
    for (const uid of this.#pods.keys()) this.forget(uid);
    this.#requests.stop();
  }

  #entry({ pod, source, projection, existing }: PodCertificateWish): Entry {
    const { uid } = pod.metadata;
    const sources = this.#pods.get(uid) ?? new Map<string, Entry>();
    this.#pods.set(uid, sources);
    const known = sources.get(source);
    if (known) return known;
    const entry: Entry = {
      pod,
      projection,
      ending: new AbortController(),
      first: Promise.withResolvers(),
      held: undefined,
      refusal: undefined,
      waitsFor: undefined,
      problem: undefined,
      warnings: [],
    };
    sources.set(source, entry);
    const written = writtenCredential(existing, projection.keyType, this.#options.clock.now());
    if (written) this.#hold(entry, written);
    void this.#keep(entry, entry.ending.signal);
    return entry;
  }

  /** Never rejects: ends with the pod, or when a signer has refused the first certificate. */
  async #keep(entry: Entry, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    const fields = { pod: podKey(entry.pod), podUID: entry.pod.metadata.uid };
    const { signerName } = entry.projection;
    let retryMs = firstRetryMs;
    try {
      if (entry.held) await sleep(clock, this.#untilRefresh(entry.held), signal);
      for (;;) {
        try {
          const issued = await this.#issue(entry, signal);
          signal.throwIfAborted();
          this.#hold(entry, issued);
          this.#changed(entry);
          retryMs = firstRetryMs;
          await sleep(clock, this.#untilRefresh(issued), signal);
          continue;
        } catch (error) {
          signal.throwIfAborted();
          entry.problem = errorText(error);
          if (error instanceof CertificateRefusal && this.#refused(entry, error)) return;
          const what = entry.held
            ? 'could not be renewed; the old one serves to its end'
            : 'cannot be had yet';
          logger.warn(`The certificate of a pod ${what}`, { ...fields, signerName, err: entry.problem });
        }
        await sleep(clock, retryMs, signal);
        retryMs = Math.min(retryMs * 2, longestRetryMs);
      }
    } catch (error) {
      if (!signal.aborted) logger.error('Keeping the certificate of a pod has ended', error, fields);
    }
  }

  /** Asks for a certificate of a new key. */
  async #issue(entry: Entry, signal: AbortSignal): Promise<DatedCredential> {
    const { clock, makeKey } = this.#options;
    const { pod, projection } = entry;
    try {
      const { key, request } = await makeKey(projection.keyType);
      const onFiled = (name: string) => (entry.waitsFor = name);
      const issued = await this.#requests.sign({ pod, projection, request, onFiled }, signal);
      return issuedCredential(key, issued, clock.now());
    } catch (error) {
      if (!(error instanceof UnfitCertificateError)) throw error;
      throw new Error(`PodCertificateRequest ${entry.waitsFor}: ${error.message}`, { cause: error });
    } finally {
      entry.waitsFor = undefined;
    }
  }

  #hold(entry: Entry, credential: DatedCredential): void {
    const { clock, events } = this.#options;
    const now = clock.now();
    for (const cancel of entry.warnings) cancel();
    const warn = (at: number, reason: string, message: string) =>
      clock.after(at - now, () => events.event(podEventObject(entry.pod), 'Warning', reason, message));
    entry.warnings = [
      // An agent that comes back late has not had its chance yet.
      warn(
        Math.max(credential.beginRefreshAt, now) + overdueMs,
        'CertificateOverdueForRefresh',
        'PodCertificate refresh overdue',
      ),
      warn(credential.notAfter, 'CertificateExpired', 'PodCertificate expired'),
    ];
    entry.held = credential;
    entry.problem = undefined;
    entry.first.resolve();
  }

  /**
   * True when that is the last word. A certificate that is there serves on, and another is asked for later.
   */
  #refused(entry: Entry, refusal: CertificateRefusal): boolean {
    const { condition, reason } = refusal;
    this.#options.events.event(podEventObject(entry.pod), 'Warning', condition, reason);
    if (entry.held) return false;
    entry.refusal = refusal;
    entry.first.resolve();
    this.#changed(entry);
    return true;
  }

  #changed({ pod, ending }: Entry): void {
    if (!ending.signal.aborted) this.#options.onChange(pod.metadata.uid);
  }

  /** Spread over minutes, as far as the certificate's life allows; never at once, whatever a signer says. */
  #untilRefresh({ beginRefreshAt, notAfter }: DatedCredential): number {
    const now = this.#options.clock.now();
    const left = Math.max(notAfter - now, 0);
    const begin = Math.max(beginRefreshAt - now, Math.min(left / 10, firstRetryMs));
    return begin + this.#options.random() * Math.min(longestJitterMs, Math.max(left - begin, 0) / 2);
  }

  #series(): Iterable<{ value: number; labels: Record<string, string> }> {
    const now = this.#options.clock.now();
    const counts = new Map<string, { value: number; labels: Record<string, string> }>();
    for (const entries of this.#pods.values()) {
      for (const entry of entries.values()) {
        const labels = { signer_name: entry.projection.signerName, state: stateOf(entry, now) };
        const key = Object.values(labels).join(' ');
        counts.set(key, { labels, value: (counts.get(key)?.value ?? 0) + 1 });
      }
    }
    return counts.values();
  }
}

function stateOf({ held, refusal }: Entry, now: number): State {
  if (refusal) return refusal.condition === 'Denied' ? 'denied' : 'failed';
  if (!held) return 'pending';
  if (held.notAfter <= now) return 'expired';
  return held.beginRefreshAt + overdueMs <= now ? 'overdue' : 'fresh';
}
