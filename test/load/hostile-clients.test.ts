/** A thousand clients that only cost something: the node's API goes on answering, and gives back what they took. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { everybody, startWorld, type World } from '../../src/server/fixtures/node-server-world.ts';
import { usualLimits } from '../../src/server/https-listener.ts';
import type { NodeRoute } from '../../src/server/route.ts';
import { sendText } from '../../src/server/router.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const large = Buffer.alloc(256 * 1024, 'x');
const routes: NodeRoute[] = [
  { path: '/healthz', handle: ({ response }) => sendText(response, 200, 'ok') },
  {
    path: '/large',
    async handle({ response, signal }) {
      while (!signal.aborted) if (!response.write(large)) await once(response, 'drain', { signal });
    },
  },
];

/** MiB that the program holds. */
function memory(): number {
  for (let n = 0; n < 3; n++) collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
}

/** Milliseconds until health is told, on a new connection. */
async function healthAfter(world: World): Promise<number> {
  const begin = performance.now();
  assert.equal((await world.ask('/healthz')).text, 'ok');
  return performance.now() - begin;
}

async function besiege(world: World, during: () => Promise<void>): Promise<void> {
  const clients = fork(join(import.meta.dirname, 'many-clients.ts'), [String(world.server.port)], {
    execArgv: ['--no-warnings'],
  });
  try {
    const there = once(clients, 'message');
    const gone = once(clients, 'exit').then(() => assert.ok(clients.signalCode === null));
    const progress = { isComplete: false };
    void there.then(() => (progress.isComplete = true));
    while (!progress.isComplete) await during();
    await during();
    clients.send('leave');
    await gone;
  } finally {
    clients.kill();
  }
}

test('health is told meanwhile, and memory is given back', { timeout: 60_000 }, async (t) => {
  await using world = await startWorld({ routes, access: everybody });
  const latencies: number[] = [];
  const held: number[] = [];
  const during = async () => {
    latencies.push(await healthAfter(world));
    await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const settled = async () => {
    while (world.server.connections > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    return memory();
  };
  // The first time buffers and caches come to stay.
  await besiege(world, during);
  const before = await settled();
  await besiege(world, async () => {
    await during();
    held.push(world.server.connections);
  });
  const full = Math.max(...held);
  const after = await settled();
  const slowest = latencies.toSorted((a, b) => a - b).at(-1) ?? 0;
  t.diagnostic(
    `connections ${full}, slowest health ${slowest.toFixed(0)} ms, memory ${before.toFixed(1)} → ${after.toFixed(1)} MiB`,
  );
  assert.ok(full >= 1000 && full <= usualLimits.connections, `${full} connections`);
  assert.ok(slowest < 5000, `health took ${slowest} ms`);
  assert.ok(after - before < 8, `memory grew from ${before} to ${after} MiB`);
});

test('a newcomer is served although the house is full', { timeout: 60_000 }, async () => {
  const limits = { ...usualLimits, connections: 300 };
  await using world = await startWorld({ routes, access: everybody, server: { limits } });
  let most = 0;
  await besiege(world, async () => {
    await healthAfter(world);
    most = Math.max(most, world.server.connections);
  });
  assert.equal(most, 300);
});
