/**
 * Has the cluster sign a key: files a CertificateSigningRequest and waits, by watch, for what becomes of it.
 *
 * Guarantees: ends with a certificate, with an error that says who refused and why, or with the signal. A
 * request that nobody approves is said clearly, with the command that approves it, at most once a minute.
 */
import { type ApiClient, ApiError } from '../client/api-client.ts';
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';

export type CertificateSigner =
  | 'kubernetes.io/kube-apiserver-client-kubelet'
  | 'kubernetes.io/kubelet-serving';

/** `CertificateSigningRequest` (certificates.k8s.io/v1), as far as it is used. */
interface SigningRequest {
  readonly metadata?: { readonly name?: string; readonly resourceVersion?: string; readonly uid?: string };
  readonly status?: {
    readonly certificate?: string;
    readonly conditions?: readonly { type?: string; status?: string; reason?: string; message?: string }[];
  };
}

export interface CertificateSigningOptions {
  readonly client: ApiClient;
  readonly signer: CertificateSigner;
  /** PEM. */
  readonly request: string;
  /** The object's name, when asking again shall find the same object; else the server makes one up. */
  readonly name?: string;
  readonly clock: Clock;
  readonly notice: ApprovalNotice;
}

/** The request was denied, has failed, or is gone; asking again may help. */
export class CertificateRefusedError extends Error {
  override readonly name = 'CertificateRefusedError';
  /** Somebody decided so: asking again at once would only annoy. */
  readonly denied: boolean;
  constructor(message: string, denied: boolean) {
    super(message);
    this.denied = denied;
  }
}

const collection = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
/** Approvers of a cluster answer within seconds. */
const firstNoticeMs = 15_000;
const noticeEveryMs = 60_000;
const watchSeconds = 300;
const pauseMs = 2000;

/** Says which request waits, at most once a minute however many there are. */
export class ApprovalNotice {
  readonly #logger: Logger;
  readonly #clock: Clock;
  #saidAt = Number.NEGATIVE_INFINITY;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** Speaks for as long as the request waits; the returned function says that it waits no more. */
  waiting(name: string, signer: string): () => void {
    let cancel = this.#clock.after(firstNoticeMs, () => this.#say(name, signer, (next) => (cancel = next)));
    return () => cancel();
  }

  #say(name: string, signer: string, keep: (cancel: () => void) => void): void {
    const now = this.#clock.now();
    const wait = this.#saidAt + noticeEveryMs - now;
    if (wait <= 0) {
      this.#saidAt = now;
      this.#logger.warn('A certificate request waits for approval; nothing in the cluster has approved it', {
        csr: name,
        signerName: signer,
        command: `kubectl certificate approve ${name}`,
      });
    }
    const again = wait <= 0 ? noticeEveryMs : wait;
    keep(this.#clock.after(again, () => this.#say(name, signer, keep)));
  }
}

/**
 * The signed certificate (PEM). Rejects with {@link CertificateRefusedError}, with the client's errors when the
 * request cannot be filed, or with the signal's reason. Losing the server while waiting is no error.
 *
 * Differs from the kubelet: a request that waits is waited for, not replaced by another one every 15 minutes.
 */
export async function signCertificate(
  options: CertificateSigningOptions,
  signal: AbortSignal,
): Promise<string> {
  const { client, signer, clock, notice } = options;
  let object = await file(options, signal);
  const name = object.metadata?.name ?? options.name ?? '';
  const done = notice.waiting(name, signer);
  try {
    for (;;) {
      const certificate = outcome(object, signer);
      if (certificate !== undefined) return certificate;
      const began = clock.now();
      object = (await next(client, name, object, signal)) ?? object;
      if (outcome(object, signer) !== undefined) continue;
      // The watch has ended, or never began: look again, but not in a hurry.
      if (clock.now() - began < pauseMs) await sleep(clock, pauseMs, signal);
      object = (await look(client, name, signal)) ?? object;
    }
  } finally {
    done();
  }
}

async function file(options: CertificateSigningOptions, signal: AbortSignal): Promise<SigningRequest> {
  const { client, signer, request, name } = options;
  try {
    return await client.request<SigningRequest>({
      method: 'POST',
      path: collection,
      body: {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: name === undefined ? { generateName: 'csr-' } : { name },
        spec: {
          request: Buffer.from(request).toString('base64'),
          signerName: signer,
          usages: [
            'digital signature',
            signer === 'kubernetes.io/kubelet-serving' ? 'server auth' : 'client auth',
          ],
        },
      },
      signal,
    });
  } catch (error) {
    if (!(error instanceof ApiError && error.alreadyExists && name !== undefined)) throw error;
    // Filed before a restart: the name says that it is for the same key and subject.
    return client.request<SigningRequest>({ method: 'GET', path: `${collection}/${name}`, signal });
  }
}

/** The object as soon as it has changed; undefined when the watch ended first. */
async function next(
  client: ApiClient,
  name: string,
  from: SigningRequest,
  signal: AbortSignal,
): Promise<SigningRequest | undefined> {
  const version = from.metadata?.resourceVersion;
  const end = new AbortController();
  const onAbort = () => end.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  let decided: SigningRequest | undefined;
  let gone = false;
  try {
    await client.watch<SigningRequest>(
      {
        method: 'GET',
        path: collection,
        query: {
          fieldSelector: `metadata.name=${name}`,
          timeoutSeconds: String(watchSeconds),
          ...(version !== undefined && { resourceVersion: version }),
        },
        signal: end.signal,
      },
      ({ type, object }) => {
        if (type === 'DELETED') gone = true;
        else if (type === 'ADDED' || type === 'MODIFIED') {
          const { status } = object;
          if (status?.certificate === undefined && !status?.conditions?.some(isRefusal)) return;
          decided = object;
        } else if (type === 'BOOKMARK') return;
        end.abort();
      },
    );
  } catch {
    // Ours when there is something to tell; otherwise the caller looks again.
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
  if (gone)
    throw new CertificateRefusedError(
      `certificate request ${name} was deleted before it was approved; asking again`,
      false,
    );
  return decided;
}

async function look(
  client: ApiClient,
  name: string,
  signal: AbortSignal,
): Promise<SigningRequest | undefined> {
  try {
    return await client.request<SigningRequest>({ method: 'GET', path: `${collection}/${name}`, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError && error.notFound)
      throw new CertificateRefusedError(
        `certificate request ${name} is gone, nobody approved it; asking again`,
        false,
      );
    return undefined;
  }
}

function isRefusal({ type, status }: { type?: string; status?: string }): boolean {
  return (type === 'Denied' || type === 'Failed') && status !== 'False';
}

/** The certificate if there is one. Throws when the request was refused. */
function outcome({ metadata, status }: SigningRequest, signer: string): string | undefined {
  const name = metadata?.name ?? '';
  const refusal = status?.conditions?.find(isRefusal);
  if (refusal) {
    const denied = refusal.type === 'Denied';
    const why = [refusal.reason, refusal.message].filter(Boolean).join(': ') || 'no reason given';
    const remedy = denied
      ? 'ask whoever approves node certificates; the agent asks again later'
      : 'see the log of kube-controller-manager, which signs';
    throw new CertificateRefusedError(
      `certificate request ${name} (${signer}) ${denied ? 'was denied' : 'has failed'} (${why}): ${remedy}`,
      denied,
    );
  }
  if (!status?.certificate) return undefined;
  return Buffer.from(status.certificate, 'base64').toString('utf8');
}
