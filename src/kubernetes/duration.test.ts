import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import {
  DurationError,
  formatDuration,
  formatDurationNanos,
  parseDuration,
  parseDurationNanos,
} from './duration.ts';

suite('duration', () => {
  const table: [string, number, string][] = [
    ['0', 0, '0s'],
    ['0s', 0, '0s'],
    ['-0', 0, '0s'],
    ['5s', 5000, '5s'],
    ['1478s', 1_478_000, '24m38s'],
    ['1m30s', 90_000, '1m30s'],
    ['1h', 3_600_000, '1h0m0s'],
    ['1.5h', 5_400_000, '1h30m0s'],
    ['300ms', 300, '300ms'],
    ['1.2ms', 1.2, '1.2ms'],
    ['14us', 0.014, '14µs'],
    ['14µs', 0.014, '14µs'],
    ['14μs', 0.014, '14µs'],
    ['11ns', 0.000_011, '11ns'],
    ['-5s', -5000, '-5s'],
    ['+5s', 5000, '5s'],
    ['.5s', 500, '500ms'],
    ['5.s', 5000, '5s'],
    ['1h15m30.918s', 4_530_918, '1h15m30.918s'],
    ['100000h', 3.6e11, '100000h0m0s'],
    ['1s1s', 2000, '2s'],
    ['0.9999999999s', 999.999_999, '999.999999ms'],
  ];
  for (const [text, ms, printed] of table) {
    test(`${text} is ${ms} ms`, () => {
      assert.equal(parseDuration(text), ms + 0);
      assert.equal(formatDurationNanos(parseDurationNanos(text)), printed);
    });
  }

  const wrong: [string, string][] = [
    ['', 'time: invalid duration ""'],
    ['3', 'time: missing unit in duration "3"'],
    ['-', 'time: invalid duration "-"'],
    ['s', 'time: invalid duration "s"'],
    ['.', 'time: invalid duration "."'],
    ['.s', 'time: invalid duration ".s"'],
    ['3000000h', 'time: invalid duration "3000000h"'],
    ['1d', 'time: unknown unit "d" in duration "1d"'],
    ['1h 2m', 'time: unknown unit "h " in duration "1h 2m"'],
    ['1constructor', 'time: unknown unit "constructor" in duration "1constructor"'],
    [`${'9'.repeat(1000)}ns`, `time: invalid duration "${'9'.repeat(1000)}ns"`],
  ];
  for (const [text, message] of wrong) {
    test(`${JSON.stringify(text.slice(0, 20))} is refused as Go refuses it`, () => {
      assert.throws(
        () => parseDuration(text),
        (error) => error instanceof DurationError && error.message === message,
      );
    });
  }

  test('what is printed reads back as the same length', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n }), (nanos) => {
        assert.equal(parseDurationNanos(formatDurationNanos(nanos)), nanos);
      }),
    );
  });

  test('milliseconds survive printing and reading', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (ms) => {
        assert.equal(parseDuration(formatDuration(ms)), ms + 0);
      }),
    );
    assert.equal(formatDuration(0.5), '500µs');
    assert.equal(formatDuration(1500.25), '1.50025s');
  });
});
