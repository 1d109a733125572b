/**
 * Gets a client certificate for the node and stores it. The key of a request under way is kept on disk and
 * the request is named after it, so that a restart goes on waiting for the same one.
 */
import { createHash, createPrivateKey, type KeyObject } from 'node:crypto';
import type { ApiClient } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import { certificateRequest, generateKey, keyDigest, keyPem } from './certificate-request.ts';
import { type ApprovalNotice, CertificateRefusedError, signCertificate } from './certificate-signing.ts';
import type { CertificateStore, StoredCertificate } from './certificate-store.ts';
import { nodeSubject } from './node-identity.ts';

export interface ClientCertificateRequestOptions {
  readonly client: ApiClient;
  readonly store: CertificateStore;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly notice: ApprovalNotice;
}

const signer = 'kubernetes.io/kube-apiserver-client-kubelet';

/** Rejects as {@link signCertificate} does; a refused key is not used again. */
export async function requestClientCertificate(
  { client, store, nodeName, clock, notice }: ClientCertificateRequestOptions,
  signal: AbortSignal,
): Promise<StoredCertificate> {
  const key = await pendingKey(store);
  const subject = nodeSubject(nodeName);
  const digest = createHash('sha256')
    .update(`${keyDigest(key)} ${subject.commonName} ${signer}`)
    .digest('hex');
  try {
    const request = certificateRequest(key, subject);
    const name = `node-csr-${digest.slice(0, 43)}`;
    const certificate = await signCertificate({ client, signer, request, name, clock, notice }, signal);
    const stored = await store.save(certificate, keyPem(key));
    await store.forgetPendingKey();
    if (stored.notAfter > clock.now()) return stored;
    throw new CertificateRefusedError(
      `the new client certificate has expired already (${stored.leaf.validTo}): set this machine's clock, ` +
        'or the signing duration of kube-controller-manager',
      false,
    );
  } catch (error) {
    if (error instanceof CertificateRefusedError) await store.forgetPendingKey();
    throw error;
  }
}

async function pendingKey(store: CertificateStore): Promise<KeyObject> {
  const text = await store.pendingKey();
  try {
    if (text !== undefined) return createPrivateKey(text);
  } catch {
    // Damaged: a new one is as good.
  }
  const key = await generateKey();
  await store.savePendingKey(keyPem(key));
  return key;
}
