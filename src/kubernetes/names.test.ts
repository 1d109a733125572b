import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  checkConfigMapKey,
  checkDns1035Label,
  checkDns1123Label,
  checkDns1123Subdomain,
  checkEnvVarName,
  checkLabelValue,
  checkPortName,
  checkPortNumber,
  checkQualifiedName,
  checkStrictEnvVarName,
  parsePodFullName,
  podFullName,
} from './names.ts';

const long = (length: number) => 'a'.repeat(length);

suite('names', () => {
  const rules: [string, (value: string) => string[], string[], string[]][] = [
    [
      'RFC 1123 label',
      checkDns1123Label,
      ['a', '1', 'a-b', '1-2-3', long(63)],
      ['', '-', 'a-', '-a', 'A', 'a.b', 'a_b', 'a b', 'ä', 'a\n', long(64)],
    ],
    [
      'RFC 1123 subdomain',
      checkDns1123Subdomain,
      ['a', 'a.b', '1.2', 'a-b.c-d', long(253)],
      ['', '.', 'a.', '.a', 'a..b', 'A.b', 'a_b', long(254)],
    ],
    ['DNS-1035 label', checkDns1035Label, ['a', 'a1', 'a-b'], ['1a', '-a', '', 'a.b', long(64)]],
    [
      'qualified name',
      checkQualifiedName,
      ['simple', 'UPPER', 'a_b.c-d', '1', 'example.com/MyName', `${'a'.repeat(253)}/b`],
      ['', '/', 'a/', '/a', 'a/b/c', 'A.com/b', '-a', 'a-', 'a b', long(64), 'x/'.concat(long(64))],
    ],
    ['label value', checkLabelValue, ['', 'a', 'A_b.c-1', long(63)], ['-', 'a-', '/', 'a b', long(64)]],
    [
      'environment variable name',
      checkEnvVarName,
      ['A', '1A', 'a b', 'x.y-z', '~', '<', '>'],
      ['', 'A=1', 'Ä', 'a\n', 'a\t'],
    ],
    [
      'strict environment variable name',
      checkStrictEnvVarName,
      ['A', 'a.b', '-x', '_'],
      ['', '1A', 'a b', '.', '..', '..a'],
    ],
    [
      'config key',
      checkConfigMapKey,
      ['a', '.hidden', 'A_b-c.d', long(253)],
      ['', '.', '..', '..a', 'a/b', long(254)],
    ],
    [
      'port name',
      checkPortName,
      ['http', 'a1', 'web-1', '9p'],
      ['', '80', '-a', 'a-', 'a--b', 'HTTP', 'a_b', long(16)],
    ],
  ];
  for (const [rule, check, good, bad] of rules) {
    for (const value of good) {
      test(`${rule}: ${JSON.stringify(value.slice(0, 20))} (${value.length}) is good`, () =>
        assert.deepEqual(check(value), []));
    }
    for (const value of bad) {
      test(`${rule}: ${JSON.stringify(value.slice(0, 20))} (${value.length}) is refused`, () =>
        assert.notDeepEqual(check(value), []));
    }
  }

  test('the texts are the ones the API server gives', () => {
    assert.deepEqual(checkDns1123Label('A'), [
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ]);
    assert.deepEqual(checkDns1123Label('a.b'), ['must not contain dots']);
    assert.deepEqual(checkDns1123Label(long(64)), ['must be no more than 63 bytes']);
    assert.deepEqual(checkQualifiedName('Ex/a'), [
      "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ]);
    assert.deepEqual(checkEnvVarName('KEY=1'), [
      "a valid environment variable name must consist only of printable ASCII characters other than '='",
    ]);
  });

  test('port numbers run from 1 to 65535', () => {
    for (const port of [1, 80, 65_535]) assert.deepEqual(checkPortNumber(port), []);
    for (const port of [0, -1, 65_536, 1.5, Number.NaN]) assert.notDeepEqual(checkPortNumber(port), []);
  });

  const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/);

  test('joining good labels with dots gives a good subdomain', () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (labels) => {
        assert.deepEqual(checkDns1123Subdomain(labels.join('.')), []);
      }),
    );
  });

  test('a pod full name can be taken apart again', () => {
    fc.assert(
      fc.property(name, name, (pod, namespace) => {
        assert.deepEqual(parsePodFullName(podFullName(pod, namespace)), { name: pod, namespace });
      }),
    );
    for (const wrong of ['', 'a', 'a_', '_b', 'a_b_c']) assert.equal(parsePodFullName(wrong), undefined);
  });

  test('no check ever throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        for (const [, check] of rules) check(text);
      }),
    );
  });
});
