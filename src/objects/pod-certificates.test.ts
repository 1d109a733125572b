import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CertificateAuthority } from '../../test/fixtures/apiserver/certificates.ts';
import type { ApiRequest } from '../client/api-client.ts';
import { ApiError } from '../client/api-client.ts';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { silentMetrics } from '../telemetry/metrics.ts';
import { FakeApi, unreachable } from './fixtures/fake-api.ts';
import { PodCertificates, type PodCertificateWish } from './pod-certificates.ts';

const collection = '/apis/certificates.k8s.io/v1beta1/podcertificaterequests';
const { signal } = new AbortController();
const seconds = 1000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const signerName = 'example.com/web';

interface Filed {
  metadata: { namespace: string; name: string };
  spec: { stubPKCS10Request: string; [field: string]: unknown };
}

let api: FakeApi;
let clock: VirtualClock;
let authority: CertificateAuthority;
let changed: string[];
let events: string[];
let states: () => string[];
let nodeUid: string | undefined;
let random: number;
let certificates: PodCertificates;
/** The requests so far, as they were filed. */
let filed: Filed[];
/** What the signer does with a request, at once. */
let signer: (request: Filed) => void;

function start(): void {
  states = () => [];
  certificates = new PodCertificates({
    client: api.client,
    createReflector: api.createReflector,
    nodeName: 'node',
    nodeUid: () => nodeUid,
    accounts: { account: (namespace, name) => Promise.resolve({ uid: `uid-of-${namespace}-${name}` }) },
    makeKey: (keyType) => Promise.resolve(keyOf(keyType)),
    onChange: (uid) => changed.push(uid),
    events: { event: (_object, type, reason, message) => void events.push(`${type} ${reason} ${message}`) },
    metrics: {
      ...silentMetrics,
      observedGauge: (_options, read) => {
        states = () =>
          [...read()].map(({ value, labels }) => `${Object.values(labels ?? {}).join(' ')} ${value}`);
      },
    },
    random: () => random,
    clock,
    logger: silentLogger,
  });
}

/** In place of a PKCS #10 request: only the public key. */
function keyOf(keyType: string): { key: string; request: Buffer } {
  const { privateKey, publicKey } =
    keyType === 'ECDSAP384'
      ? generateKeyPairSync('ec', { namedCurve: 'P-384' })
      : generateKeyPairSync('ed25519');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    request: publicKey.export({ type: 'spki', format: 'der' }),
  };
}

beforeEach(() => {
  api = new FakeApi();
  clock = new VirtualClock();
  authority = new CertificateAuthority('pods', clock.now());
  changed = [];
  events = [];
  filed = [];
  nodeUid = 'node-uid';
  random = 0;
  signer = issue;
  api.answer = file;
  start();
});

afterEach(async () => {
  certificates.close();
  await settle();
});

function file({ method, body, path }: ApiRequest): Promise<unknown> {
  if (method === 'GET') {
    const found = filed.find(({ metadata }) => path.endsWith(`/${metadata.name}`));
    return found
      ? Promise.resolve(found)
      : Promise.reject(new ApiError({ status: 404, reason: 'NotFound', message: '' }));
  }
  const asked = body as Filed;
  const request = { ...asked, metadata: { namespace: 'shop', name: `req-${filed.length + 1}` } };
  filed.push(request);
  setImmediate(() => signer(request));
  return Promise.resolve(request);
}

const show = (request: Filed, status: object) => api.set(collection, { ...request, status });
const condition = (type: string, reason: string, message = '') => ({
  conditions: [{ type, status: 'True', reason, message }],
});

/** A day, to be refreshed after 18 hours. */
function issued(request: Filed, key: Buffer = Buffer.from(request.spec.stubPKCS10Request, 'base64')) {
  const notBefore = clock.now();
  const publicKey = createPublicKey({ key, format: 'der', type: 'spki' });
  const leaf = authority.certify(publicKey, {
    subject: { commonName: request.metadata.name },
    notBefore,
    notAfter: notBefore + 24 * hours,
  });
  return {
    certificateChain: `leaf\n${leaf}\nroot\n${authority.certificate}`,
    beginRefreshAt: new Date(notBefore + 18 * hours).toISOString(),
    ...condition('Issued', 'Signed'),
  };
}
function issue(request: Filed): void {
  show(request, issued(request));
}

