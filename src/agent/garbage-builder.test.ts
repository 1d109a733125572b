import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { buildPodGarbage, type PodGarbageRooms } from './garbage-builder.ts';

test('an orphan goes with its volumes and its cgroup, which are found by its uid', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'garbage-builder-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  for (const name of ['u1', 'logs', 'links']) mkdirSync(join(base, name));
  const clock = new VirtualClock();
  const done: string[] = [];
  const act = (what: string) => async (uid: string) => void done.push(`${what} ${uid}`);
  const rooms = {
    built: {
      directories: {
        podDirectory: (uid: string) => join(base, uid),
        podsOnDisk: async () => (done.includes('erase u1') ? [] : [{ uid: 'u1', hasDirectory: true }]),
        async eraseOrphan(uid: string) {
          done.push(`erase ${uid}`);
          await rm(join(base, uid), { recursive: true });
        },
      },
      runtime: {
        listPodSandbox: async () => ({ items: [] }),
        listContainers: async () => ({ containers: [] }),
      },
      services: { cgroups: { removePod: act('cgroup') } },
      volumes: { tearDown: act('volumes') },
      containerLogsDirectory: join(base, 'links'),
    },
    workers: { all: () => [], get: () => undefined },
    sources: { ready: true, pods: new Map() },
    nodeName: 'node',
    events: { event: () => assert.fail('nothing goes wrong') },
  } as unknown as PodGarbageRooms;
  const settings = {
    deadContainers: { perContainer: 1, total: -1, minAgeMs: 0 },
    podLogsDirectory: join(base, 'logs'),
  } as Parameters<typeof buildPodGarbage>[0]['settings'];
  const garbage = buildPodGarbage(
    { settings, clock, logger: silentLogger, metrics: new MetricsRegistry() },
    rooms,
  );
  const { signal } = new AbortController();
  await garbage.collect(signal);
  assert.deepEqual(done, [], 'it may be about to be known');
  await clock.advance(60_000);
  await garbage.collect(signal);
  assert.deepEqual(done, ['volumes u1', 'cgroup u1', 'erase u1']);
});
