/**
 * Has signers of the cluster sign keys of pods: files a `PodCertificateRequest` (certificates.k8s.io/v1beta1) and
 * waits for what becomes of it. One watch tells of all requests of this node; it begins with the first one.
 */
import type { V1beta1PodCertificateRequest, V1PodCertificateProjection } from '@kubernetes/client-node';
import { type ApiClient, ApiError } from '../client/api-client.ts';
import { sleep } from '../concurrency/clock.ts';
import type { Pod, Wire } from '../kubernetes/types.ts';
import type { ServiceAccountFacts } from './service-accounts.ts';
import { SyncedObjects, type SyncedObjectsOptions } from './synced-objects.ts';

type CertificateRequest = Wire<V1beta1PodCertificateRequest>;
export type PodCertificateProjection = Wire<V1PodCertificateProjection>;

/** What a signer has issued. */
export interface IssuedCertificate {
  readonly certificateChain: string;
  readonly beginRefreshAt?: string | undefined;
}

/** A signer has said no, or that it cannot. */
export class CertificateRefusal extends Error {
  override readonly name = 'CertificateRefusal';
  readonly condition: 'Denied' | 'Failed';
  /** The reason in the condition. */
  readonly reason: string;
  constructor(request: string, condition: 'Denied' | 'Failed', reason: string, message: string) {
    const why = [reason, message].filter(Boolean).join(': ') || 'no reason given';
    super(`PodCertificateRequest ${request} ${condition === 'Denied' ? 'was denied' : 'has failed'}: ${why}`);
    this.condition = condition;
    this.reason = reason;
  }
}

export interface PodCertificateRequestsOptions extends SyncedObjectsOptions {
  readonly client: Pick<ApiClient, 'request'>;
  readonly nodeName: string;
  /** Undefined until the node is registered. */
  readonly nodeUid: () => string | undefined;
  readonly accounts: { account(namespace: string, name: string): Promise<Pick<ServiceAccountFacts, 'uid'>> };
}

/** One key that shall be signed. */
export interface SigningWish {
  readonly pod: Pod;
  readonly projection: PodCertificateProjection;
  /** PKCS #10, DER. */
  readonly request: Uint8Array;
  /** Told the name of the request, `namespace/name`, once it is filed. */
  readonly onFiled: (request: string) => void;
}

const group = '/apis/certificates.k8s.io/v1beta1';
const requestTimeoutMs = 10_000;
/** Requests are looked at by their names as well, should the watch be refused or stuck. */
const lookMs = 60_000;

export class PodCertificateRequests {
  readonly #options: PodCertificateRequestsOptions;
  readonly #requests: SyncedObjects<CertificateRequest>;
  readonly #waiting = new Set<() => void>();

  constructor(options: PodCertificateRequestsOptions) {
    this.#options = options;
    this.#requests = new SyncedObjects({
      ...options,
      path: `${group}/podcertificaterequests`,
      query: { fieldSelector: `spec.nodeName=${options.nodeName}` },
      what: 'pod certificate requests',
      onObjects: () => {
        for (const look of this.#waiting) look();
      },
    });
  }

  /**
   * Files a request and waits for the answer. Rejects with {@link CertificateRefusal}, with an error that names
   * what is wrong when it cannot be filed or is deleted, or with the signal's reason.
   */
  async sign(wish: SigningWish, signal: AbortSignal): Promise<IssuedCertificate> {
    const filed = await this.#file(wish, signal);
    const { namespace = '', name = '' } = filed.metadata ?? {};
    wish.onFiled(`${namespace}/${name}`);
    return answer(filed) ?? (await this.#decided(namespace, name, signal));
  }

  stop(): void {
    this.#requests.stop();
  }

  async #file({ pod, projection, request }: SigningWish, signal: AbortSignal): Promise<CertificateRequest> {
    const { client, nodeName, nodeUid, accounts } = this.#options;
    const { namespace, name, uid } = pod.metadata;
    const serviceAccountName = pod.spec.serviceAccountName || 'default';
    const ownUid = nodeUid();
    if (ownUid === undefined)
      throw new Error('the API server has not told yet which Node object stands for this node');
    const { uid: serviceAccountUID } = await accounts.account(namespace, serviceAccountName);
    const { signerName, maxExpirationSeconds, userAnnotations } = projection;
    return await client.request<CertificateRequest>({
      method: 'POST',
      path: `${group}/namespaces/${encodeURIComponent(namespace)}/podcertificaterequests`,
      body: {
        apiVersion: 'certificates.k8s.io/v1beta1',
        kind: 'PodCertificateRequest',
        metadata: {
          namespace,
          generateName: `req-${name.slice(0, 50)}-`,
          ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }],
        },
        spec: {
          signerName,
          podName: name,
          podUID: uid,
          serviceAccountName,
          serviceAccountUID,
          nodeName,
          nodeUID: ownUid,
          ...(maxExpirationSeconds !== undefined && { maxExpirationSeconds }),
          // Its signature proves that this node holds the key.
          stubPKCS10Request: Buffer.from(request).toString('base64'),
          ...(userAnnotations && { unverifiedUserAnnotations: userAnnotations }),
        },
      },
      timeoutMs: requestTimeoutMs,
      signal,
    });
  }

  async #decided(namespace: string, name: string, signal: AbortSignal): Promise<IssuedCertificate> {
    const key = `${namespace}/${name}`;
    const outcome = Promise.withResolvers<IssuedCertificate>();
    const deleted = () => outcome.reject(new Error(`PodCertificateRequest ${key} was deleted undecided`));
    const judge = (found: CertificateRequest) => {
      try {
        const issued = answer(found);
        if (issued) outcome.resolve(issued);
      } catch (error) {
        outcome.reject(error);
      }
    };
    let seen = false;
    const look = () => {
      const found = this.#requests.current()?.get(key);
      if (found) judge(found);
      // The watch may be behind the answer to filing it; but what it has shown once, it has seen go.
      else if (seen) deleted();
      seen ||= found !== undefined;
    };
    const done = new AbortController();
    const onAbort = () => outcome.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#waiting.add(look);
    try {
      signal.throwIfAborted();
      look();
      void this.#lookEachMinute({ namespace, name, judge, deleted }, AbortSignal.any([signal, done.signal]));
      return await outcome.promise;
    } finally {
      this.#waiting.delete(look);
      signal.removeEventListener('abort', onAbort);
      done.abort();
    }
  }

  async #lookEachMinute(
    request: {
      readonly namespace: string;
      readonly name: string;
      readonly judge: (found: CertificateRequest) => void;
      readonly deleted: () => void;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const { client, clock } = this.#options;
    const path = `${group}/namespaces/${encodeURIComponent(request.namespace)}/podcertificaterequests/${request.name}`;
    while (!signal.aborted) {
      try {
        await sleep(clock, lookMs, signal);
        request.judge(await client.request({ method: 'GET', path, timeoutMs: requestTimeoutMs, signal }));
      } catch (error) {
        if (error instanceof ApiError && error.notFound) request.deleted();
      }
    }
  }
}

/** What was issued, if anything has been decided. Throws {@link CertificateRefusal}. */
function answer({ metadata, status }: CertificateRequest): IssuedCertificate | undefined {
  for (const { type, status: holds, reason = '', message = '' } of status?.conditions ?? []) {
    if (holds !== 'True' || (type !== 'Denied' && type !== 'Failed')) continue;
    throw new CertificateRefusal(`${metadata?.namespace}/${metadata?.name}`, type, reason, message);
  }
  if (!status?.certificateChain) return undefined;
  return { certificateChain: status.certificateChain, beginRefreshAt: status.beginRefreshAt };
}