const pod = {
  metadata: { namespace: 'shop', name: 'web', uid: 'u1' },
  spec: { containers: [], serviceAccountName: 'seller' },
} as unknown as Pod;
const wish = (more: Partial<PodCertificateWish> = {}): PodCertificateWish => ({
  pod,
  source: 'certificates/0',
  projection: { signerName, keyType: 'ED25519' },
  existing: '',
  ...more,
});
const leafOf = (chain: string) => new X509Certificate(chain).subject;

/** Moves the clock on until the call has settled; its result or the text of its error. */
async function outcome(more: Partial<PodCertificateWish> = {}, ms = 5 * seconds): Promise<string> {
  const asked = certificates.credential(wish(more), signal).then(
    ({ chain }) => leafOf(chain),
    (error: Error) => error.message,
  );
  await clock.advance(ms);
  return await asked;
}

describe('a certificate of a pod', () => {
  it('is asked for in the name of the pod, its account and its node, and comes with its key', async () => {
    const userAnnotations = { 'example.com/colour': 'blue' };
    const projection = { signerName, keyType: 'ED25519', maxExpirationSeconds: 7200, userAnnotations };
    const { key, chain } = await certificates.credential(wish({ projection }), signal);
    const { stubPKCS10Request, ...spec } = filed[0]!.spec;
    assert.ok(stubPKCS10Request);
    assert.deepEqual(spec, {
      signerName,
      podName: 'web',
      podUID: 'u1',
      serviceAccountName: 'seller',
      serviceAccountUID: 'uid-of-shop-seller',
      nodeName: 'node',
      nodeUID: 'node-uid',
      maxExpirationSeconds: 7200,
      unverifiedUserAnnotations: userAnnotations,
    });
    assert.ok(new X509Certificate(chain).checkPrivateKey(createPrivateKey(key)));
    assert.deepEqual(
      chain.match(/^.*$/gm)!.filter((line) => /BEGIN|leaf|root/.test(line)),
      ['-----BEGIN CERTIFICATE-----', '-----BEGIN CERTIFICATE-----'],
    );
    assert.deepEqual(states(), [`${signerName} fresh 1`]);
  });

  it('is asked for once, however often it is wanted; each source has its own', async () => {
    const [first, again, other] = await Promise.all(
      ['a/0', 'a/0', 'a/1'].map((source) => certificates.credential(wish({ source }), signal)),
    );
    assert.equal(first!.key, again!.key);
    assert.notEqual(first!.key, other!.key);
    assert.equal(filed.length, 2);
    assert.deepEqual([...api.watches], [`WATCH ${collection}`]);
  });

  it('that a signer takes long for keeps the pod waiting by name, and the pod is told when it comes', async () => {
    signer = () => {};
    assert.match(
      await outcome(),
      /^PodCertificateRequest shop\/req-1 waits for the signer "example.com\/web"/,
    );
    assert.deepEqual([changed, states()], [[], [`${signerName} pending 1`]]);
    await clock.advance(3 * hours);
    assert.equal(filed.length, 1);
    issue(filed[0]!);
    await settle();
    assert.deepEqual(changed, ['u1']);
    assert.equal(await outcome(), 'CN=req-1');
  });

  it('is found when no watch tells of it', async () => {
    api.watchesHang = true;
    signer = (request) => Object.assign(request, { status: issued(request) });
    assert.match(await outcome(), /waits for the signer/);
    await clock.advance(minutes);
    assert.deepEqual(changed, ['u1']);
  });

  for (const [mode, state] of [
    ['Denied', 'denied'],
    ['Failed', 'failed'],
  ] as const) {
    it(`that is refused (${mode}) is not asked for again, and the pod is told once`, async () => {
      signer = (request) => show(request, condition(mode, 'UnsupportedKeyType', 'try ED25519'));
      const first = await outcome();
      assert.match(first, /issues no certificate for this pod: PodCertificateRequest shop\/req-1/);
      assert.match(first, /: UnsupportedKeyType: try ED25519; once the reason is gone, delete the pod/);
      await clock.advance(24 * hours);
      assert.equal(await outcome(), first);
      assert.equal(filed.length, 1);
      assert.deepEqual(events, [`Warning ${mode} UnsupportedKeyType`]);
      assert.deepEqual(states(), [`${signerName} ${state} 1`]);
    });
  }

  it('is asked for again, with a back-off, while the server is away or the node not registered', async () => {
    nodeUid = undefined;
    assert.match(
      await outcome(),
      /no certificate could be requested of the signer "example.com\/web": .* which Node object stands/,
    );
    nodeUid = 'node-uid';
    api.answer = unreachable;
    await clock.advance(20 * seconds);
    assert.match(await outcome(), /ECONNREFUSED/);
    const tries = api.requests.length;
    await clock.advance(30 * minutes);
    assert.ok(api.requests.length - tries <= 10, `${api.requests.length - tries} tries in half an hour`);
    api.answer = file;
    await clock.advance(5 * minutes);
    assert.equal(await outcome(), 'CN=req-1');
  });

  it('whose request is deleted is asked for anew', async () => {
    signer = (request) => show(request, {});
    assert.match(await outcome(), /waits for the signer/);
    signer = issue;
    api.delete(collection, 'req-1');
    api.delete(collection, 'shop/req-1');
    await clock.advance(5 * seconds);
    assert.equal(await outcome(), 'CN=req-2');
  });

  it('for another key, or none at all, is not used', async () => {
    const wrong = keyOf('ED25519').request;
    signer = (request) => show(request, issued(request, wrong));
    assert.match(
      await outcome(),
      /PodCertificateRequest shop\/req-1: the certificate that was issued is for another key/,
    );
    signer = (request) => show(request, { ...issued(request), certificateChain: 'x' });
    await clock.advance(5 * seconds);
    assert.match(await outcome(), /: what was issued holds no certificate/);
    signer = issue;
    await clock.advance(20 * seconds);
    assert.match(await outcome(), /^CN=req-/);
  });

  it('can be given up waiting for', async () => {
    signer = () => {};
    const abort = new AbortController();
    const asked = certificates.credential(wish(), abort.signal);
    abort.abort(new Error('enough'));
    await assert.rejects(asked, /enough/);
  });

  it('of a pod that is gone is waited for and renewed no more', async () => {
    await certificates.credential(wish(), signal);
    signer = () => {};
    const late = certificates.credential(wish({ source: 'b/0' }), signal);
    late.catch(() => {});
    await settle();
    certificates.forget('u1');
    await clock.advance(5 * seconds);
    await assert.rejects(late);
    assert.equal(clock.nextTimer(), undefined);
    assert.deepEqual(states(), []);
    certificates.close();
    await settle();
    assert.equal(api.watches.size, 0);
  });
});

