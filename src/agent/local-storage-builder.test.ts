import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import { podAnnotations } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { buildLocalStorage, type LocalStorageRooms } from './local-storage-builder.ts';

function pod(uid: string, annotations: Record<string, string>): Pod {
  return {
    metadata: { name: uid, namespace: 'default', uid, annotations },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      containers: [{ name: 'main' }],
      volumes: [{ name: 'data', emptyDir: { sizeLimit: '1Ki' } }],
    },
  };
}

test('a pod over a limit is evicted with reason and event, a static one is only told about', async () => {
  const root = mkdtempSync(`${tmpdir()}/local-storage-builder-`);
  const stop = new AbortController();
  try {
    writeFileSync(`${root}/file`, Buffer.alloc(8192, 1));
    const volume = {
      name: 'data',
      kind: 'emptyDir',
      hostPath: root,
      readOnly: false,
      relabels: true,
    } as const;
    const pods = [pod('ordinary', {}), pod('static', { [podAnnotations.configSource]: 'file' })];
    const evicted: unknown[] = [];
    const events: string[] = [];
    const warnings: string[] = [];
    const rooms = {
      built: {
        volumes: { mounted: () => pods.map((one) => ({ pod: one, volumes: [volume] })) },
        directories: { logDirectory: () => `${root}/no-logs` },
        runtime: { listContainerStats: async () => ({ stats: [] }) },
      },
      observer: { pod: () => ({ containers: [] }) },
      workers: {
        get: (uid: string) => ({ evict: (verdict: object) => evicted.push({ uid, ...verdict }) === 1 }),
      },
      events: {
        event: ({ name }: { name: string }, type: string, reason: string, message: string) =>
          events.push(`${name} ${type} ${reason} ${message}`),
      },
    } as unknown as LocalStorageRooms;
    const clock = new VirtualClock();
    const storage = buildLocalStorage(
      {
        settings: {
          rootDirectory: root,
          localStorage: { isolation: true, statsPeriodMs: 60_000 },
        } as NodeAgentSettings,
        clock,
        logger: { ...silentLogger, warn: (message) => void warnings.push(message) },
        metrics: new MetricsRegistry(),
      },
      rooms,
    );
    void storage.run(stop.signal);
    for (let turn = 0; turn < 2000 && (evicted.length < 1 || warnings.length < 2); turn++)
      await clock.advance(0);
    const message = 'Usage of EmptyDir volume "data" exceeds the limit "1Ki". ';
    assert.deepEqual(evicted, [
      { uid: 'ordinary', phase: 'Failed', reason: 'Evicted', message, graceSeconds: 1 },
    ]);
    assert.deepEqual(events, [`ordinary Warning Evicted ${message}`]);
    assert.ok(warnings.includes('A critical pod is over a limit'));
  } finally {
    stop.abort();
    rmSync(root, { recursive: true, force: true });
  }
});
