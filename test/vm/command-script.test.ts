import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { commandScript } from './command-script.ts';

test('arguments reach the command unchanged', () => {
  const words = [`it's`, '$HOME', 'two  words', '', '*', 'a\nb', '\\'];
  const printed = execFileSync('sh', ['-c', commandScript(['printf', '%s|', ...words])], {
    encoding: 'utf8',
  });
  assert.equal(printed, words.map((word) => `${word}|`).join(''));
});

test('test files go to the test runner', () => {
  assert.match(commandScript(['test/a.test.ts']), /^exec 'node' '--test' .*'test\/a\.test\.ts'\n$/);
  assert.match(commandScript(['cat', 'test/a.test.ts']), /^exec 'cat' 'test\/a\.test\.ts'\n$/);
});
