import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  QuantityError,
  quantityMilliValue,
  quantityOf,
  quantityValue,
  subtractQuantities,
  tryParseQuantity,
} from './quantity.ts';

suite('quantity', () => {
  const canonical: [string | number, string][] = [
    ['0', '0'],
    ['0.0', '0'],
    ['-0', '0'],
    ['000', '0'],
    ['0Ki', '0'],
    ['1', '1'],
    [1, '1'],
    [0.5, '500m'],
    ['+2', '2'],
    ['-2', '-2'],
    ['.5', '500m'],
    ['5.', '5'],
    ['100m', '100m'],
    ['1000m', '1'],
    ['1500m', '1500m'],
    ['0.1', '100m'],
    ['1000', '1k'],
    ['1500', '1500'],
    ['12000', '12k'],
    ['1000k', '1M'],
    ['1e3', '1e3'],
    ['1E3', '1e3'],
    ['1e0', '1'],
    ['1e-3', '1e-3'],
    ['12e4', '120e3'],
    ['1E', '1E'],
    ['1024', '1024'],
    ['1Ki', '1Ki'],
    ['1024Ki', '1Mi'],
    ['1025Ki', '1025Ki'],
    ['1.5Gi', '1536Mi'],
    ['0.5Ki', '512'],
    ['1023', '1023'],
    ['0.0001Ki', '102400u'],
    ['1Ei', '1Ei'],
    ['1n', '1n'],
    ['0.1n', '1n'],
    ['-0.1n', '-1n'],
    ['1.0000000001', '1000000001n'],
    ['1u', '1u'],
    ['9223372036854775808', '9223372036854775807'],
    ['1e999999999', '9223372036854775807'],
    ['-10E', '-9223372036854775807'],
    ['1e-999999999', '1e-9'],
    ['8Ei', '9223372036854775807'],
    ['10Gi', '10Gi'],
    ['128974848', '128974848'],
    ['129e6', '129e6'],
    ['129M', '129M'],
    ['123Mi', '123Mi'],
  ];
  for (const [text, expected] of canonical) {
    test(`${text} is printed ${expected}`, () => {
      assert.equal(formatQuantity(parseQuantity(text)), expected);
    });
  }

  for (const text of [
    '',
    ' ',
    '.',
    '-',
    '1 ',
    ' 1',
    '1.1.M',
    '1+1.0M',
    '0.1mi',
    '0.1am',
    'aoeu',
    '.5i',
    '1i',
    '-3.01i',
    '-3.01e-',
    '1e',
    '1K',
    '1ki',
    '1KI',
    '--1',
    '1_000',
    '0x10',
    'NaN',
    'Infinity',
    '1Gb',
    '1e99999999999',
    '1m1',
  ]) {
    if (text === '1e') {
      test('a lone e is no suffix', () => assert.throws(() => parseQuantity(text), QuantityError));
      continue;
    }
    test(`${JSON.stringify(text)} is refused`, () => {
      assert.throws(() => parseQuantity(text), QuantityError);
      assert.equal(tryParseQuantity(text), undefined);
    });
  }

  test('values are rounded away from zero', () => {
    assert.equal(quantityValue(parseQuantity('1.1')), 2);
    assert.equal(quantityValue(parseQuantity('-1.1')), -2);
    assert.equal(quantityMilliValue(parseQuantity('1.0001')), 1001);
    assert.equal(quantityMilliValue(parseQuantity('2')), 2000);
    assert.equal(quantityValue(parseQuantity('64Mi')), 64 * 1024 * 1024);
  });

  test('a sum keeps the format of its first part, or of the second when that is nothing', () => {
    assert.equal(formatQuantity(addQuantities(parseQuantity('1Gi'), parseQuantity('1024'))), '1048577Ki');
    assert.equal(formatQuantity(addQuantities(parseQuantity('0'), parseQuantity('1Gi'))), '1Gi');
    assert.equal(formatQuantity(subtractQuantities(parseQuantity('2'), parseQuantity('500m'))), '1500m');
  });

  const suffix = fc.constantFrom('n', 'u', 'm', '', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'e3', 'E-2', 'e0');
  const texts = fc
    .tuple(
      fc.constantFrom('', '-', '+'),
      fc.nat(999_999),
      fc.option(fc.nat(9999), { nil: undefined }),
      suffix,
    )
    .map(([sign, whole, part, end]) => `${sign}${whole}${part === undefined ? '' : `.${part}`}${end}`);

  test('printing and reading again changes neither the value nor the text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const quantity = parseQuantity(text);
        const printed = formatQuantity(quantity);
        assert.equal(compareQuantities(parseQuantity(printed), quantity), 0);
        assert.equal(formatQuantity(parseQuantity(printed)), printed);
        assert.match(printed, /^-?\d+([numkMGTPE]|[KMGTPE]i|e-?\d+)?$/);
      }),
    );
  });

  test('adding is commutative in value, and subtracting undoes it', () => {
    fc.assert(
      fc.property(texts, texts, (a, b) => {
        const [left, right] = [parseQuantity(a), parseQuantity(b)];
        assert.equal(compareQuantities(addQuantities(left, right), addQuantities(right, left)), 0);
        assert.equal(compareQuantities(subtractQuantities(addQuantities(left, right), right), left), 0);
      }),
    );
  });

  test('the order agrees with the order of plain numbers', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), (a, b) => {
        assert.equal(compareQuantities(quantityOf(a), quantityOf(b)), Math.sign(a - b) + 0);
        assert.equal(quantityValue(quantityOf(a)), a + 0);
      }),
    );
  });

  test('no text makes it fail with anything but a quantity error', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        tryParseQuantity(text);
      }),
    );
  });
});
