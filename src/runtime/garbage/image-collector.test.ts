import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FakeRuntime } from '../../../test/fixtures/cri-runtime/fake-runtime.ts';
import { containerConfig, sandboxConfig } from '../../../test/fixtures/cri-runtime/requests.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { RuntimeErrorCode } from '../runtime-call-error.ts';
import { ImageCollector, type ImageCollectorOptions } from './image-collector.ts';

const minute = 60_000;

describe('image collector', () => {
  let base: string;
  let clock: VirtualClock;
  let runtime: FakeRuntime;
  let events: string[];
  let available: number;
  const signal = new AbortController().signal;
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'image-collector-'));
    clock = new VirtualClock();
    runtime = new FakeRuntime({ clock });
    events = [];
    available = 500;
  });
  afterEach(() => rmSync(base, { recursive: true, force: true }));

  const add = (...names: string[]) => names.map((name) => runtime.addImage(name, { size: 60n }).id);
  const collector = (options: Partial<ImageCollectorOptions> = {}) =>
    new ImageCollector({
      runtime,
      rules: { highPercent: 85, lowPercent: 80, minAgeMs: 2 * minute, maxAgeMs: 0 },
      rootDirectory: base,
      nodeName: 'n',
      clock,
      logger: silentLogger,
      events: { event: (_object, type, reason, message) => events.push(`${type} ${reason}: ${message}`) },
      diskSpace: async () => ({ capacity: 1000, available }),
      ...options,
    });
  const left = async () =>
    (await runtime.listImages({ filter: undefined })).images.flatMap(({ repoTags }) => repoTags).sort();
  const useImage = async (image: string) => {
    const sandbox = sandboxConfig('web');
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandbox, runtimeHandler: '' });
    const config = containerConfig('main', { image });
    const request = { podSandboxId, config, sandboxConfig: sandbox };
    return (await runtime.createContainer(request)).containerId;
  };

  it('frees what is wanted, the least recently used first, and nothing of a container', async () => {
    add('a:1', 'b:1', 'c:1', 'd:1', 'e:1');
    const containerId = await useImage('a:1');
    const collecting = collector();
    await collecting.collect(signal);
    available = 50;
    await clock.advance(minute);
    await assert.rejects(collecting.collect(signal), /only found 0 bytes/);
    assert.equal((await left()).length, 5, 'all are young');
    events = [];
    await clock.advance(2 * minute);
    // Dead or alive, a container keeps its image.
    await runtime.startContainer({ containerId });
    runtime.exit(containerId, 0);
    await collecting.collect(signal);
    assert.deepEqual(await left(), ['docker.io/library/a:1', 'docker.io/library/e:1']);
    assert.deepEqual(events, []);
  });

  it('an image that is only mounted as a volume is in use', async () => {
    add('a:1', 'b:1');
    const collecting = collector({ volumeImages: () => ['b:1', 'gone:1'] });
    await collecting.collect(signal);
    await clock.advance(3 * minute);
    await collecting.freeAll(signal);
    assert.deepEqual(await left(), ['docker.io/library/b:1']);
  });

  it('tells when there is not enough to remove', async () => {
    add('a:1');
    const collecting = collector();
    await collecting.collect(signal);
    await clock.advance(3 * minute);
    available = 50;
    const message =
      'Failed to garbage collect required amount of images. Attempted to free 150 bytes, but only found 60 bytes eligible to free.';
    await assert.rejects(collecting.collect(signal), { name: 'ImageCollectionError', message });
    assert.deepEqual(events, [`Warning FreeDiskSpaceFailed: ${message}`]);
  });

  it('what was used survives a restart of the agent', async () => {
    const [, b] = add('a:1', 'b:1');
    const before = collector();
    await before.collect(signal);
    await clock.advance(10 * minute);
    before.touch(b ?? '');
    await before.collect(signal);
    await clock.advance(3 * minute);
    available = 149;
    await collector().collect(signal);
    assert.deepEqual(await left(), ['docker.io/library/b:1']);
  });

  it('old images go whatever the disk has left', async () => {
    available = 900;
    add('a:1', 'b:1');
    await useImage('b:1');
    const rules = { highPercent: 100, lowPercent: 80, minAgeMs: minute, maxAgeMs: 60 * minute };
    const collecting = collector({ rules });
    await collecting.collect(signal);
    await clock.advance(60 * minute);
    await collecting.collect(signal);
    assert.equal((await left()).length, 2);
    await clock.advance(1);
    await collecting.collect(signal);
    assert.deepEqual(await left(), ['docker.io/library/b:1']);
  });

  it("the sandboxes' image stays although only the runtime's configuration tells it", async () => {
    add('pause:3', 'a:1');
    const collecting = collector({
      runtime: {
        listImages: runtime.listImages,
        listContainers: runtime.listContainers,
        imageStatus: runtime.imageStatus,
        removeImage: runtime.removeImage,
        imageFsInfo: runtime.imageFsInfo,
        status: async (...args) => ({
          ...(await runtime.status(...args)),
          info: { config: '{"sandboxImage":"docker.io/library/pause:3"}' },
        }),
      },
    });
    await collecting.collect(signal);
    await clock.advance(3 * minute);
    assert.equal(await collecting.freeAll(signal), 60);
    assert.deepEqual(await left(), ['docker.io/library/pause:3']);
  });

  it('an image that is taken while others are removed stays', async () => {
    const [a, b] = add('a:1', 'b:1');
    const collecting = collector();
    await collecting.collect(signal);
    await clock.advance(3 * minute);
    runtime.fail('RemoveImage', { delayMs: 1000 });
    const freeing = collecting.freeAll(signal);
    while (runtime.requestsOf('RemoveImage').length === 0) await settle(1);
    const second = runtime.requestsOf('RemoveImage')[0]?.image?.image === a ? b : a;
    collecting.touch(second ?? '');
    await clock.advance(5000);
    assert.equal(await freeing, 60);
    assert.equal((await left()).length, 1);
  });

  it('one image that cannot be removed does not keep the others', async () => {
    add('a:1', 'b:1', 'c:1');
    const collecting = collector();
    await collecting.collect(signal);
    await clock.advance(3 * minute);
    runtime.fail('RemoveImage', { error: { code: RuntimeErrorCode.Unknown, text: 'in use' }, times: 1 });
    await assert.rejects(collecting.freeAll(signal), /in use/);
    assert.equal((await left()).length, 1);
  });

  it('looks every five minutes, and tells of failures from the second on', async () => {
    add('a:1');
    available = 1000;
    const controller = new AbortController();
    const listed: number[] = [];
    const collecting = collector({ onListed: async (ids) => void listed.push(ids.size) });
    const running = collecting.run(controller.signal);
    await clock.advance(minute);
    // File operations take no virtual time; the next wait begins when they are done.
    const waits = async () => {
      while (clock.nextTimer() !== clock.now() + 5 * minute) await settle(1);
    };
    await waits();
    runtime.fail('ListImages', { error: { code: RuntimeErrorCode.Unknown, text: 'busy' } });
    for (const expected of [0, 1, 2]) {
      await clock.advance(5 * minute);
      await waits();
      assert.equal(events.filter((event) => /^Warning ImageGCFailed: .*busy/.test(event)).length, expected);
    }
    controller.abort();
    await running;
    assert.deepEqual(listed, [1]);
  });
});
