import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type ApiClient, ApiError } from '../../client/api-client.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { DeferredApiClient } from './deferred-client.ts';

const answering: ApiClient = {
  request: async <T>({ path }: { path: string }) => `answer to ${path}` as T,
  watch: async () => {},
};
const get = { method: 'GET', path: '/x' } as const;

it('requests wait for the client, and go to it from then on', async () => {
  const clock = new VirtualClock();
  const client = new DeferredApiClient(clock);
  const early = client.request(get);
  const watched = client.watch({ ...get, signal: new AbortController().signal }, () => {});
  await clock.advance(20_000);
  client.use(answering);
  assert.equal(await early, 'answer to /x');
  await watched;
  assert.equal(await client.request(get), 'answer to /x');
  assert.equal(clock.nextTimer(), undefined);
});

it('a request waits no longer than its time limit, and fails as when the server is away', async () => {
  const clock = new VirtualClock();
  const client = new DeferredApiClient(clock);
  const failures: unknown[] = [];
  client.request({ ...get, timeoutMs: 5000 }).catch((error: unknown) => failures.push(error));
  client.request(get).catch((error: unknown) => failures.push(error));
  await clock.advance(5000);
  assert.equal(failures.length, 1);
  assert.ok(failures[0] instanceof ApiError && failures[0].unreachable);
  await clock.advance(25_000);
  assert.equal(failures.length, 2);
});

it('waiting ends with its signal', async () => {
  const client = new DeferredApiClient(new VirtualClock());
  const end = new AbortController();
  const watched = client.watch({ ...get, signal: end.signal }, () => {});
  const asked = client.request({ ...get, signal: end.signal });
  const refused = Promise.all([assert.rejects(watched, /enough/), assert.rejects(asked, /enough/)]);
  await settle();
  end.abort(new Error('enough'));
  await refused;
});
