/**
 * The agent is killed at every crossing of its border (right before and right after each call to the
 * runtime and each work on files) while a pod starts and while it stops. What the next agent makes of it
 * has to be what an undisturbed agent would have.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { Limiter } from '../../src/concurrency/limiter.ts';
import type { Pod } from '../../src/kubernetes/types.ts';
import type { ActionKind } from '../../src/pods/action.ts';
import { Outside } from './outside.ts';
import { startLoop, type TestLoop } from './start-loop.ts';
import { until } from './turns.ts';
import { filePod, World } from './world.ts';

const pod = filePod('pod', {
  terminationGracePeriodSeconds: 5,
  volumes: [{ name: 'scratch', emptyDir: {} }],
  initContainers: [
    { name: 'setup', image: 'setup' },
    { name: 'proxy', image: 'proxy', restartPolicy: 'Always' },
  ],
  containers: [
    { name: 'web', image: 'web', volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] },
    { name: 'remote', image: 'remote' },
  ],
});

function newWorld(): World {
  const world = new World();
  world.runtime.behave('setup', { exit: { afterMs: 0, code: 0 } });
  return world;
}

/** Runs `scenario` in a new world and removes it afterwards. */
async function inWorld<T>(scenario: (world: World) => Promise<T>): Promise<T> {
  const world = newWorld();
  try {
    return await scenario(world);
  } finally {
    world.remove();
  }
}

/** Starts `pods`, dies at the crossing, starts again, and answers the loop that went on. */
async function killedAt(
  world: World,
  { index, moment }: { index: number; moment: 'before' | 'after' },
  goal: (loop: TestLoop) => Promise<void>,
  pods: readonly Pod[],
): Promise<TestLoop> {
  const outside = new Outside();
  outside.closeAt(outside.crossings.length + index, moment);
  const former = await startLoopUnlessKilled(world, outside, pods);
  await until(
    () => !outside.isOpen,
    () => `crossing ${index} was never reached: ${outside.crossings.join(' ')}`,
  );
  await former?.quiet();
  const loop = await startLoop({ world, pods });
  await goal(loop);
  await loop.quiet();
  return loop;
}

/** An agent that is killed while it starts never gets as far as a loop. */
async function startLoopUnlessKilled(
  world: World,
  outside: Outside,
  pods: readonly Pod[],
): Promise<TestLoop | undefined> {
  const killed = new Promise<undefined>((resolve) => outside.onClosed(() => resolve(undefined)));
  return await Promise.race([startLoop({ world, outside, pods }), killed]);
}

function filesOf(world: World): string[] {
  return globSync('**', { cwd: world.root }).sort();
}

/** Ids differ between runs and links are named by them. */
const withoutIds = (files: readonly string[]) => files.map((name) => name.replace(/-[0-9a-f]{64}/, '-<id>'));

/** Both sides of every crossing, a few at a time: most of it is waiting for the disk. */
async function atEach(
  crossings: readonly string[],
  trial: (index: number, moment: 'before' | 'after') => Promise<void>,
): Promise<void> {
  const places = new Limiter(8);
  const trials = crossings.flatMap((_, index) => [
    places.run(() => trial(index, 'before')),
    places.run(() => trial(index, 'after')),
  ]);
  for (const { status, ...outcome } of await Promise.allSettled(trials)) {
    if (status === 'rejected') throw (outcome as PromiseRejectedResult).reason;
  }
}

async function crossingsOf(scenario: (world: World, outside: Outside) => Promise<void>): Promise<string[]> {
  return inWorld(async (world) => {
    const outside = new Outside();
    await scenario(world, outside);
    return outside.crossings;
  });
}

describe('an agent that is killed while a pod starts', () => {
  it('is followed by one that ends up with the same pod, whatever crossing it died at', async () => {
    const undisturbed = await inWorld(async (world) => {
      const loop = await startLoop({ world, pods: [pod] });
      await loop.untilRunning(pod);
      await loop.quiet();
      await loop.stop();
      return { runtime: world.snapshot(), files: withoutIds(filesOf(world)) };
    });
    const crossings = await crossingsOf(async (world, outside) => {
      const loop = await startLoop({ world, outside, pods: [pod] });
      await loop.untilRunning(pod);
      await loop.quiet();
      await loop.stop();
    });
    await atEach(crossings, async (index, moment) => {
      await inWorld(async (world) => {
        const where = `${moment} crossing ${index}, ${crossings[index]}`;
        const loop = await killedAt(world, { index, moment }, (next) => next.untilRunning(pod), [pod]);
        assert.deepEqual(world.snapshot(), undisturbed.runtime, where);
        assert.deepEqual(withoutIds(filesOf(world)), undisturbed.files, where);
        assert.deepEqual(loop.errors, [], where);
        await loop.stop();
      });
    });
  });
});

