import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { FakeApi } from './fixtures/fake-api.ts';
import { NotSyncedError } from './synced-objects.ts';
import { TrustBundles } from './trust-bundles.ts';

const path = '/apis/certificates.k8s.io/v1beta1/clustertrustbundles';
const { signal } = new AbortController();
let api: FakeApi;
let clock: VirtualClock;
let changed: string[][];
let bundles: TrustBundles;

beforeEach(() => {
  api = new FakeApi();
  clock = new VirtualClock();
  changed = [];
  bundles = new TrustBundles({
    createReflector: api.createReflector,
    onChange: (uids) => changed.push([...uids]),
    clock,
    logger: silentLogger,
  });
});

const certificate = (body: string) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;

function set(name: string, trustBundle: string, more: { signerName?: string; labels?: object } = {}): void {
  const { signerName, labels } = more;
  api.set(path, {
    metadata: { name, ...(labels && { labels }) },
    spec: { trustBundle, ...(signerName && { signerName }) },
  });
}
const bodies = (pem: string | undefined) =>
  [...(pem ?? '').matchAll(/-----BEGIN CERTIFICATE-----\n(\w+)\n-----END/g)].map(([, body]) => body).sort();

describe('cluster trust bundles', () => {
  it('are found by name, in PEM without what stands around it', async () => {
    set('roots', `# a comment\n${certificate('AAAA')}text${certificate('BBBB')}`);
    set('other', certificate('CCCC'));
    const pem = await bundles.certificates('u1', { name: 'roots' }, signal);
    assert.deepEqual(bodies(pem), ['AAAA', 'BBBB']);
    assert.ok(!pem?.includes('comment') && !pem?.includes('text'));
    assert.equal(await bundles.certificates('u1', { name: 'missing' }, signal), undefined);
  });

  it('of a signer are those whose labels fit, each certificate once, in an order that stays', async () => {
    const signerName = 'example.com/x';
    set('a', certificate('AAAA') + certificate('BBBB'), { signerName, labels: { live: 'yes' } });
    set('b', certificate('BBBB') + certificate('CCCC'), { signerName, labels: { live: 'yes' } });
    set('c', certificate('DDDD'), { signerName, labels: { live: 'no' } });
    set('d', certificate('EEEE'), { signerName: 'example.com/y', labels: { live: 'yes' } });
    const labelSelector = { matchLabels: { live: 'yes' } };
    const first = await bundles.certificates('u1', { signerName, labelSelector }, signal);
    assert.deepEqual(bodies(first), ['AAAA', 'BBBB', 'CCCC']);
    set('a', certificate('BBBB') + certificate('AAAA'), { signerName, labels: { live: 'yes' } });
    assert.equal(await bundles.certificates('u1', { signerName, labelSelector }, signal), first);
    const every = await bundles.certificates('u1', { signerName, labelSelector: {} }, signal);
    assert.deepEqual(bodies(every), ['AAAA', 'BBBB', 'CCCC', 'DDDD']);
    assert.equal(await bundles.certificates('u1', { signerName }, signal), undefined);
  });

  it('are followed once, by nobody before they are wanted, and pods that show them hear of changes', async () => {
    set('roots', certificate('AAAA'));
    assert.deepEqual([...api.watches], []);
    await bundles.certificates('u1', { name: 'roots' }, signal);
    await bundles.certificates('u2', { name: 'roots' }, signal);
    assert.equal(api.watches.size, 1);
    changed = [];
    set('roots', certificate('BBBB'));
    assert.deepEqual(changed, [['u1', 'u2']]);
    bundles.forget('u1');
    set('roots', certificate('CCCC'));
    assert.deepEqual(changed.at(-1), ['u2']);
    bundles.stop();
  });

  it('that the server does not tell of are an error that says so, after a bounded time', async () => {
    api.watchesHang = true;
    const asked = bundles.certificates('u1', { name: 'roots' }, signal);
    asked.catch(() => {});
    await clock.advance(10_000);
    await assert.rejects(asked, (error) => error instanceof NotSyncedError);
  });
});
