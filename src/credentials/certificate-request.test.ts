import 'reflect-metadata';
import assert from 'node:assert/strict';
import { webcrypto, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import { certificateRequest, generateKey, keyPem, selfSignedCertificate } from './certificate-request.ts';
import { ipBytes } from './der.ts';

x509.cryptoProvider.set(webcrypto);

test('another implementation reads and verifies the request', async () => {
  const key = await generateKey();
  const pem = certificateRequest(key, {
    commonName: 'system:node:wörker,1',
    organizations: ['system:nodes'],
    dnsNames: ['worker-1', 'worker-1.example.com'],
    ips: ['10.0.0.7', 'fd00::7'],
  });
  const request = new x509.Pkcs10CertificateRequest(pem);
  assert.equal(await request.verify(), true);
  assert.deepEqual(request.subjectName.toJSON(), [{ O: ['system:nodes'] }, { CN: ['system:node:wörker,1'] }]);
  const names = request.getExtension('2.5.29.17') as x509.SubjectAlternativeNameExtension;
  assert.deepEqual(
    names.names.items.map(({ type, value }) => `${type} ${value}`),
    ['dns worker-1', 'dns worker-1.example.com', 'ip 10.0.0.7', 'ip fd00::7'],
  );
});

test('a request without alternative names is as valid', async () => {
  const pem = certificateRequest(await generateKey(), { commonName: 'system:node:a' });
  const request = new x509.Pkcs10CertificateRequest(pem);
  assert.equal(await request.verify(), true);
  assert.deepEqual(request.extensions, []);
});

test('OpenSSL reads the self-signed certificate as meant', async () => {
  const key = await generateKey();
  const from = new Date('2026-01-02T03:04:05Z');
  const to = new Date('2056-01-02T03:04:05Z');
  const pem = selfSignedCertificate(
    key,
    { commonName: 'host@1767323045', dnsNames: ['host'], ips: ['::1'] },
    { from, to },
  );
  const certificate = new X509Certificate(pem);
  assert.equal(certificate.subject, 'CN=host@1767323045');
  assert.equal(certificate.issuer, certificate.subject);
  assert.equal(certificate.verify(certificate.publicKey), true);
  assert.equal(certificate.checkPrivateKey(key), true);
  assert.equal(certificate.validFromDate.getTime(), from.getTime());
  assert.equal(certificate.validToDate.getTime(), to.getTime());
  assert.equal(certificate.checkHost('host'), 'host');
  assert.equal(certificate.checkIP('::1'), '::1');
  assert.equal(certificate.ca, false);
  assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.1']);
  assert.match(keyPem(key), /^-----BEGIN EC PRIVATE KEY-----/);
});

test('any IP address is written as its bytes', () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const hex = ipBytes(address).toString('hex').match(/.{4}/g)!.join(':');
      assert.equal(new URL(`http://[${hex}]`).hostname, new URL(`http://[${address}]`).hostname);
    }),
  );
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      assert.equal([...ipBytes(address)].join('.'), address);
    }),
  );
  for (const wrong of ['', 'host', '1.2.3', 'fe80::1%eth0']) assert.throws(() => ipBytes(wrong));
});

test('lengths of any size keep certificates readable', async () => {
  const key = await generateKey();
  for (const count of [1, 5, 20, 300]) {
    const dnsNames = Array.from({ length: count }, (_, n) => `name-${n}.example.com`);
    const pem = selfSignedCertificate(
      key,
      { commonName: 'x', dnsNames },
      { from: new Date(0), to: new Date('2040-01-01T00:00:00Z') },
    );
    assert.equal(
      new X509Certificate(pem).checkHost(`name-${count - 1}.example.com`),
      `name-${count - 1}.example.com`,
    );
  }
});
