import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import type { Pod, Volume } from '../kubernetes/types.ts';
import { mountTmpfs, unmountAtOrBelow } from '../linux/mounts.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { silentMetrics } from '../telemetry/metrics.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { LocalStorage, type LocalStorageOptions, type MeasuredPod } from './local-storage.ts';
import type { MountedVolume } from './volume-kind.ts';

let base: string;
let clock: VirtualClock;
let stop: AbortController;
let pods: MeasuredPod[];
let exceeded: string[];
let layers: string[];
let storage: LocalStorage;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'local-storage-'));
  clock = new VirtualClock();
  stop = new AbortController();
  pods = [];
  exceeded = [];
  layers = [];
});
afterEach(async () => {
  stop.abort();
  await unmountAtOrBelow(base);
  rmSync(base, { recursive: true, force: true });
});

async function pod(uid: string, emptyDir: Volume['emptyDir'] = {}): Promise<MeasuredPod> {
  const hostPath = join(base, uid, 'data');
  await mkdir(hostPath, { recursive: true });
  const found: Pod = {
    metadata: { uid, name: uid, namespace: 'default' },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      containers: [{ name: 'main' }],
      volumes: [{ name: 'data', emptyDir }],
    },
  };
  const volume: MountedVolume = { name: 'data', kind: 'emptyDir', hostPath, readOnly: false, relabels: true };
  const measured = { pod: found, volumes: [volume] };
  pods.push(measured);
  return measured;
}
const fill = (uid: string, bytes: number, name = 'big') =>
  writeFile(join(base, uid, 'data', name), Buffer.alloc(bytes, 1));

function start(options: Partial<LocalStorageOptions> = {}): void {
  storage = new LocalStorage({
    pods: () => pods,
    logDirectory: ({ metadata: { uid } }) => join(base, 'logs', uid),
    writableLayers: async ({ metadata: { uid } }) => {
      layers.push(uid);
      return new Map();
    },
    onExceeded: ({ metadata: { uid } }, { signal }) => exceeded.push(`${uid} ${signal}`),
    watchesLimits: true,
    statsPeriodMs: 60_000,
    clock,
    logger: silentLogger,
    metrics: silentMetrics,
    ...options,
  });
  void storage.run(stop.signal);
}

async function until(what: () => boolean): Promise<void> {
  for (let turn = 0; turn < 5000; turn++) {
    if (what()) return;
    await clock.advance(0);
  }
  assert.fail('it never happened');
}
const measuredAt = (uid: string) => storage.podLocalStorage(uid)?.time;

describe('measuring in the background', () => {
  it('tells volumes, logs and their sum', async () => {
    await pod('a');
    await fill('a', 300_000);
    await mkdir(join(base, 'logs/a/main'), { recursive: true });
    await writeFile(join(base, 'logs/a/main/0.log'), Buffer.alloc(100_000));
    start();
    await until(() => measuredAt('a') !== undefined);
    const [stats] = storage.volumeStats('a');
    assert.equal(stats?.name, 'data');
    assert.equal(stats?.inodesUsed, 2);
    assert.ok(stats.usedBytes >= 300_000 && stats.usedBytes < 320_000, String(stats.usedBytes));
    assert.ok(stats.capacityBytes > stats.availableBytes && stats.availableBytes > 0);
    assert.ok(stats.inodes >= stats.inodesFree);
    const found = storage.podLocalStorage('a')!;
    assert.equal(found.logs.get('main')?.inodes, 2);
    assert.equal(found.total.bytes, stats.usedBytes + found.logs.get('main')!.bytes);
    assert.deepEqual(layers, [], 'nobody needs them of a pod without limits');
  });

  it('asks the file system of a volume that is one of its own', async () => {
    const { volumes } = await pod('a', { medium: 'Memory' });
    await mountTmpfs(volumes[0]!.hostPath, ['size=1048576']);
    await fill('a', 8192);
    await pod('b');
    const metrics = new MetricsRegistry();
    start({ metrics });
    await until(() => measuredAt('a') !== undefined && measuredAt('b') !== undefined);
    const text = await metrics.exposition();
    for (const source of ['statfs', 'du']) {
      const count = `kubelet_volume_metric_collection_duration_seconds_count{metric_source="${source}"} 1\n`;
      assert.ok(text.includes(count), text);
    }
    const [stats] = storage.volumeStats('a');
    assert.equal(stats?.capacityBytes, 1048576);
    assert.equal(stats?.usedBytes, 8192);
    assert.equal(storage.podLocalStorage('a')?.total.bytes, 0);
  });

  it('looks at a pod with a limit every ten seconds, at others once in the period', async () => {
    await pod('limited', { sizeLimit: '1Mi' });
    await pod('free');
    start();
    await until(() => measuredAt('limited') !== undefined && measuredAt('free') !== undefined);
    const [limited, free] = [measuredAt('limited')!, measuredAt('free')!];
    await clock.advance(10_000);
    await until(() => measuredAt('limited')! > limited);
    assert.equal(measuredAt('free'), free);
    await clock.advance(50_000);
    await until(() => measuredAt('free')! > free);
  });

  it('takes figures of none when statistics are off, and still watches limits', async () => {
    await pod('limited', { sizeLimit: '1Mi' });
    await pod('free');
    start({ statsPeriodMs: -1 });
    await until(() => measuredAt('limited') !== undefined);
    await clock.advance(120_000);
    assert.equal(measuredAt('free'), undefined);
  });

  it('forgets a pod that is gone', async () => {
    await pod('a');
    start();
    await until(() => measuredAt('a') !== undefined);
    pods = [];
    await clock.advance(10_000);
    await until(() => measuredAt('a') === undefined);
    assert.deepEqual(storage.volumeStats('a'), []);
  });

  it('measures every pod although one of them never comes to an end', async () => {
    await pod('hung', { sizeLimit: '1Mi' });
    for (let index = 0; index < 12; index++) await pod(`p${index}`, { sizeLimit: '1Mi' });
    const done = new Set<string>();
    start({
      writableLayers: async ({ metadata: { uid } }) => {
        if (uid === 'hung') await new Promise(() => {});
        done.add(uid);
        return new Map();
      },
    });
    await until(() => done.size === 12);
  });

  it('goes slowly through a large volume, and others do not wait for it', async () => {
    await pod('large', { sizeLimit: '1Mi' });
    for (let index = 0; index < 600; index++) await fill('large', 0, `f${index}`);
    await pod('small', { sizeLimit: '1Mi' });
    start();
    await until(() => measuredAt('small') !== undefined);
    assert.equal(measuredAt('large'), undefined);
    await clock.advance(1000);
    await until(() => measuredAt('large') !== undefined);
  });
});

describe('a limit', () => {
  it('that is exceeded is told at each look, until the pod is gone', async () => {
    await pod('a', { sizeLimit: '100Ki' });
    start();
    await until(() => measuredAt('a') !== undefined);
    assert.deepEqual(exceeded, []);
    await fill('a', 200_000);
    await clock.advance(10_000);
    await until(() => exceeded.length === 1);
    assert.deepEqual(exceeded, ['a emptydirfs.limit']);
    await clock.advance(10_000);
    await until(() => exceeded.length === 2);
  });

  it('is not watched without local storage isolation', async () => {
    await pod('a', { sizeLimit: '100Ki' });
    await fill('a', 200_000);
    start({ watchesLimits: false });
    await until(() => measuredAt('a') !== undefined);
    await clock.advance(60_000);
    await rm(join(base, 'a'), { recursive: true });
    assert.deepEqual(exceeded, []);
    assert.deepEqual(layers, []);
  });
});