describe('the refresh of a certificate', () => {
  it('begins when the signer says, spread over five minutes, with a new key', async () => {
    random = 0.5;
    const first = await certificates.credential(wish(), signal);
    changed = [];
    await clock.advance(18 * hours + 2.5 * minutes - 1);
    assert.equal(filed.length, 1);
    await clock.advance(1);
    assert.deepEqual([filed.length, changed], [2, ['u1']]);
    const second = await certificates.credential(wish(), signal);
    assert.equal(leafOf(second.chain), 'CN=req-2');
    assert.notEqual(second.key, first.key);
    assert.deepEqual(events, []);
  });

  it('that hangs is said when it is overdue, and when the certificate has expired; until then it serves', async () => {
    await certificates.credential(wish(), signal);
    signer = () => {};
    await clock.advance(18 * hours + 10 * minutes);
    assert.deepEqual(events, ['Warning CertificateOverdueForRefresh PodCertificate refresh overdue']);
    assert.deepEqual(states(), [`${signerName} overdue 1`]);
    assert.equal(await outcome(), 'CN=req-1');
    await clock.advance(6 * hours);
    assert.deepEqual(events.slice(1), ['Warning CertificateExpired PodCertificate expired']);
    assert.match(
      await outcome(),
      /^the certificate has expired at 2026-01-02T.* and PodCertificateRequest shop\/req-2/,
    );
    assert.deepEqual(states(), [`${signerName} expired 1`]);
    issue(filed[1]!);
    await settle();
    assert.equal(await outcome(), 'CN=req-2');
  });

  it('that is denied is told, and tried again while the old certificate serves', async () => {
    await certificates.credential(wish(), signal);
    signer = (request) => show(request, condition('Denied', 'Paused'));
    await clock.advance(18 * hours);
    assert.deepEqual(events, ['Warning Denied Paused']);
    assert.equal(await outcome({}, 0), 'CN=req-1');
    signer = issue;
    await clock.advance(5 * seconds);
    assert.equal(await outcome(), 'CN=req-3');
  });

  it('is never asked for at once again, whatever the signer says', async () => {
    const past = (request: Filed) =>
      show(request, { ...issued(request), beginRefreshAt: new Date(clock.now() - 1).toISOString() });
    signer = past;
    await certificates.credential(wish(), signal);
    await clock.advance(minutes);
    assert.ok(filed.length <= 13, `${filed.length} requests in a minute`);
  });
});

