import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { authorityNamed, everybody, startWorld, type World } from './fixtures/node-server-world.ts';
import { missingSuites, type TlsRules } from './tls-rules.ts';

const rules = (more: Partial<TlsRules>): TlsRules => ({
  minVersion: '',
  cipherSuites: [],
  curves: [],
  ...more,
});

const withRules = (more: Partial<TlsRules>) =>
  startWorld({ routes: [], access: everybody, server: { tls: rules(more) } });

/** What a client gets that offers this: protocol, cipher, and the name in the certificate; or undefined. */
async function negotiated(world: World, offer: ConnectionOptions) {
  const socket = connect({ port: world.server.port, host: '127.0.0.1', rejectUnauthorized: false, ...offer });
  const failed = once(socket, 'error').then(() => undefined);
  const done = once(socket, 'secureConnect').then(() => ({
    protocol: socket.getProtocol(),
    cipher: socket.getCipher().standardName,
    name: socket.getPeerCertificate().subject.CN,
  }));
  done.catch(() => {});
  const result = await Promise.race([done, failed]);
  socket.on('error', () => {}).destroy();
  return result;
}
const only = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): ConnectionOptions => ({
  minVersion: version,
  maxVersion: version,
  ...(version === 'TLSv1.1' && { ciphers: 'ALL:@SECLEVEL=0' }),
});

test('older versions of TLS are served only where they are asked for', async () => {
  for (const [minVersion, oldest] of [
    ['', 'TLSv1.2'],
    ['VersionTLS11', 'TLSv1.1'],
    ['VersionTLS12', 'TLSv1.2'],
    ['VersionTLS13', 'TLSv1.3'],
  ] as const) {
    await using world = await withRules({ minVersion });
    const versions = ['TLSv1.1', 'TLSv1.2', 'TLSv1.3'] as const;
    const served = [];
    for (const version of versions) {
      const answer = await negotiated(world, only(version));
      if (answer) served.push(answer.protocol);
    }
    assert.deepEqual(served, versions.slice(versions.indexOf(oldest)), minVersion);
  }
});

test('of the suites before TLS 1.3 only those that are listed are negotiated', async () => {
  const wanted = 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256';
  await using world = await withRules({ cipherSuites: [wanted] });
  assert.equal((await negotiated(world, only('TLSv1.2')))?.cipher, wanted);
  const other = { ...only('TLSv1.2'), ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' };
  assert.equal(await negotiated(world, other), undefined);
  assert.equal((await negotiated(world, only('TLSv1.3')))?.protocol, 'TLSv1.3');
});

test('only the key exchange groups that are listed are negotiated', async () => {
  await using world = await withRules({ curves: [24] });
  assert.ok(await negotiated(world, { ecdhCurve: 'P-384' }));
  assert.equal(await negotiated(world, { ecdhCurve: 'X25519' }), undefined);
});

test('suites that this program does not have are told', () => {
  const cipherSuites = [
    'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
    'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA',
    'TLS_RSA_WITH_AES_256_GCM_SHA384',
    'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305',
    'TLS_AES_128_GCM_SHA256',
    'TLS_RSA_WITH_RC4_128_SHA',
  ];
  assert.deepEqual(missingSuites(rules({ cipherSuites })), ['TLS_RSA_WITH_RC4_128_SHA']);
});

test('a serving certificate in files is followed, and half a pair is waited for', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'kubelet-ts-tls-'));
  const certificateFile = join(directory, 'tls.crt');
  const keyFile = join(directory, 'tls.key');
  const authority = await authorityNamed('cluster');
  const pairOf = (name: string) => authority.issue({ name, hosts: ['127.0.0.1'] });
  const first = await pairOf('first');
  await writeFile(certificateFile, first.certificate);
  await writeFile(keyFile, first.key);
  const clock = new VirtualClock(Date.now());
  const serving = { kind: 'files', certificateFile, keyFile } as const;
  try {
    await using world = await startWorld({ routes: [], access: everybody, clock, server: { serving } });
    const shown = async () => (await negotiated(world, {}))?.name;
    assert.equal(await shown(), 'first');
    const second = await pairOf('second');
    await writeFile(certificateFile, second.certificate);
    for (let n = 0; n < 5; n++) await clock.advance(60_000);
    assert.equal(await shown(), 'first');
    await writeFile(keyFile, second.key);
    for (let n = 0; n < 200 && (await shown()) === 'first'; n++) await clock.advance(60_000);
    assert.equal(await shown(), 'second');
    await writeFile(certificateFile, 'rubbish');
    await assert.rejects(
      startWorld({ routes: [], access: everybody, server: { serving } }),
      /tlsCertFile and tlsPrivateKeyFile: .*tls\.crt.* cannot be used/,
    );
  } finally {
    await rm(directory, { recursive: true });
  }
});
