import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import type { ProcessInfo } from '../../linux/processes.ts';
import { ExecLeftovers } from './exec-leftovers.ts';

const command = ['sh', '-c', 'check & wait'];
const shim = 1;

function process(pid: number, parent: number, extra: Partial<ProcessInfo> = {}): ProcessInfo {
  return {
    pid,
    parent,
    session: 100,
    startTicks: 50,
    isZombie: false,
    isNamespaceInit: false,
    command: ['app'],
    ...extra,
  };
}

/** The container's own process and a child of it. */
const own = [process(100, shim), process(101, 100)];
const probe = process(200, shim, { session: 200, startTicks: 70, command });
const child = process(201, 200, { session: 200, startTicks: 70, command: ['check'] });
/** It has left the probe's session. */
const daemon = process(202, 201, { session: 202, startTicks: 71, command: ['check', '-d'] });

/** A probe with a time-out of a second; answers what is killed at its end. */
async function killed(
  atHalf: ProcessInfo[],
  atEnd: ProcessInfo[],
  containerProcesses = own,
): Promise<number[]> {
  const clock = new VirtualClock();
  let shown = [...containerProcesses, ...atHalf];
  const gone: number[] = [];
  const leftovers = new ExecLeftovers({
    processes: {
      list: async () => shown.filter(({ pid }) => !gone.includes(pid)),
      kill: async ({ pid }) => void gone.push(pid),
      ticksNow: () => 60,
    },
    clock,
    containerId: 'c',
    command,
    timeoutMs: 1000,
  });
  await clock.advance(950);
  await settle();
  leftovers.end();
  shown = [...containerProcesses, ...atEnd];
  const killing = leftovers.kill();
  for (let i = 0; i < 6; i++) {
    await settle();
    await clock.advance(20);
  }
  await killing;
  assert.equal(clock.nextTimer(), undefined);
  return gone.sort();
}

const orphan = (of: ProcessInfo) => ({ ...of, parent: 100 });

describe('what an exec probe leaves behind', () => {
  it('is killed, also when it is nobody’s child any more', async () => {
    assert.deepEqual(await killed([probe, child, daemon], [orphan(child), orphan(daemon)]), [201, 202]);
  });

  it('is known by its session when it was started after the last look', async () => {
    const late = process(203, 100, { session: 200, startTicks: 90 });
    assert.deepEqual(
      await killed([probe], [late, process(204, 203, { session: 204, startTicks: 91 })]),
      [203, 204],
    );
  });

  it('includes the probe’s own process when the runtime has not ended it', async () => {
    assert.deepEqual(await killed([probe, child], [probe, orphan(child)]), [200, 201]);
  });

  it('is found behind the interpreter of a script', async () => {
    const script = { ...probe, command: ['/bin/busybox', '/bin/sh', '-c', 'check & wait'] };
    assert.deepEqual(await killed([script, child], [orphan(child)]), [201]);
  });

  it('is found when the shell has become its last command, in a pid namespace of the container alone', async () => {
    const became = { ...probe, command: ['sleep', '1000'] };
    const init = [process(100, shim, { isNamespaceInit: true })];
    assert.deepEqual(await killed([became, child], [orphan(child)], init), [201]);
    assert.deepEqual(await killed([became, child], [orphan(child)]), [], 'it may be an orphan');
    const late = { ...became, startTicks: 200 };
    assert.deepEqual(await killed([late, child], [orphan(child)], init), [], 'it may be a user');
  });

  const others: [what: string, shown: ProcessInfo[]][] = [
    ['what the container itself starts meanwhile', [process(300, 100, { startTicks: 75 })]],
    ['a daemon of the container', [process(300, 100, { session: 300, startTicks: 75 })]],
    ['an orphan in a shared pid namespace', [process(300, shim, { session: 300, startTicks: 75 })]],
    ['a command of a user', [process(300, shim, { session: 300, startTicks: 75, command: ['top'] })]],
    ['the same command of an earlier run', [{ ...probe, pid: 300, session: 300, startTicks: 55 }]],
    ['a pid that is somebody else’s by now', [{ ...child, startTicks: 80, parent: 100, session: 100 }]],
    ['what has ended already', [{ ...orphan(child), isZombie: true }]],
  ];
  for (const [what, shown] of others) {
    it(`is not ${what}`, async () => {
      assert.deepEqual(await killed([probe, child, ...shown.filter(({ pid }) => pid === 300)], shown), []);
      assert.deepEqual(await killed(shown, shown), []);
    });
  }

  it('is left alone when two processes might be the probe', async () => {
    const twin = { ...probe, pid: 300, session: 300 };
    assert.deepEqual(await killed([probe, twin, child], [orphan(child)]), []);
  });

  it('is never the container, even one that runs the same command', async () => {
    const main = process(100, shim, { session: 100, startTicks: 60, command });
    assert.deepEqual(await killed([], [], [main]), []);
  });
});
