import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { expand, expandAll, expandStrict, MissingValueError } from './expansion.ts';

const values = new Map([
  ['A', 'a'],
  ['B', '$(A)'],
  ['EMPTY', ''],
  ['X Y', 'space'],
]);
const lookup = (name: string) => values.get(name);

suite('expansion', () => {
  const table: [string, string][] = [
    ['', ''],
    ['text', 'text'],
    ['$(A)', 'a'],
    ['-$(A)-$(A)-', '-a-a-'],
    ['$(B)', '$(A)'],
    ['$(EMPTY)', ''],
    ['$(X Y)', 'space'],
    ['$(UNKNOWN)', '$(UNKNOWN)'],
    ['$$(A)', '$(A)'],
    ['$$$(A)', '$a'],
    ['$$$$(A)', '$$(A)'],
    ['$', '$'],
    ['a$', 'a$'],
    ['$$', '$'],
    ['$(', '$('],
    ['$(A', '$(A'],
    ['$A', '$A'],
    ['$ (A)', '$ (A)'],
    ['$()', '$()'],
    ['$($(A)', '$($(A)'],
    ['$(A)$(', 'a$('],
    ['$($', '$($'],
    ['$x$(A)', '$xa'],
    ['$$(', '$('],
  ];
  for (const [text, expected] of table) {
    test(`${text} becomes ${expected}`, () => assert.equal(expand(text, lookup), expected));
  }

  test('a required variable that is unknown or empty is an error that names it', () => {
    assert.equal(expandStrict('x/$(A)', lookup), 'x/a');
    for (const name of ['UNKNOWN', 'EMPTY']) {
      assert.throws(
        () => expandStrict(`x/$(${name})`, lookup),
        (error) => error instanceof MissingValueError && error.message === `missing value for "${name}"`,
      );
    }
  });

  test('lists are expanded entry by entry', () => {
    assert.deepEqual(expandAll(['$(A)', 'b'], lookup), ['a', 'b']);
    assert.deepEqual(expandAll(undefined, lookup), []);
  });

  test('a text without dollar signs is not changed, and an escaped one comes out as written', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        assert.equal(expand(text.replaceAll('$', '$$$$'), lookup), text);
        const plain = text.replaceAll('$', '');
        assert.equal(expand(plain, lookup), plain);
      }),
    );
  });

  test('with nothing known, only escapes change', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('$', '(', ')', 'A', ' ') }), (text) => {
        const result = expand(text, () => undefined);
        assert.ok(result.length <= text.length);
        if (!text.includes('$$')) assert.equal(result, text);
      }),
    );
  });
});
