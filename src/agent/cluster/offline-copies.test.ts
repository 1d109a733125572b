import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { ApiError } from '../../client/api-client.ts';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { isUnanswered, OfflineCopies } from './offline-copies.ts';

let rootDirectory: string;
beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'offline-'));
});
afterEach(() => rmSync(rootDirectory, { recursive: true, force: true }));

const directory = () => join(rootDirectory, 'kubelet-ts', 'offline');
async function opened(isNeeded: (key: string) => boolean = () => true): Promise<OfflineCopies> {
  const copies = new OfflineCopies({ rootDirectory, clock: new VirtualClock(), logger: silentLogger });
  await copies.load(isNeeded);
  return copies;
}

test('what was kept is there for the next agent, readable by nobody else', async () => {
  const copies = await opened();
  copies.remember('secret/default/a', { data: { k: 'djE=' } });
  copies.remember('secret/default/a', { data: { k: 'djI=' } });
  copies.remember('pod/uid-1/token/', 'eyJ');
  await copies.flush();
  const [name] = readdirSync(directory());
  assert.equal(statSync(directory()).mode & 0o777, 0o700);
  assert.equal(statSync(join(directory(), name!)).mode & 0o777, 0o600);
  const next = await opened();
  assert.deepEqual(next.recall('secret/default/a'), { data: { k: 'djI=' } });
  assert.equal(next.recall('pod/uid-1/token/'), 'eyJ');
});

test('what nobody needs is removed, at once and at the next start', async () => {
  const copies = await opened();
  copies.remember('secret/default/a', 1);
  copies.remember('secret/default/b', 2);
  copies.remember('pod/uid-1/services', []);
  copies.forget('secret/default/a');
  copies.forgetPod('uid-1');
  await copies.flush();
  assert.equal(readdirSync(directory()).length, 1);
  const next = await opened((key) => key !== 'secret/default/b');
  assert.equal(next.recall('secret/default/b'), undefined);
  assert.deepEqual(readdirSync(directory()), []);
  next.remember('secret/default/c', 3);
  await next.flush();
  await OfflineCopies.discard(rootDirectory);
  assert.throws(() => readdirSync(directory()), /ENOENT/);
});

test('a damaged copy is none, and nothing of it stays', async () => {
  const copies = await opened();
  copies.remember('secret/default/a', 'x');
  await copies.flush();
  const path = join(directory(), readdirSync(directory())[0]!);
  writeFileSync(path, readFileSync(path, 'utf8').replace('"x"', '"y"'));
  const next = await opened();
  assert.equal(next.recall('secret/default/a'), undefined);
  assert.deepEqual(readdirSync(directory()), []);
});

test('only silence is made up for, not a refusal', () => {
  const answer = (status: number) => new ApiError({ status, reason: '', message: '' });
  assert.equal(isUnanswered(new Error('outer', { cause: answer(0) })), true);
  assert.equal(isUnanswered(answer(503)), true);
  assert.equal(isUnanswered(new Error('outer', { cause: answer(403) })), false);
  assert.equal(isUnanswered(answer(404)), false);
  assert.equal(isUnanswered(new Error('other')), false);
});
