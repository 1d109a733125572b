import assert from 'node:assert/strict';
import { readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { lines, WrittenLog } from './fixtures/written-log.ts';
import { LogRotation, type RotationSettings } from './log-rotation.ts';

describe('LogRotation', () => {
  let logs: WrittenLog[];
  beforeEach(() => {
    logs = [new WrittenLog(), new WrittenLog(), new WrittenLog()];
    for (const log of logs) log.reopen();
  });
  afterEach(() => {
    for (const log of logs) log.dispose();
  });
  const clock = new VirtualClock();
  const { signal } = new AbortController();

  function rotation(settings: Partial<RotationSettings> = {}, reopen?: (id: string) => Promise<void>) {
    return new LogRotation({
      settings: { maxBytes: 100, maxFiles: 5, workers: 1, everyMs: 10_000, ...settings },
      running: () => logs.map((log, index) => ({ containerId: `${index}`, path: log.path })),
      reopen: reopen ?? (async (id) => logs[Number(id)]!.reopen()),
      clock,
      logger: silentLogger,
    });
  }
  const parts = (log: WrittenLog) => readdirSync(log.directory).length;

  it('rotates what has grown too large, and nothing else', async () => {
    logs[0]!.write(10);
    logs[1]!.write(1);
    const subject = rotation();
    await subject.look(signal);
    await subject.idle();
    assert.deepEqual(logs.map(parts), [2, 1, 1]);
    assert.equal(await logs[0]!.read(), lines(0, 10));
  });

  it('leaves a log behind a link to who keeps it', async () => {
    logs[0]!.write(10);
    const kept = `${logs[0]!.directory}/id-json.log`;
    renameSync(logs[0]!.path, kept);
    symlinkSync(kept, logs[0]!.path);
    const subject = rotation();
    await subject.look(signal);
    await subject.idle();
    assert.deepEqual(readdirSync(logs[0]!.directory).sort(), ['0.log', 'id-json.log']);
  });

  it('has a log that is gone made anew', async () => {
    rmSync(logs[2]!.path);
    const subject = rotation();
    await subject.look(signal);
    await subject.idle();
    assert.deepEqual(logs.map(parts), [1, 1, 1]);
  });

  it('works on no more logs at once than there are workers, and on each once', async () => {
    for (const workers of [1, 2]) {
      for (const log of logs) log.write(10);
      const gates: (() => void)[] = [];
      let most = 0;
      let busy = 0;
      const subject = rotation({ workers }, async (id) => {
        most = Math.max(most, ++busy);
        await new Promise<void>((resolve) => gates.push(resolve));
        busy--;
        logs[Number(id)]!.reopen();
      });
      await subject.look(signal);
      for (let reopened = 0; reopened < 3; ) {
        await settle();
        if (gates.length < Math.min(workers, 3 - reopened)) continue;
        const gate = gates.shift()!;
        // Those that wait or are being rotated are not taken a second time.
        await subject.look(signal);
        reopened++;
        gate();
      }
      await subject.idle();
      assert.equal(most, workers);
    }
    assert.deepEqual(logs.map(parts), [3, 3, 3]);
  });

  it('tries again after a failure', async () => {
    logs[0]!.write(10);
    let fails = true;
    const subject = rotation({}, async () => {
      if (fails) throw new Error('busy');
      logs[0]!.reopen();
    });
    await subject.look(signal);
    await subject.idle();
    assert.equal(parts(logs[0]!), 1);
    fails = false;
    await subject.look(signal);
    await subject.idle();
    assert.equal(parts(logs[0]!), 2);
  });

  it('looks once an interval until it is told to stop, and never where rotation is off', async () => {
    const stop = new AbortController();
    await rotation({ maxBytes: -1 }).run(stop.signal);
    logs[0]!.write(10);
    const subject = rotation();
    const ran = subject.run(stop.signal);
    await clock.advance(9999);
    assert.equal(parts(logs[0]!), 1);
    await clock.advance(1);
    while (parts(logs[0]!) < 2) await settle();
    stop.abort();
    await ran;
    assert.equal(await logs[0]!.read(), lines(0, 10));
  });
});