describe('an agent that is killed while a pod stops', () => {
  it('is followed by one that leaves nothing behind', async () => {
    const crossings = await crossingsOf(async (world, outside) => {
      const starting = await startLoop({ world, pods: [pod] });
      await starting.untilRunning(pod);
      await starting.stop();
      const loop = await startLoop({ world, outside, pods: [] });
      await loop.untilGone(pod);
      await loop.stop();
    });
    await atEach(crossings, async (index, moment) => {
      await inWorld(async (world) => {
        const where = `${moment} crossing ${index}, ${crossings[index]}`;
        const starting = await startLoop({ world, pods: [pod] });
        await starting.untilRunning(pod);
        await starting.stop();
        const loop = await killedAt(world, { index, moment }, (next) => next.untilGone(pod), []);
        assert.deepEqual(world.snapshot(), { sandboxes: [], containers: [] }, where);
        assert.equal(existsSync(path.join(world.root, 'pods', pod.metadata.uid)), false, where);
        assert.deepEqual(
          filesOf(world).filter((name) => name.includes(pod.metadata.uid)),
          [],
          where,
        );
        assert.deepEqual(loop.errors, [], where);
        await loop.stop();
      });
    });
  });
});

describe('an agent that is killed between two steps', () => {
  const kinds: readonly ActionKind[] = [
    'write-record',
    'prepare-pod',
    'set-up-volumes',
    'ensure-image',
    'create-sandbox',
    'create-container',
    'start-container',
  ];
  for (const kind of kinds) {
    for (const moment of ['before', 'after'] as const) {
      it(`leaves a pod that the next one completes: ${moment} ${kind}`, () =>
        inWorld(async (world) => {
          const outside = new Outside();
          await startLoop({
            world,
            outside,
            pods: [pod],
            onStep: async (now, action) => {
              if (now !== moment || action.kind !== kind) return;
              outside.close();
              await new Promise(() => {});
            },
          });
          await until(
            () => !outside.isOpen,
            () => `${kind} never came`,
          );
          const loop = await startLoop({ world, pods: [pod] });
          await loop.untilRunning(pod);
          assert.deepEqual(
            world.runtime.containers.map(({ name, config }) => `${name}/${config.metadata?.attempt}`).sort(),
            ['proxy/0', 'remote/0', 'setup/0', 'web/0'],
          );
          assert.equal(world.runtime.sandboxes.length, 1);
          await loop.stop();
        }));
    }
  }
});

describe('an agent that is killed while a container crashes again and again', () => {
  it('keeps restart counts and back-off', () =>
    inWorld(async (world) => {
      const crashing = filePod('crashing');
      let loop = await startLoop({ world, pods: [crashing] });
      const attempts: number[] = [];
      for (let round = 0; round < 4; round++) {
        await loop.untilRunning(crashing);
        const { id, config } = world.runtime.running('web');
        attempts.push(config.metadata?.attempt ?? -1);
        loop.kill();
        world.runtime.exit(id, 1);
        loop = await startLoop({ world, pods: [crashing] });
        await loop.quiet();
        const waits = [0, 10_000, 20_000, 40_000][round] ?? 0;
        if (waits > 0) {
          const status = loop.status(crashing)?.containerStatuses?.[0];
          assert.equal(status?.state?.waiting?.reason, 'CrashLoopBackOff');
          assert.equal(status?.restartCount, round);
          await loop.pass(waits - 1);
          assert.throws(() => world.runtime.running('web'));
          await loop.pass(1);
        }
      }
      await loop.untilRunning(crashing);
      assert.deepEqual(attempts, [0, 1, 2, 3]);
      await loop.stop();
    }));
});
