import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { killProcess, parseProcessStat, readProcess, ticksNow } from './processes.ts';

describe('processes', () => {
  it('are read whatever their name', () => {
    const rest = `S 1 40 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 2048 10`;
    assert.deepEqual(parseProcessStat(`42 (a) b (c) ${rest}`), {
      pid: 42,
      parent: 1,
      session: 42,
      startTicks: 12_345,
      isZombie: false,
    });
    assert.equal(parseProcessStat(`42 (x) ${rest.replace('S', 'Z')}`).isZombie, true);
  });

  it('are told by pid and start, and only that one is killed', async () => {
    const before = ticksNow();
    const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
    const ended = once(child, 'exit');
    try {
      await once(child, 'spawn');
      const seen = await readProcess(child.pid ?? 0);
      assert.ok(seen);
      assert.deepEqual([seen.parent, seen.session, seen.isZombie], [process.pid, child.pid, false]);
      assert.equal(seen.isNamespaceInit, false);
      assert.ok(seen.startTicks >= before && seen.startTicks <= ticksNow(), `${before} ${seen.startTicks}`);
      assert.equal(await killProcess({ ...seen, startTicks: seen.startTicks - 1 }), false);
      assert.ok(await readProcess(seen.pid));
      assert.equal(await killProcess(seen), true);
      await ended;
      assert.equal(await killProcess(seen), false);
    } finally {
      child.kill('SIGKILL');
    }
    assert.equal(await readProcess(2 ** 22 + 1), undefined);
  });
});
