import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { containerHash, contentHash, fnv1a32, fnv1a128Hex, stableJson } from './hash.ts';

suite('hash', () => {
  test('FNV-1a 32 gives its published values', () => {
    assert.equal(fnv1a32(''), 0x811c9dc5);
    assert.equal(fnv1a32('a'), 0xe40c292c);
    assert.equal(fnv1a32('foobar'), 0xbf9cf968);
  });

  test('FNV-1a 128 gives its published values', () => {
    assert.equal(fnv1a128Hex(''), '6c62272e07bb014262b821756295c58d');
    assert.equal(fnv1a128Hex('a'), 'd228cb696f1a8caf78912b704e4a8964');
    assert.equal(fnv1a128Hex('foobar'), '343e1662793c64bf6f0d3597ba446f18');
  });

  test('the container hash is the one the Go kubelet writes', () => {
    const container = { name: 'test_container', image: 'foo/image:v1', args: ['/bin/sh'], ports: [] };
    assert.equal(containerHash(container), '8e45cbd0');
  });

  test('only name and image count for the container hash', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.anything(), (name, image, rest) => {
        const container = { name, image, command: rest };
        assert.equal(containerHash(container), containerHash({ name, image }));
        assert.notEqual(containerHash({ name, image: `${image}x` }), containerHash({ name, image }));
      }),
    );
  });

  test('the content hash does not see the order of keys', () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled);
      if (value === null || typeof value !== 'object') return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, member]) => [key, shuffled(member)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.equal(contentHash(shuffled(value)), contentHash(value));
      }),
    );
  });

  test('the content hash sees the order of lists and every value', () => {
    assert.notEqual(contentHash([1, 2]), contentHash([2, 1]));
    assert.notEqual(contentHash({ a: 1 }), contentHash({ a: '1' }));
    assert.equal(contentHash({ a: 1, b: undefined }), contentHash({ a: 1 }));
    assert.equal(stableJson({ b: [{ d: 1, c: 2 }], a: null }), '{"a":null,"b":[{"c":2,"d":1}]}');
    assert.equal(stableJson(undefined), 'null');
  });
});
