import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { configurationPage, flagsPage } from './reference-pages.ts';

const written = (name: string) => readFileSync(path.join(process.cwd(), 'docs/reference', name), 'utf8');

test('the reference pages say what the code says (else run scripts/generate-reference.ts)', () => {
  assert.equal(written('flags.md'), flagsPage());
  assert.equal(written('configuration.md'), configurationPage());
});
