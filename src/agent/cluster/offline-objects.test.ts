import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../client/api-client.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { NotSyncedError } from '../../objects/synced-objects.ts';
import { testPod } from '../../pods/fixtures/pod-model.ts';
import { OfflineObjects, retryMs } from './offline-objects.ts';
import { standAlone } from './stand-alone.ts';

const never = new AbortController().signal;
const away = new ApiError({ status: 0, reason: 'Unreachable', message: 'away' });

function scene(kept: Record<string, unknown> = {}) {
  const clock = new VirtualClock();
  const copies = new Map(Object.entries(kept));
  const due: string[] = [];
  const server: { failure: Error | undefined; token: string; hangs: boolean } = {
    failure: undefined,
    token: 'new',
    hangs: false,
  };
  const answer = async <T>(value: T, signal: AbortSignal = never): Promise<T> => {
    if (server.hangs) {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    }
    if (server.failure) throw server.failure;
    return value;
  };
  const objects = new OfflineObjects({
    objects: {
      ...standAlone().objects,
      serviceVariables: (_pod, signal) => answer(new Map([['A_PORT', '1']]), signal),
      runtimeHandler: () => answer('kata'),
      volumeContents: {
        configMap: async () => undefined,
        secret: async () => undefined,
        serviceAccountToken: (_wish, signal) => answer(server.token, signal),
      },
    },
    copies: {
      recall: (key) => copies.get(key),
      remember: (key, value) => void copies.set(key, value),
      forgetPod: (uid) => {
        for (const key of copies.keys()) if (key.startsWith(`pod/${uid}/`)) copies.delete(key);
      },
    },
    clock,
    onDue: (uid) => due.push(uid),
  });
  const pod = testPod({ runtimeClassName: 'sandboxed' });
  const token = () => objects.volumeContents.serviceAccountToken({ pod }, never);
  return { clock, copies, due, server, objects, pod, token };
}

test('what was answered is kept, and stands in while there is no answer', async () => {
  const { server, objects, pod, token } = scene();
  assert.equal(await token(), 'new');
  assert.deepEqual([...(await objects.serviceVariables(pod, never))], [['A_PORT', '1']]);
  assert.equal(await objects.runtimeHandler(pod), 'kata');
  server.failure = away;
  assert.equal(await token(), 'new');
  assert.equal(await objects.runtimeHandler(pod), 'kata');
  server.failure = new NotSyncedError('services');
  assert.deepEqual([...(await objects.serviceVariables(pod, never))], [['A_PORT', '1']]);
});

test('a refusal is an answer, and without a copy there is none', async () => {
  const { server, copies, token } = scene();
  server.failure = away;
  await assert.rejects(token(), /away/);
  server.failure = undefined;
  await token();
  server.failure = new ApiError({ status: 403, reason: 'Forbidden', message: 'no longer' });
  await assert.rejects(token(), /no longer/);
  assert.equal(copies.size, 1);
});

test('whoever was given a copy is looked at again until there is an answer', async () => {
  const { clock, server, due, objects, pod, token } = scene();
  await token();
  server.failure = away;
  await token();
  await clock.advance(retryMs);
  assert.deepEqual(due, [pod.metadata.uid]);
  await token();
  await clock.advance(retryMs);
  assert.equal(due.length, 2);
  server.failure = undefined;
  server.token = 'newer';
  assert.equal(await token(), 'newer');
  assert.equal(clock.nextTimer(), undefined);
  server.failure = away;
  await token();
  objects.forget(pod.metadata.uid);
  assert.equal(clock.nextTimer(), undefined);
  await assert.rejects(token(), /away/);
});

test('a server that hangs is waited for once, not by each container', async () => {
  const { clock, server, objects, pod, token } = scene();
  await token();
  await objects.serviceVariables(pod, never);
  server.failure = away;
  await token();
  server.hangs = true;
  const told = objects.serviceVariables(pod, never);
  await settle();
  await clock.advance(100);
  assert.equal((await told).size, 1);
  objects.close();
  assert.equal(clock.nextTimer(), undefined);
});
