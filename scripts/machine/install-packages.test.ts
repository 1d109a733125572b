import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { installPackages, programs, withoutServiceStarts } from './install-packages.ts';

let directory = '';
let policy = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'kubelet-ts-policy-'));
  policy = join(directory, 'policy-rc.d');
});

afterEach(() => rmSync(directory, { recursive: true }));

test('what is there is not installed, and nobody is told anything', async () => {
  const installed = await installPackages([programs('bash', 'sh')], () => assert.fail('told something'));
  assert.deepEqual(installed, []);
  assert.equal(programs('none', 'sh', 'no-such-program-here').present(), false);
});

test('while packages are installed the hook forbids service starts, afterwards it is gone', async () => {
  const seen = await withoutServiceStarts(async () => readFileSync(policy, 'utf8'), policy);
  assert.match(seen, /^#!\/bin\/sh\n.*\nexit 101\n$/);
  assert.equal(existsSync(policy), false);
});

test('the hook is gone after a failure too', async () => {
  const failure = withoutServiceStarts(async () => {
    throw new Error('apt failed');
  }, policy);
  await assert.rejects(failure, /apt failed/);
  assert.equal(existsSync(policy), false);
});

test('a hook of somebody else stays as it is', async () => {
  writeFileSync(policy, '#!/bin/sh\nexit 0\n');
  const seen = await withoutServiceStarts(async () => readFileSync(policy, 'utf8'), policy);
  assert.equal(seen, '#!/bin/sh\nexit 0\n');
  assert.equal(readFileSync(policy, 'utf8'), seen);
});

test('a hook that an interrupted run left behind is taken over and removed', async () => {
  const ours = await withoutServiceStarts(async () => readFileSync(policy, 'utf8'), policy);
  writeFileSync(policy, ours);
  await withoutServiceStarts(async () => {}, policy);
  assert.equal(existsSync(policy), false);
});
