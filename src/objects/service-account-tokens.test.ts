import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { FakeApi, unreachable } from './fixtures/fake-api.ts';
import { ServiceAccountTokens, type TokenWish } from './service-account-tokens.ts';
import { ServiceAccounts } from './service-accounts.ts';

const pod = { namespace: 'shop', name: 'web', uid: 'u1', serviceAccountName: 'seller' };
const wish = (more: Partial<TokenWish> = {}): TokenWish => ({ pod, keepsFresh: true, ...more });
const { signal } = new AbortController();
const minutes = 60_000;

let api: FakeApi;
let clock: VirtualClock;
let renewed: string[];
let random: number;
let tokens: ServiceAccountTokens;

function start(): void {
  tokens = new ServiceAccountTokens({
    client: api.client,
    onRenewed: (uid) => renewed.push(uid),
    random: () => random,
    clock,
    logger: silentLogger,
  });
}

beforeEach(() => {
  api = new FakeApi();
  clock = new VirtualClock();
  renewed = [];
  random = 0;
  let issued = 0;
  api.answer = ({ body }) => {
    const { spec } = body as { spec: { expirationSeconds: number } };
    return Promise.resolve({
      spec: { expirationSeconds: Math.max(spec.expirationSeconds, 600) },
      status: { token: `t${++issued}` },
    });
  };
  start();
});

describe('a service account token', () => {
  it('is asked for once, bound to its pod', async () => {
    const asked = wish({ audience: 'vault', expirationSeconds: 7200 });
    assert.deepEqual(await Promise.all([tokens.token(asked, signal), tokens.token(asked, signal)]), [
      't1',
      't1',
    ]);
    assert.equal(await tokens.token(asked, signal), 't1');
    assert.deepEqual(api.requests, ['POST /api/v1/namespaces/shop/serviceaccounts/seller/token']);
    assert.deepEqual(api.bodies[0], {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: ['vault'],
        expirationSeconds: 7200,
        boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'web', uid: 'u1' },
      },
    });
    assert.equal(await tokens.token(wish(), signal), 't2');
    assert.equal(await tokens.token(wish({ pod: { ...pod, uid: 'u2' } }), signal), 't3');
  });

  it('is renewed at 80 % of its life, less a bit of chance, and the pod is told', async () => {
    random = 0.5;
    await tokens.token(wish(), signal);
    await clock.advance(48 * minutes - 5001);
    assert.equal(api.requests.length, 1);
    await clock.advance(1);
    assert.deepEqual(renewed, ['u1']);
    assert.equal(await tokens.token(wish(), signal), 't2');
    await clock.advance(48 * minutes - 5000);
    assert.deepEqual(renewed, ['u1', 'u1']);
  });

  it('is renewed once a day however long it lives', async () => {
    await tokens.token(wish({ expirationSeconds: 30 * 24 * 3600 }), signal);
    await clock.advance(24 * 60 * minutes);
    assert.deepEqual(renewed, ['u1']);
  });

  it('serves to its end while it cannot be renewed, and no longer', async () => {
    const answer = api.answer;
    await tokens.token(wish(), signal);
    api.answer = unreachable;
    await clock.advance(59 * minutes);
    assert.equal(await tokens.token(wish(), signal), 't1');
    const tries = api.requests.length;
    assert.ok(tries > 4 && tries < 15, `${tries} tries`);
    await clock.advance(minutes);
    await assert.rejects(
      tokens.token(wish(), signal),
      /failed to fetch token: service account "shop\/seller": /,
    );
    api.answer = answer;
    await clock.advance(5 * minutes);
    assert.deepEqual(renewed, ['u1']);
    assert.equal(await tokens.token(wish(), signal), 't2');
  });

  it('of a pod that is gone is not renewed, not even one that was on its way', async () => {
    await tokens.token(wish(), signal);
    const late = tokens.token(wish({ audience: 'late' }), signal);
    tokens.forget('u1');
    await late;
    assert.equal(clock.nextTimer(), undefined);
  });

  it('is not renewed without being asked for where nobody keeps it', async () => {
    await tokens.token(wish({ keepsFresh: false }), signal);
    assert.equal(clock.nextTimer(), undefined);
    await clock.advance(48 * minutes - 1);
    assert.equal(await tokens.token(wish({ keepsFresh: false }), signal), 't1');
    await clock.advance(1);
    assert.equal(await tokens.token(wish({ keepsFresh: false }), signal), 't2');
  });

  it('can be given up waiting for', async () => {
    api.answer = () => new Promise(() => {});
    const abort = new AbortController();
    const asked = tokens.token(wish(), abort.signal);
    abort.abort(new Error('enough'));
    await assert.rejects(asked, /enough/);
  });
});

