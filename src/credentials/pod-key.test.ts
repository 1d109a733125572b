import 'reflect-metadata';
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, webcrypto } from 'node:crypto';
import { test } from 'node:test';
import * as x509 from '@peculiar/x509';
import { makePodKey } from './pod-key.ts';

x509.cryptoProvider.set(webcrypto);

for (const [keyType, type, detail] of [
  ['RSA3072', 'rsa', 3072],
  ['RSA4096', 'rsa', 4096],
  ['ECDSAP256', 'ec', 'prime256v1'],
  ['ECDSAP384', 'ec', 'secp384r1'],
  ['ECDSAP521', 'ec', 'secp521r1'],
  ['ED25519', 'ed25519', undefined],
] as const) {
  test(`a key of the type ${keyType} comes with an empty request that another implementation verifies`, async () => {
    const { key, request } = await makePodKey(keyType);
    assert.match(key, /^-----BEGIN PRIVATE KEY-----\n/);
    const parsed = createPrivateKey(key);
    assert.equal(parsed.asymmetricKeyType, type);
    const { modulusLength, namedCurve } = parsed.asymmetricKeyDetails ?? {};
    assert.equal(modulusLength ?? namedCurve, detail);
    const read = new x509.Pkcs10CertificateRequest(request);
    assert.equal(await read.verify(), true);
    assert.deepEqual([read.subjectName.toJSON(), read.extensions], [[], []]);
    const spki = createPublicKey(parsed).export({ type: 'spki', format: 'der' });
    assert.deepEqual(Buffer.from(read.publicKey.rawData), spki);
  });
}

test('a key of a type that is not known is refused by its name', async () => {
  await assert.rejects(makePodKey('DSA'), /"DSA" is not known; known are RSA3072, .*ED25519/);
});
