/** A key and the certificates issued for it, as a pod's files hold them, and when they are due again. Pure. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

export interface PodCredential {
  /** PEM, PKCS #8. */
  readonly key: string;
  /** PEM: the certificate of the key, then those between it and a root. */
  readonly chain: string;
}

/** A credential and its times, epoch milliseconds. */
export interface DatedCredential extends PodCredential {
  readonly notAfter: number;
  /** When whoever signed it would have it replaced. */
  readonly beginRefreshAt: number;
}

/** What was issued, or lies on disk, is no certificate for the key. */
export class UnfitCertificateError extends Error {
  override readonly name = 'UnfitCertificateError';
}

/** Without a word of the signer: the part of its life after which a certificate is replaced. */
const refreshAtPart = 2 / 3;

const certificateBlock = /-----BEGIN CERTIFICATE-----([\s\S]*?)-----END CERTIFICATE-----/g;
const keyBlock = /-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----\n?/;

/**
 * What a signer has issued for `key`. Throws {@link UnfitCertificateError} when it is no certificate of it, or
 * one that serves no more by `now`.
 */
export function issuedCredential(
  key: string,
  issued: { readonly certificateChain: string; readonly beginRefreshAt?: string | undefined },
  now: number,
): DatedCredential {
  const certificates = certificatesIn(issued.certificateChain);
  const [leaf] = certificates;
  if (!leaf) throw new UnfitCertificateError('what was issued holds no certificate');
  if (!leaf.checkPrivateKey(createPrivateKey(key))) {
    throw new UnfitCertificateError('the certificate that was issued is for another key');
  }
  const notAfter = leaf.validToDate.getTime();
  if (notAfter <= now) {
    throw new UnfitCertificateError(
      `the certificate that was issued has expired already (${new Date(notAfter).toISOString()}); ` +
        "look at this machine's clock",
    );
  }
  const told = Date.parse(issued.beginRefreshAt ?? '');
  return {
    key,
    chain: certificates.map((certificate) => certificate.toString()).join(''),
    notAfter,
    beginRefreshAt: Number.isNaN(told) ? defaultRefresh(leaf) : told,
  };
}

/**
 * What an earlier agent has written, as far as it serves at `now` and is of the type; `undefined` otherwise. The
 * time that the signer named is not in the files: two thirds of the certificate's life stand for it.
 */
export function writtenCredential(text: string, keyType: string, now: number): DatedCredential | undefined {
  const key = keyBlock.exec(text)?.[0];
  if (key === undefined) return undefined;
  try {
    const certificates = certificatesIn(text);
    const [leaf] = certificates;
    const parsed = createPrivateKey(key);
    if (!leaf?.checkPrivateKey(parsed) || typeOf(parsed) !== keyType) return undefined;
    const notAfter = leaf.validToDate.getTime();
    // One of the future tells of a clock that was set back: nothing can be reckoned from it.
    if (notAfter <= now || leaf.validFromDate.getTime() > now) return undefined;
    const chain = certificates.map((certificate) => certificate.toString()).join('');
    return { key, chain, notAfter, beginRefreshAt: defaultRefresh(leaf) };
  } catch {
    return undefined;
  }
}

/** Each once, in order: a bundle and a chain beside it hold the same ones. Without what stands around them. */
function certificatesIn(pem: string): X509Certificate[] {
  const found = new Map<string, X509Certificate>();
  for (const [, body = ''] of pem.matchAll(certificateBlock)) {
    // A block may begin with headers of its own, which end at an empty line.
    const base64 = body.includes(':') ? body.slice(body.search(/\r?\n\r?\n/)) : body;
    try {
      const certificate = new X509Certificate(Buffer.from(base64, 'base64'));
      if (!found.has(certificate.fingerprint256)) found.set(certificate.fingerprint256, certificate);
    } catch (cause) {
      throw new UnfitCertificateError('what was issued holds a block that is no certificate', { cause });
    }
  }
  return [...found.values()];
}

function defaultRefresh({ validFromDate, validToDate }: X509Certificate): number {
  const from = validFromDate.getTime();
  return from + (validToDate.getTime() - from) * refreshAtPart;
}

function typeOf(key: KeyObject): string | undefined {
  const { modulusLength, namedCurve } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return `RSA${modulusLength}`;
    case 'ed25519':
      return 'ED25519';
    case 'ec':
      return curves[namedCurve ?? ''];
    default:
      return undefined;
  }
}

const curves: Readonly<Record<string, string>> = {
  prime256v1: 'ECDSAP256',
  secp384r1: 'ECDSAP384',
  secp521r1: 'ECDSAP521',
};