describe('a token that an earlier agent has written', () => {
  const jwt = (claims: object) =>
    ['{}', JSON.stringify(claims), 'sig'].map((part) => Buffer.from(part).toString('base64url')).join('.');
  const claims = (more: object = {}) => ({
    sub: 'system:serviceaccount:shop:seller',
    aud: ['https://kubernetes.default.svc'],
    iat: clock.now() / 1000 - 600,
    exp: clock.now() / 1000 + 3000,
    'kubernetes.io': { pod: { uid: 'u1', name: 'web' } },
    ...more,
  });

  it('serves on, and is renewed when its own time has come', async () => {
    const existing = jwt(claims());
    assert.equal(await tokens.token(wish({ existing }), signal), existing);
    assert.deepEqual(api.requests, []);
    await clock.advance(38 * minutes);
    assert.deepEqual(renewed, ['u1']);
    assert.equal(await tokens.token(wish({ existing }), signal), 't1');
  });

  it('is renewed when it asks for it, even if it lives on for old clients', async () => {
    const warnafter = clock.now() / 1000 + 3000;
    const existing = jwt(
      claims({ exp: clock.now() / 1000 + 1e7, 'kubernetes.io': { pod: { uid: 'u1' }, warnafter } }),
    );
    assert.equal(await tokens.token(wish({ existing }), signal), existing);
    await clock.advance(38 * minutes);
    assert.deepEqual(renewed, ['u1']);
  });

  for (const [what, more] of [
    ['of another account', { sub: 'system:serviceaccount:shop:other' }],
    ['of another pod', { 'kubernetes.io': { pod: { uid: 'u2' } } }],
    ['of no pod', { 'kubernetes.io': {} }],
    ['late in its life', { iat: 0 }],
    ['of the future', { iat: Date.UTC(2027, 0, 1) / 1000, exp: Date.UTC(2028, 0, 1) / 1000 }],
    ['without claims', { sub: undefined }],
  ] as const) {
    it(`${what} is replaced`, async () => {
      assert.equal(await tokens.token(wish({ existing: jwt(claims(more)) }), signal), 't1');
    });
  }

  it('for another audience, or that is no token, is replaced', async () => {
    const existing = jwt(claims());
    assert.equal(await tokens.token(wish({ audience: 'vault', existing }), signal), 't1');
    assert.equal(await tokens.token(wish({ existing: 'garbage' }), signal), 't2');
  });
});

describe('service accounts for credential plugins', () => {
  it('are read when asked for, with a token for an audience', async () => {
    const accounts = new ServiceAccounts({ client: api.client, tokens });
    assert.equal(await accounts.token({ namespace: 'shop', name: 'web', uid: 'u1' }, 'registry'), 't1');
    assert.deepEqual(api.requests, ['POST /api/v1/namespaces/shop/serviceaccounts/default/token']);
    api.answer = () => Promise.resolve({ metadata: { uid: 's1', annotations: { role: 'r' } } });
    assert.deepEqual(await accounts.account('shop', 'seller'), { uid: 's1', annotations: { role: 'r' } });
    assert.equal(clock.nextTimer(), undefined);
  });
});
