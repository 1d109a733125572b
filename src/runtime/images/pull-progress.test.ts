import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sleep } from '../../concurrency/clock.ts';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { type ContentStore, containerdDownloads } from './containerd-downloads.ts';
import { PullProgressReports, progressMessage } from './pull-progress.ts';

const mebi = 2 ** 20;

describe('progress of a pull', () => {
  it('reads well', () => {
    const text = (doneBytes: number, totalBytes?: number) =>
      progressMessage('x', { elapsedMs: 0, bytes: { doneBytes, totalBytes } });
    assert.equal(text(12.7 * mebi, 40 * mebi), 'Pulling image "x": 12 of 40 MiB');
    assert.equal(text(0, 1.55 * mebi), 'Pulling image "x": 0 of 1.5 MiB');
    assert.equal(text(700, 900), 'Pulling image "x": 700 of 900 bytes');
    assert.equal(text(3 * 2 ** 30), 'Pulling image "x": 3.0 GiB');
    assert.equal(progressMessage('x', { elapsedMs: 61_900 }), 'Pulling image "x" for 1m1s');
  });

  it('looks once a second while a pull runs, tells everybody who listens, and the log now and then', async () => {
    const clock = new VirtualClock(0);
    let looks = 0;
    const logged: unknown[] = [];
    const reports = new PullProgressReports({
      clock,
      logger: { ...silentLogger, v: (level, _message, fields) => logged.push([level, fields?.['elapsed']]) },
      source: {
        follow: () => ({
          async look() {
            if (++looks === 2) throw new Error('the store hiccups');
            return { doneBytes: looks };
          },
        }),
      },
    });
    const heard: unknown[] = [];
    const stop = reports.listen('k', ({ elapsedMs, bytes }) => heard.push([elapsedMs, bytes?.doneBytes]));
    reports.listen('other', () => assert.fail('not for this pull'));
    const pull = reports.during('k', 'x', () => sleep(clock, 21_500));
    await clock.advance(3000);
    stop();
    await clock.advance(60_000);
    await pull;
    assert.deepEqual(heard, [
      [1000, 1],
      [2000, undefined],
      [3000, 3],
    ]);
    assert.equal(looks, 21);
    assert.deepEqual(logged, [
      [2, '10s'],
      [2, '20s'],
    ]);
    assert.equal(clock.nextTimer(), undefined);
  });

  it('a source that hangs delays no pull', async () => {
    const clock = new VirtualClock(0);
    const hanging = (signal: AbortSignal) =>
      new Promise<undefined>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
    const reports = new PullProgressReports({
      clock,
      logger: silentLogger,
      source: { follow: () => ({ look: hanging }) },
    });
    let done = false;
    void reports.during('k', 'x', () => sleep(clock, 5000)).then(() => (done = true));
    await clock.advance(5000);
    assert.ok(done);
  });
});

describe("containerd's downloads", () => {
  const signal = new AbortController().signal;
  const manifest = (...layers: [digest: string, size: number][]) =>
    Buffer.from(JSON.stringify({ layers: layers.map(([digest, size]) => ({ digest, size })) }));
  const status = (ref: string, offset: number) => ({ ref, offset: BigInt(offset), total: 0n });

  class FakeStore implements ContentStore {
    writing: ReturnType<typeof status>[] = [];
    manifests: Record<string, Buffer> = {};
    present = new Set<string>();
    filters: string[] = [];
    reads = 0;
    async statuses() {
      return this.writing;
    }
    async list(filters: readonly string[]) {
      this.filters.push(...filters);
      const names = filters[0]?.startsWith('labels')
        ? Object.keys(this.manifests)
        : [...this.present].filter((digest) => filters.includes(`digest==${digest}`));
      return names.map((digest) => ({ digest, size: 1n }));
    }
    async read(digest: string) {
      this.reads++;
      return this.manifests[digest] ?? Buffer.alloc(0);
    }
  }

  it('adds up what is there and what is under way of the image’s own layers', async () => {
    const store = new FakeStore();
    const download = containerdDownloads(store).follow('r.io:5000/team/app:1');
    assert.equal(await download.look(signal), undefined);
    store.manifests = {
      'sha256:m0': Buffer.from('{'),
      'sha256:m1': manifest(['sha256:x', 5]),
      'sha256:m2': manifest(['sha256:a', 100], ['sha256:b', 50], ['sha256:c', 10]),
    };
    store.present.add('sha256:a').add('sha256:x');
    store.writing = [status('layer-sha256:b', 20), status('layer-sha256:foreign', 7)];
    assert.deepEqual(await download.look(signal), { doneBytes: 120, totalBytes: 160 });
    assert.equal(
      store.filters[0],
      'labels."containerd.io/distribution.source.r.io"~="(^|,)team/app(,|$)",labels."containerd.io/gc.ref.content.config"',
    );
    // Between two layers nothing is under way; what is known stays known.
    store.writing = [];
    store.present.add('sha256:b');
    assert.deepEqual(await download.look(signal), { doneBytes: 150, totalBytes: 160 });
    assert.equal(store.reads, 3);
  });
});
