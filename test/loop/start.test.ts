import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { assertNoTimers, startLoop } from './start-loop.ts';
import { filePod, World } from './world.ts';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.remove());

describe('a pod that is wanted', () => {
  it('runs without any time passing, init containers and sidecars included', async () => {
    const began = world.clock.now();
    const pod = filePod('pod', {
      initContainers: [
        { name: 'setup', image: 'setup' },
        { name: 'proxy', image: 'proxy', restartPolicy: 'Always' },
      ],
      containers: [
        { name: 'web', image: 'web' },
        { name: 'remote', image: 'remote' },
      ],
    });
    world.runtime.behave('setup', { exit: { afterMs: 0, code: 0 } });
    const loop = await startLoop({ world, pods: [pod] });
    await loop.untilRunning(pod);
    assert.equal(world.clock.now(), began);
    assert.deepEqual(
      world.runtime.requestsOf('CreateContainer').map(({ config }) => config?.metadata?.name),
      ['setup', 'proxy', 'web', 'remote'],
    );
    await loop.stop();
    assertNoTimers(world);
    assert.deepEqual(loop.errors, []);
  });
});
