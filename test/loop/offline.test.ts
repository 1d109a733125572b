/**
 * A node that is cut off from its API server and rebooted: with `--restore-pods-offline` the pods that were
 * wanted here last run again, until the API server says otherwise.
 */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { MemoryApi } from '../../src/pods/fixtures/memory-api.ts';
import { ContainerState } from '../../src/runtime/generated/cri.ts';
import { Outside } from './outside.ts';
import { type ApiLoop, boundPod, startApiLoop } from './start-api-loop.ts';
import { until } from './turns.ts';
import { filePod, World } from './world.ts';

let world: World;
let api: MemoryApi;
beforeEach(() => {
  world = new World();
  api = new MemoryApi();
});
afterEach(() => world.remove());

const running = () =>
  world.runtime.containers
    .filter(({ state }) => state === ContainerState.CONTAINER_RUNNING)
    .map(({ sandboxId }) => world.runtime.sandboxes.find(({ id }) => id === sandboxId)?.config.metadata?.name)
    .sort();
const runs = (...names: string[]) =>
  until(
    () => running().join() === names.join(),
    () => `running: ${running().join()}, wanted: ${names.join()}`,
  );

/** The agent dies with its machine, which comes back without its API server. */
async function reboot(
  outside: Outside,
  next: Partial<Parameters<typeof startApiLoop>[0]> = { restoreOffline: true },
): Promise<ApiLoop> {
  outside.close();
  api.down = true;
  world.runtime.restart('reboot');
  return await startApiLoop({ world, api, ...next });
}

async function started(...names: string[]): Promise<{ loop: ApiLoop; outside: Outside }> {
  const outside = new Outside();
  const loop = await startApiLoop({ world, api, outside, restoreOffline: true });
  for (const name of names) api.create(boundPod(name));
  await runs(...names);
  await loop.quiet();
  return { loop, outside };
}

describe('a reboot without the API server', () => {
  it('brings the pods back that ran before, beside static ones', async () => {
    const { outside } = await started('one', 'two');
    const loop = await reboot(outside, { restoreOffline: true, staticPods: [filePod('static')] });
    await runs('one', 'static-node', 'two');
    await loop.pass(3_600_000);
    await runs('one', 'static-node', 'two');
    await loop.stop();
  });

  it('brings none back without the setting, and ends none either', async () => {
    const { outside } = await started('one');
    const loop = await reboot(outside, {});
    await loop.pass(600_000);
    assert.deepEqual(running(), []);
    api.down = false;
    await runs('one');
    await loop.stop();
  });

  it('the list of the API server wins when it is back', async () => {
    const { outside } = await started('kept', 'moved');
    api.down = true;
    api.delete('moved', 0);
    const loop = await reboot(outside);
    await runs('kept', 'moved');
    api.down = false;
    await loop.pass(5000);
    await runs('kept');
    await until(
      () => !world.runtime.sandboxes.some(({ config }) => config.metadata?.name === 'moved'),
      () => 'something of the pod stayed',
    );
    await loop.stop();
  });

  it('does not begin again what had come to its end, or was being deleted', async () => {
    const outside = new Outside();
    const loop = await startApiLoop({ world, api, outside, restoreOffline: true });
    world.runtime.behave('job', { exit: { afterMs: 10, code: 0 } });
    const containers = [{ name: 'job', image: 'job', imagePullPolicy: 'IfNotPresent' }];
    api.create(boundPod('done', { restartPolicy: 'Never', containers }));
    await loop.pass(1000);
    await until(
      () => api.get('done')?.status['phase'] === 'Succeeded',
      () => JSON.stringify(api.get('done')),
    );
    api.create(boundPod('going'));
    await runs('going');
    world.runtime.behave('web', { onStopSignal: { afterMs: 3_600_000 } });
    api.delete('going', 3600);
    await loop.pass(1000);
    await loop.quiet();
    const next = await reboot(outside);
    await next.pass(60_000);
    assert.deepEqual(running(), []);
    api.down = false;
    await next.pass(15_000);
    await until(
      () => api.get('going') === undefined,
      () => JSON.stringify(api.get('going')),
    );
    assert.equal(api.get('done')?.status['phase'], 'Succeeded');
    await next.stop();
  });
});
