/** Keys of the kinds that pods can ask certificates for (`podCertificate`), and the requests to sign them. */
import { generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { bareCertificateRequest } from './certificate-request.ts';

/** A key, and the request to sign it. */
export interface PodKey {
  /** PEM, PKCS #8: `PRIVATE KEY`. */
  readonly key: string;
  /** PKCS #10, DER, with nothing in it but the key. */
  readonly request: Buffer;
}

const generate = promisify(generateKeyPair) as unknown as (
  type: string,
  options: object,
) => Promise<{ privateKey: KeyObject }>;

/** By the `keyType` of the source: what the key is made from. */
const keyTypes: Readonly<Record<string, readonly [type: string, options: object]>> = {
  RSA3072: ['rsa', { modulusLength: 3072 }],
  RSA4096: ['rsa', { modulusLength: 4096 }],
  ECDSAP256: ['ec', { namedCurve: 'P-256' }],
  ECDSAP384: ['ec', { namedCurve: 'P-384' }],
  ECDSAP521: ['ec', { namedCurve: 'P-521' }],
  ED25519: ['ed25519', {}],
};

/** Makes a new key. Rejects for a type that is not in the list. */
export async function makePodKey(keyType: string): Promise<PodKey> {
  const made = keyTypes[keyType];
  if (!made) {
    const known = Object.keys(keyTypes).join(', ');
    throw new RangeError(`the key type ${JSON.stringify(keyType)} is not known; known are ${known}`);
  }
  const { privateKey } = await generate(...made);
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    request: bareCertificateRequest(privateKey),
  };
}
