import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import type { PullCredential, VerificationPolicy } from './image-access.ts';
import { PullRecords } from './pull-records.ts';

const secret = (name: string, hash = `h-${name}`): PullCredential => ({
  credential: {
    username: name,
    password: 'hunter2',
    auth: '',
    serverAddress: '',
    identityToken: '',
    registryToken: '',
  },
  origin: { kind: 'secret', uid: `u-${name}`, namespace: 'ns', name },
  hash,
});
const file = (subject: string) => `sha256-${createHash('sha256').update(subject).digest('hex')}`;

describe('pull records', () => {
  let base: string;
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const absent = async () => undefined;
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'pull-records-'));
  });
  afterEach(() => rmSync(base, { recursive: true, force: true }));

  const open = async (
    policy: VerificationPolicy = 'NeverVerifyPreloadedImages',
    idOf: (image: string) => Promise<string | undefined> = absent,
  ) => {
    const records = new PullRecords({ rootDirectory: base, policy, clock, logger: silentLogger });
    await records.recover(idOf);
    return records;
  };
  const files = (folder: 'pulling' | 'pulled') => readdirSync(join(base, 'image_manager', folder));
  const must = (records: PullRecords, ...credentials: PullCredential[]) =>
    records.mustPull('r.io/app:1', 'sha256:1', async () => credentials);

  it('files have the names and the form that the kubelet knows', async () => {
    const records = await open();
    await records.began('r.io/app:1');
    const intent = join(base, 'image_manager/pulling', file('r.io/app:1'));
    assert.deepEqual(JSON.parse(readFileSync(intent, 'utf8')), {
      kind: 'ImagePullIntent',
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      image: 'r.io/app:1',
    });
    assert.deepEqual(
      [statSync(intent).mode & 0o777, statSync(join(intent, '..')).mode & 0o777],
      [0o600, 0o700],
    );
    await records.succeeded('r.io/app:1', 'sha256:1', secret('a'));
    assert.deepEqual(files('pulling'), []);
    const text = readFileSync(join(base, 'image_manager/pulled', file('sha256:1')), 'utf8');
    assert.deepEqual(JSON.parse(text), {
      kind: 'ImagePulledRecord',
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      lastUpdatedTime: '2026-01-01T00:00:00.000Z',
      imageRef: 'sha256:1',
      credentialMapping: {
        'r.io/app': {
          kubernetesSecrets: [{ uid: 'u-a', namespace: 'ns', name: 'a', credentialHash: 'h-a' }],
        },
      },
    });
    assert.ok(!text.includes('hunter2'));
  });

  it('only those who opened an image may use it', async () => {
    const records = await open();
    assert.equal(await must(records), false, 'it was there before');
    await records.began('r.io/app:1');
    await records.succeeded('r.io/app:1', 'sha256:1', secret('a'));
    assert.equal(await must(records, secret('a')), false);
    assert.equal(await must(records), true);
    assert.equal(await must(records, secret('b')), true);
    // The same image under another name is another door.
    assert.equal(await records.mustPull('x.io/app:1', 'sha256:1', async () => [secret('a')]), true);
    assert.equal(await must(records, secret('same-content', 'h-a')), false);
    assert.equal(
      await must(records, secret('same-content', 'rotated')),
      false,
      'known by its name since then',
    );
    await records.began('r.io/app:1');
    await records.succeeded('r.io/app:1', 'sha256:1', undefined);
    assert.equal(await must(records), false);
  });

  it('it asks for credentials only when they decide', async () => {
    const records = await open('NeverVerify');
    await records.began('r.io/app:1');
    await records.succeeded('r.io/app:1', 'sha256:1', undefined);
    const never = () => assert.fail('asked');
    assert.equal(await records.mustPull('r.io/app:1', 'sha256:1', never), false);
    const verifying = await open('AlwaysVerify');
    assert.equal(await verifying.mustPull('r.io/app:1', 'sha256:1', never), false);
  });

  it('an image that came while the agent died is nobody’s; one that did not leaves nothing', async () => {
    const before = await open();
    await before.began('r.io/app:1');
    await before.began('r.io/other:1');
    const after = await open('NeverVerifyPreloadedImages', async (image) =>
      image === 'r.io/app:1' ? 'sha256:1' : undefined,
    );
    assert.deepEqual(files('pulling'), []);
    assert.equal(await must(after, secret('a')), true);
    assert.equal(await after.mustPull('r.io/other:1', 'sha256:2', async () => []), false);
  });

  it('while a pull runs, and after one whose end is unknown, the image is not taken for preloaded', async () => {
    const records = await open();
    await records.began('r.io/app:1');
    assert.equal(await must(records), true);
    await records.began('r.io/app:1');
    await records.failed('r.io/app:1', false);
    assert.equal(await must(records), true);
    await records.failed('r.io/app:1', true);
    assert.equal(await must(records), true);
    await records.began('r.io/app:1');
    await records.failed('r.io/app:1', false);
    assert.equal(await must(records), false);
  });

  it('a record that is broken opens nothing', async () => {
    const records = await open();
    for (const text of [
      '',
      '{',
      '{"kind":"ImagePulledRecord"}',
      '{"kind":"ImagePulledRecord","lastUpdatedTime":"","imageRef":"","credentialMapping":{"r.io/app":{"kubernetesSecrets":7}}}',
    ]) {
      writeFileSync(join(base, 'image_manager/pulled', file('sha256:1')), text);
      assert.equal(await must(records, secret('a')), true, text);
    }
    await records.began('r.io/app:1');
    await records.succeeded('r.io/app:1', 'sha256:1', secret('a'));
    assert.equal(await must(records, secret('a')), false);
  });

  it('a pull that cannot be noted does not begin; nothing that goes wrong later loses the note', async () => {
    const records = await open();
    rmSync(join(base, 'image_manager/pulling'), { recursive: true });
    await assert.rejects(records.began('r.io/app:1'), { code: 'ENOENT' });
    await records.recover(absent);
    await records.began('r.io/app:1');
    rmSync(join(base, 'image_manager/pulled'), { recursive: true });
    await records.succeeded('r.io/app:1', 'sha256:1', undefined);
    assert.equal(files('pulling').length, 1);
    assert.equal(await must(records), true);
  });

  it('records of images that are gone are forgotten, unless they are news', async () => {
    const records = await open();
    for (const id of ['sha256:1', 'sha256:2']) {
      await records.began('r.io/app:1');
      await records.succeeded('r.io/app:1', id, secret('a'));
    }
    await records.prune(new Set(['sha256:1']), clock.now());
    assert.equal(files('pulled').length, 2);
    await records.prune(new Set(['sha256:1']), clock.now() + 1);
    assert.deepEqual(files('pulled'), [file('sha256:1')]);
  });

  it('pulls of one image at a time keep each other’s openers', async () => {
    const records = await open();
    await Promise.all(
      ['a', 'b', 'c'].map(async (name) => {
        await records.began('r.io/app:1');
        await records.succeeded('r.io/app:1', 'sha256:1', secret(name));
      }),
    );
    for (const name of ['a', 'b', 'c']) assert.equal(await must(records, secret(name)), false);
    assert.deepEqual(files('pulling'), []);
  });
});
