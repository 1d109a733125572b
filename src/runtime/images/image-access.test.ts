import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  needsVerification,
  openerOf,
  type PullCredential,
  repositoryOf,
  type VerificationPolicy,
  withOpener,
} from './image-access.ts';

const credential = (
  kind: 'node' | 'secret' | 'serviceAccount',
  name = 'a',
  hash = `h-${name}`,
): PullCredential => ({
  credential: {
    username: name,
    password: '',
    auth: '',
    serverAddress: '',
    identityToken: '',
    registryToken: '',
  },
  origin: kind === 'node' ? { kind } : { kind, uid: `u-${name}`, namespace: 'ns', name },
  hash,
});

describe('when access to an image must be shown', () => {
  const allowlist = ['docker.io/library/nginx', 'r.io/team/*', 'busybox'];
  const table: [policy: VerificationPolicy, image: string, pulledByAgent: boolean, verified: boolean][] = [
    ['NeverVerify', 'nginx:1', true, false],
    ['NeverVerify', 'nginx:1', false, false],
    ['NeverVerifyPreloadedImages', 'nginx:1', true, true],
    ['NeverVerifyPreloadedImages', 'nginx:1', false, false],
    ['NeverVerifyAllowlistedImages', 'nginx:1', true, true],
    ['NeverVerifyAllowlistedImages', 'nginx:1', false, false],
    ['NeverVerifyAllowlistedImages', 'busybox@sha256:0', false, false],
    ['NeverVerifyAllowlistedImages', 'r.io/team/app:1', false, false],
    ['NeverVerifyAllowlistedImages', 'r.io/team2/app:1', false, true],
    ['NeverVerifyAllowlistedImages', 'r.io/team:1', false, true],
    ['AlwaysVerify', 'nginx:1', false, true],
    ['AlwaysVerify', 'nginx:1', true, true],
  ];
  for (const [policy, image, pulledByAgent, verified] of table) {
    it(`${policy}: ${image} ${pulledByAgent ? 'pulled by the agent' : 'there before'} → ${verified}`, () => {
      assert.equal(needsVerification(image, pulledByAgent, { policy, allowlist }), verified);
    });
  }

  it('names images without tag and digest', () => {
    assert.deepEqual(['nginx', 'nginx:1', 'r.io:5000/a', 'r.io:5000/a:1@sha256:0'].map(repositoryOf), [
      'nginx',
      'nginx',
      'r.io:5000/a',
      'r.io:5000/a',
    ]);
  });
});

describe('who opens an image', () => {
  it('a pull without credentials, or with those of the node, opens it to everybody', () => {
    for (const opener of [undefined, credential('node')]) {
      assert.equal(openerOf(withOpener({}, opener), []), 'everybody');
    }
    assert.equal(openerOf({}, [credential('node')]), undefined);
  });

  it('a secret opens it by what it is or by what it holds', () => {
    const openers = withOpener({}, credential('secret', 'a', 'h1'));
    const opens = (other: PullCredential) => openerOf(openers, [other]) !== undefined;
    assert.ok(opens(credential('secret', 'a', 'rotated')));
    assert.ok(opens(credential('secret', 'other', 'h1')));
    assert.ok(!opens(credential('secret', 'other', 'h2')));
    assert.ok(!opens(credential('serviceAccount', 'a', 'h1')));
    assert.equal(openerOf(openers, []), undefined);
  });

  it('a service account opens it by what it is', () => {
    const openers = withOpener({}, credential('serviceAccount', 'a', 'h1'));
    assert.ok(openerOf(openers, [credential('serviceAccount', 'a', 'other')]));
    assert.equal(openerOf(openers, [credential('serviceAccount', 'b', 'h1')]), undefined);
  });

  it('whoever opened it can again, whatever others came before, up to the newest hundred', () => {
    const anybody = fc
      .tuple(fc.constantFrom('node', 'secret', 'serviceAccount'), fc.nat(20), fc.nat(5))
      .map(([kind, name, hash]) => credential(kind, `n${name}`, `h${hash}`));
    fc.assert(
      fc.property(fc.array(anybody, { minLength: 1, maxLength: 60 }), (list) => {
        const openers = list.reduce(withOpener, {});
        assert.ok(list.every((one) => openerOf(openers, [one]) !== undefined));
        // Known ones change nothing.
        assert.equal(withOpener(openers, list.at(-1)), openers);
      }),
    );
    const many = Array.from({ length: 150 }, (_, n) => credential('secret', `n${n}`));
    assert.equal(many.reduce(withOpener, {}).kubernetesSecrets?.length, 100);
  });
});
