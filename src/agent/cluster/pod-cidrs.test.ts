import assert from 'node:assert/strict';
import { it } from 'node:test';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { PodCidrs } from './pod-cidrs.ts';

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
