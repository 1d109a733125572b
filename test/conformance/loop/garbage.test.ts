/** What nobody needs any more goes in time: dead containers, old images. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { ImageCollector } from '../../../src/runtime/garbage/image-collector.ts';
import { silentLogger } from '../../../src/telemetry/logger.ts';
import { startLoop, type TestLoop } from '../../loop/start-loop.ts';
import { World } from '../../loop/world.ts';
import { apiPod } from './api-pod.ts';

const minute = 60_000;
let world: World;
let loop: TestLoop | undefined;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  await loop?.stop();
  loop = undefined;
  world.remove();
});

const main = [{ name: 'main', image: 'web', imagePullPolicy: 'IfNotPresent' }];

describe('dead containers', () => {
  it('[sig-node] GarbageCollect [Serial] [NodeConformance] Garbage Collection Test: %s Should eventually garbage collect containers when we exceed the number of dead containers per container', async () => {
    world.runtime.behave(() => true, { exit: { afterMs: 1000, code: 0 } });
    const names = ['one', 'two', 'three'];
    const containers = names.map((name) => ({ ...main[0]!, name }));
    const pod = apiPod('pod', { containers });
    loop = await startLoop({ world, pods: [pod], sources: ['api'] });
    await loop.pass(20 * minute);
    assert.ok(world.runtime.requestsOf('CreateContainer').length > 12, 'each was restarted several times');
    for (const name of names) {
      const instances = world.runtime.containers.filter((container) => container.name === name);
      assert.ok(instances.length <= 2, `${name}: the newest instance and the one before it`);
    }
    loop.want([]);
    await loop.pass(5 * minute);
    await loop.untilGone(pod);
    assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] });
  });
});

describe('images with a maximum age', () => {
  const maxAgeMs = 30 * minute;
  async function collectAfter(ms: number): Promise<string[]> {
    const { runtime, clock, root } = world;
    const signal = new AbortController().signal;
    const pod = apiPod('pod', { containers: main });
    loop = await startLoop({ world, pods: [pod], sources: ['api'] });
    await loop.untilRunning(pod);
    const collector = new ImageCollector({
      runtime,
      rules: { highPercent: 85, lowPercent: 80, minAgeMs: 0, maxAgeMs },
      rootDirectory: root,
      nodeName: 'node',
      clock,
      logger: silentLogger,
      events: { event: () => {} },
      diskSpace: async () => ({ capacity: 1000, available: 900 }),
    });
    await collector.collect(signal);
    await loop.pass(ms);
    await collector.collect(signal);
    const { images } = await runtime.listImages({ filter: undefined });
    return images.flatMap(({ repoTags }) => repoTags.map((tag) => tag.replace(/^.*\/|:.*$/g, '')));
  }

  it('[sig-node] ImageGarbageCollect [Serial] [NodeConformance] when ImageMaximumGCAge is set should GC unused images', async () => {
    assert.deepEqual(await collectAfter(maxAgeMs + minute), ['web'], 'only what a container uses is left');
  });

  it('[sig-node] ImageGarbageCollect [Serial] [NodeConformance] when ImageMaximumGCAge is set should not GC unused images prematurely', async () => {
    const left = await collectAfter(maxAgeMs - minute);
    for (const name of ['web', 'setup', 'proxy', 'job']) assert.ok(left.includes(name), name);
  });
});