describe('a certificate that an earlier agent has written', () => {
  async function written(keyType = 'ED25519'): Promise<string> {
    const { key, chain } = await certificates.credential(
      wish({ projection: { signerName, keyType } }),
      signal,
    );
    certificates.close();
    start();
    changed = [];
    return `${key}${chain}\n${chain}`;
  }

  it('serves on, and is replaced when two thirds of its life are over', async () => {
    const existing = await written('ECDSAP384');
    const mine = wish({ existing, projection: { signerName, keyType: 'ECDSAP384' } });
    const { key, chain } = await certificates.credential(mine, signal);
    assert.ok(existing.startsWith(key + chain));
    assert.equal(filed.length, 1);
    await clock.advance(16 * hours - 1);
    assert.equal(filed.length, 1);
    await clock.advance(1);
    assert.deepEqual([filed.length, changed], [2, ['u1']]);
  });

  it('serves on while its successor is asked for', async () => {
    const existing = await written();
    await clock.advance(20 * hours);
    assert.equal(await outcome({ existing }, 0), 'CN=req-1');
    await clock.advance(minutes);
    assert.equal(await outcome({ existing }), 'CN=req-2');
    assert.deepEqual(events, []);
  });

  for (const [what, change] of [
    [
      'of another type',
      (text: string) => text.replace(/-----BEGIN PRIVATE[^]*?END PRIVATE KEY-----\n/, keyOf('ECDSAP384').key),
    ],
    [
      'of another key',
      (text: string) => text.replace(/-----BEGIN PRIVATE[^]*?END PRIVATE KEY-----\n/, keyOf('ED25519').key),
    ],
    ['without its key', (text: string) => text.replace('PRIVATE KEY', 'KEY')],
    ['that is cut off', (text: string) => text.slice(0, 300)],
  ] as const) {
    it(`${what} is replaced`, async () => {
      const existing = change(await written());
      assert.equal(await outcome({ existing }), 'CN=req-2');
    });
  }

  it('that has expired, or is of the future, is replaced', async () => {
    const existing = await written();
    await clock.advance(24 * hours);
    assert.equal(await outcome({ existing }), 'CN=req-2');
    clock = new VirtualClock(Date.UTC(2025, 11, 31));
    certificates.close();
    start();
    assert.equal(await outcome({ existing }), 'CN=req-3');
  });
});
