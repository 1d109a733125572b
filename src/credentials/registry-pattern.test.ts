import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { registryCredential } from './registry-credential.ts';
import { RegistryKeyring } from './registry-keyring.ts';
import { coversImage, parseDockerKey, parseRegistryPattern } from './registry-pattern.ts';

const covers = (pattern: string, image: string) => {
  const parsed = parseRegistryPattern(pattern);
  return parsed !== undefined && coversImage(parsed, image);
};

describe('registry pattern', () => {
  const table: [pattern: string, image: string, covered: boolean][] = [
    ['registry.io', 'registry.io/a/b', true],
    ['registry.io', 'registry.io:5000/a', false],
    ['registry.io:5000', 'registry.io:5000/a', true],
    ['registry.io:5000', 'registry.io/a', false],
    ['registry.io/a', 'registry.io/a/b', true],
    ['registry.io/a', 'registry.io/b', false],
    ['registry.io/', 'registry.io/b', true],
    ['https://registry.io/a', 'registry.io/a', true],
    ['*.registry.io', 'eu.registry.io/a', true],
    ['*.registry.io', 'registry.io/a', false],
    ['*.registry.io', 'a.b.registry.io/a', false],
    ['*.*.registry.io', 'a.b.registry.io/a', true],
    ['reg*.io', 'registry.io/a', true],
    ['r?gistry.io', 'registry.io/a', true],
    ['r[a-f]gistry.io', 'registry.io/a', true],
    ['r[^a-f]gistry.io', 'registry.io/a', false],
    ['r[gistry.io', 'registry.io/a', false],
    ['*.dkr.ecr.*.amazonaws.com', '123.dkr.ecr.eu-west-1.amazonaws.com/x', true],
    ['[fd00::1]:5000', '[fd00::1]:5000/x', true],
    ['*', 'localhost/x', true],
    ['*', 'registry.io/x', false],
  ];
  for (const [pattern, image, covered] of table) {
    it(`${pattern} ${covered ? 'covers' : 'does not cover'} ${image}`, () => {
      assert.equal(covers(pattern, image), covered);
    });
  }

  it('what is no address is no pattern', () => {
    for (const text of ['', '/a', 'a b', 'user@host', 'host:port', 'a:1:2']) {
      assert.equal(parseRegistryPattern(text), undefined, text);
    }
  });

  it("the protocol's version in Docker's keys is no path", () => {
    const keys = [
      'https://index.docker.io/v1/',
      'http://r.io/v2/',
      'r.io/v2/team',
      'r.io/team/v1/x',
      'r.io:5000',
    ];
    assert.deepEqual(
      keys.map((key) => parseDockerKey(key)?.key),
      ['index.docker.io', 'r.io', 'r.io/team', 'r.io/team/v1/x', 'r.io:5000'],
    );
  });

  it('a host pattern of stars covers what it was made from', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]{1,12}(\.[a-z0-9]{1,12}){0,3}$/), fc.nat(), (host, seed) => {
        const pattern = host
          .split('.')
          .map((label, index) => `${label.slice(0, (seed >> index) % (label.length + 1))}*`)
          .join('.');
        return covers(pattern, `${host}/x`);
      }),
    );
  });

  it('a hostile pattern takes no time', () => {
    const began = performance.now();
    assert.equal(covers(`${'*a'.repeat(2000)}b`, `${'a'.repeat(4000)}/x`), false);
    assert.ok(performance.now() - began < 2000);
  });
});

describe('registry keyring', () => {
  const keyring = (...keys: string[]) =>
    new RegistryKeyring(
      keys.map((key) => ({
        pattern: parseDockerKey(key)!,
        credential: registryCredential({ username: key }),
      })),
    );
  const found = (ring: RegistryKeyring, image: string) => ring.lookup(image).map(({ username }) => username);

  it('answers every match, the longest path of a host first', () => {
    const ring = keyring('r.io', 'r.io/team/app', '*.io', 'r.io/team', 'other.io');
    assert.deepEqual(found(ring, 'r.io/team/app'), ['r.io/team/app', 'r.io/team', 'r.io', '*.io']);
  });

  it("serves Docker Hub's images with what docker login wrote, when nothing else matches", () => {
    const hub = 'https://index.docker.io/v1/';
    assert.deepEqual(found(keyring(hub), 'docker.io/library/nginx'), [hub]);
    assert.deepEqual(found(keyring(hub, 'docker.io'), 'docker.io/library/nginx'), ['docker.io']);
    assert.deepEqual(found(keyring(hub), 'r.io/nginx'), []);
  });
});
