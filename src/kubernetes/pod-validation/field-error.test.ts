import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FieldErrors, fieldPathSegments, formatFieldError, keyPath } from './field-error.ts';

describe('formatFieldError', () => {
  const cases: [report: (errors: FieldErrors) => void, text: string][] = [
    [(errors) => errors.required('a.b'), 'a.b: Required value'],
    [(errors) => errors.required('a', 'why'), 'a: Required value: why'],
    [(errors) => errors.invalid('a', 'x"y', 'why'), 'a: Invalid value: "x\\"y": why'],
    [(errors) => errors.invalid('a', 5, 'why'), 'a: Invalid value: 5: why'],
    [(errors) => errors.invalid('a', { b: [1] }, 'why'), 'a: Invalid value: {"b":[1]}: why'],
    [
      (errors) => errors.notSupported('a', 'x', ['A', 'B']),
      'a: Unsupported value: "x": supported values: "A", "B"',
    ],
    [(errors) => errors.duplicate('a[1]', 'x'), 'a[1]: Duplicate value: "x"'],
    [(errors) => errors.forbidden('a', 'why'), 'a: Forbidden: why'],
    [(errors) => errors.tooLong('a', 63), 'a: Too long: may not be more than 63 bytes'],
    [(errors) => errors.tooMany('a', 5, 3), 'a: Too many: 5: must have at most 3 items'],
    [(errors) => errors.notFound('a', 'x'), 'a: Not found: "x"'],
    [(errors) => errors.invalid('a', null, 'why'), 'a: Invalid value: null: why'],
  ];
  for (const [report, text] of cases) {
    it(text, () => {
      const errors = new FieldErrors();
      report(errors);
      assert.deepEqual(errors.list().map(formatFieldError), [text]);
    });
  }

  it('cuts long values, big lists and long keys', () => {
    const errors = new FieldErrors();
    errors.invalid(keyPath('labels', 'k'.repeat(10_000)), 'v'.repeat(10_000), '');
    errors.invalid(
      'list',
      Array.from({ length: 10_000 }, () => 'v'),
      '',
    );
    for (const text of errors.list().map(formatFieldError)) assert.ok(text.length < 500, text);
  });
});

describe('FieldErrors', () => {
  it('counts what it does not list', () => {
    const errors = new FieldErrors();
    for (let n = 0; n < 1000; n++) errors.required(`a[${n}]`);
    const list = errors.list();
    assert.equal(list.length, 201);
    assert.equal(formatFieldError(list.at(-1)!), 'pod: Too many: 1000: 800 further problems are not listed');
  });
});

describe('fieldPathSegments', () => {
  const cases: [path: string, segments: (string | number)[]][] = [
    ['spec.containers[0].image', ['spec', 'containers', 0, 'image']],
    ['metadata.labels[a.b/c]', ['metadata', 'labels', 'a.b/c']],
    ['pod', ['pod']],
  ];
  for (const [path, segments] of cases) {
    it(path, () => assert.deepEqual(fieldPathSegments(path), segments));
  }
});
