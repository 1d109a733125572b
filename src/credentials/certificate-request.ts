/**
 * Makes the node's keys (ECDSA P-256), requests to sign keys (PKCS #10), and certificates signed with their own
 * key. The only X.509 the agent writes; what it writes is checked against other implementations in the tests.
 */
import { createHash, createPublicKey, generateKeyPair, type KeyObject, randomBytes, sign } from 'node:crypto';
import {
  bitString,
  boolean,
  context,
  integer,
  ipBytes,
  nothing,
  octetString,
  oid,
  pem,
  sequence,
  set,
  time,
  utf8String,
} from './der.ts';

export interface CertificateSubject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  readonly dnsNames?: readonly string[];
  /** IP addresses. */
  readonly ips?: readonly string[];
}

const names = { commonName: '2.5.4.3', organization: '2.5.4.10' } as const;
const ecdsaWithSha256 = '1.2.840.10045.4.3.2';
const extensionRequest = '1.2.840.113549.1.9.14';
const extensions = {
  basicConstraints: '2.5.29.19',
  keyUsage: '2.5.29.15',
  extendedKeyUsage: '2.5.29.37',
  subjectAlternativeName: '2.5.29.17',
} as const;
const serverAuthentication = '1.3.6.1.5.5.7.3.1';
/** Digital signature, the first bit of the set. */
const digitalSignature = bitString(Buffer.of(0x80), 7);

export function generateKey(): Promise<KeyObject> {
  return new Promise((resolve, reject) => {
    generateKeyPair('ec', { namedCurve: 'P-256' }, (error, _public, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}

/** `EC PRIVATE KEY`, as a kubelet stores it. */
export function keyPem(key: KeyObject): string {
  return key.export({ type: 'sec1', format: 'pem' }) as string;
}

/** Hex digest that names a public key. */
export function keyDigest(key: KeyObject): string {
  return createHash('sha256').update(publicKey(key)).digest('hex');
}

/** PEM of a PKCS #10 request. */
export function certificateRequest(key: KeyObject, subject: CertificateSubject): string {
  const alternatives = alternativeNames(subject);
  const attributes = alternatives
    ? sequence(oid(extensionRequest), set(sequence(extension('subjectAlternativeName', alternatives))))
    : Buffer.alloc(0);
  const info = sequence(
    integer(Buffer.of(0)),
    distinguishedName(subject),
    publicKey(key),
    context(0, true, attributes),
  );
  return pem('CERTIFICATE REQUEST', signed(info, key));
}

/** PEM of a serving certificate that only its own key vouches for. */
export function selfSignedCertificate(
  key: KeyObject,
  subject: CertificateSubject,
  validity: { readonly from: Date; readonly to: Date },
): string {
  const alternatives = alternativeNames(subject);
  const name = distinguishedName(subject);
  const serial = randomBytes(16);
  serial[0]! &= 0x7f;
  const info = sequence(
    context(0, true, integer(Buffer.of(2))),
    integer(serial),
    sequence(oid(ecdsaWithSha256)),
    name,
    sequence(time(validity.from), time(validity.to)),
    name,
    publicKey(key),
    context(
      3,
      true,
      sequence(
        extension('basicConstraints', sequence(), true),
        extension('keyUsage', digitalSignature, true),
        extension('extendedKeyUsage', sequence(oid(serverAuthentication))),
        ...(alternatives ? [extension('subjectAlternativeName', alternatives)] : []),
      ),
    ),
  );
  return pem('CERTIFICATE', signed(info, key));
}

/** A PKCS #10 request (DER) that says nothing but the key, and proves that its sender holds it. */
export function bareCertificateRequest(key: KeyObject): Buffer {
  const info = sequence(integer(Buffer.of(0)), sequence(), publicKey(key), context(0, true, Buffer.alloc(0)));
  return signed(info, key);
}

function publicKey(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}

function signed(info: Buffer, key: KeyObject): Buffer {
  const { digest, algorithm } = signatureOf(key);
  const signature = sign(digest, info, { key, dsaEncoding: 'der' });
  return sequence(info, algorithm, bitString(signature));
}

/** How a key signs: the digest that fits its strength, and what X.509 calls the two together. */
function signatureOf(key: KeyObject): { digest: string | null; algorithm: Buffer } {
  if (key.asymmetricKeyType === 'rsa') {
    return { digest: 'sha256', algorithm: sequence(oid('1.2.840.113549.1.1.11'), nothing()) };
  }
  if (key.asymmetricKeyType === 'ed25519') return { digest: null, algorithm: sequence(oid('1.3.101.112')) };
  switch (key.asymmetricKeyDetails?.namedCurve) {
    case 'secp521r1':
      return { digest: 'sha512', algorithm: sequence(oid('1.2.840.10045.4.3.4')) };
    case 'secp384r1':
      return { digest: 'sha384', algorithm: sequence(oid('1.2.840.10045.4.3.3')) };
    default:
      return { digest: 'sha256', algorithm: sequence(oid(ecdsaWithSha256)) };
  }
}

function distinguishedName({ commonName, organizations = [] }: CertificateSubject): Buffer {
  const part = (name: keyof typeof names, text: string) => set(sequence(oid(names[name]), utf8String(text)));
  return sequence(
    ...organizations.map((organization) => part('organization', organization)),
    part('commonName', commonName),
  );
}

function alternativeNames({ dnsNames = [], ips = [] }: CertificateSubject): Buffer | undefined {
  if (dnsNames.length === 0 && ips.length === 0) return undefined;
  return sequence(
    ...dnsNames.map((name) => context(2, false, Buffer.from(name, 'ascii'))),
    ...ips.map((ip) => context(7, false, ipBytes(ip))),
  );
}

function extension(name: keyof typeof extensions, content: Buffer, critical = false): Buffer {
  return sequence(oid(extensions[name]), ...(critical ? [boolean(true)] : []), octetString(content));
}
