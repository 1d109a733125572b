import assert from 'node:assert/strict';
import { it } from 'node:test';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import type { ContainerRuntime as Runtime } from '../../runtime/container-runtime.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { PodCidrs } from './pod-cidrs.ts';
import { standAlone } from './stand-alone.ts';

it('tells the runtime once it is there, again when it refuses, and nothing twice', async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const told: (string | undefined)[] = [];
  let refusals = 1;
  const runtime = {
    updateRuntimeConfig: async ({
      runtimeConfig,
    }: {
      runtimeConfig: { networkConfig: { podCidr: string } | undefined } | undefined;
    }) => {
      if (refusals-- > 0) throw new Error('not now');
      told.push(runtimeConfig?.networkConfig?.podCidr);
      return {};
    },
  };
  const cidrs = new PodCidrs({ clock, logger: silentLogger, signal });
  cidrs.set(['10.1.0.0/24', 'fd00::/64']);
  await settle();
  cidrs.runtimeFound(runtime);
  await settle();
  assert.deepEqual(told, []);
  await clock.advance(5000);
  assert.deepEqual(told, ['10.1.0.0/24,fd00::/64']);
  cidrs.set(['10.1.0.0/24', 'fd00::/64']);
  cidrs.runtimeFound(runtime);
  await settle();
  assert.equal(told.length, 1);
  cidrs.set(['10.2.0.0/24']);
  await settle();
  assert.deepEqual(told[1], '10.2.0.0/24');
});

it('a node that stands alone tells its runtime the ranges it was given, and nothing when it has none', async () => {
  for (const podCidrs of [['10.1.0.0/24', 'fd00::/64'], []]) {
    const told: (string | undefined)[] = [];
    const runtime = {
      listImages: async () => ({ images: [] }),
      updateRuntimeConfig: async ({ runtimeConfig }: Parameters<Runtime['updateRuntimeConfig']>[0]) => {
        told.push(runtimeConfig?.networkConfig?.podCidr);
        return {};
      },
    };
    const membership = standAlone(undefined, { podCidrs, clock: new VirtualClock(), logger: silentLogger });
    const facts = { name: 'containerd', version: '2', apiVersion: 'v1', handlers: [], conditions: [] };
    membership.node.runtimeFound(facts, runtime);
    await settle();
    assert.deepEqual(told, podCidrs.length > 0 ? ['10.1.0.0/24,fd00::/64'] : []);
    membership.close();
  }
});
