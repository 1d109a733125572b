import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { lines, WrittenLog } from './fixtures/written-log.ts';
import { LogRotationError, type RotateLogOptions, type RotationStep, rotateLog } from './rotate-log.ts';

describe('rotateLog', () => {
  let log: WrittenLog;
  beforeEach(() => {
    log = new WrittenLog();
  });
  afterEach(() => log.dispose());
  const start = new Date(2026, 2, 1, 12, 0, 0).getTime();
  const rotate = (more: Partial<RotateLogOptions> = {}) =>
    rotateLog({
      path: log.path,
      maxFiles: 5,
      now: start,
      reopen: async () => log.reopen(),
      onTrouble: (_, error) => assert.fail(error as Error),
      ...more,
    });
  const names = () => readdirSync(log.directory).sort();

  it('names parts by local time, leaves the newest as it is and compresses the others', async () => {
    log.write(3);
    await rotate();
    assert.deepEqual(names(), ['0.log', '0.log.20260301-120000']);
    log.write(2);
    await rotate({ now: start + 61_000 });
    assert.deepEqual(names(), ['0.log', '0.log.20260301-120000.gz', '0.log.20260301-120101']);
    const compressed = readFileSync(join(log.directory, '0.log.20260301-120000.gz'));
    assert.match(gunzipSync(compressed).toString(), /^2026-03-01T00:00:00.000000000Z stdout F line 0\n/);
    assert.equal(await log.read(), lines(0, 5));
  });

  it('keeps as many files as asked for', async () => {
    for (let round = 0; round < 6; round++) {
      log.write(10);
      await rotate({ maxFiles: 3, now: start + round * 1000 });
    }
    assert.deepEqual(names(), ['0.log', '0.log.20260301-120004.gz', '0.log.20260301-120005']);
    assert.equal(await log.read(), lines(40, 60));
    log.write(10);
    await rotate({ maxFiles: 2, now: start + 7000 });
    assert.deepEqual(names(), ['0.log', '0.log.20260301-120007']);
  });

  it('takes names that sort behind all others, also when the clock goes back', async () => {
    for (const now of [start, start, start - 3_600_000]) {
      log.write(1);
      await rotate({ now });
    }
    assert.deepEqual(
      names().map((name) => name.replace('.gz', '')),
      ['0.log', '0.log.20260301-120000', '0.log.20260301-120001', '0.log.20260301-120002'],
    );
    assert.equal(await log.read(), lines(0, 3));
  });

  it('leaves the logs of other instances alone', async () => {
    log.write(1);
    for (const name of ['1.log', '10.log', '10.log.20260101-000000', '0.log.old', '00.log.1.tmp']) {
      writeFileSync(join(log.directory, name), 'x');
    }
    await rotate({ maxFiles: 2 });
    for (const name of ['1.log', '10.log', '10.log.20260101-000000', '0.log.old', '00.log.1.tmp']) {
      assert.ok(existsSync(join(log.directory, name)), name);
    }
  });

  it('gives the name back when the runtime cannot open the log anew', async () => {
    log.write(2);
    const before = statSync(log.path).ino;
    await assert.rejects(rotate({ reopen: () => Promise.reject(new Error('no')) }), LogRotationError);
    assert.deepEqual(names(), ['0.log']);
    assert.equal(statSync(log.path).ino, before);
  });

  it('keeps a new log that the runtime has made although it says it failed', async () => {
    log.write(2);
    const reopen = async () => {
      log.reopen();
      throw new Error('the answer came too late');
    };
    await assert.rejects(rotate({ reopen }), LogRotationError);
    log.write(2);
    assert.equal(await log.read(), lines(0, 4));
  });

  it('rotates although a part cannot be compressed', async () => {
    log.write(2);
    await rotate();
    log.write(2);
    writeFileSync(join(log.directory, '0.log.20260301-120000.tmp'), '');
    let told = '';
    const onStep = (step: RotationStep) => {
      if (step === 'write-compressed') writeFileSync(join(log.directory, '0.log.20260301-120000.tmp'), '');
    };
    await rotate({ now: start + 1000, onStep, onTrouble: (name) => void (told = name) });
    assert.equal(told, '0.log.20260301-120000');
    assert.equal(await log.read(), lines(0, 4));
  });

  it('loses and repeats nothing when it is cut off before any step, and clears up next time', async () => {
    const seen = new Set<RotationStep>();
    for (let cutAt = 0; ; cutAt++) {
      log.dispose();
      log = new WrittenLog();
      let wasCut = false;
      let step = 0;
      for (let round = 0; round < 4; round++) {
        log.write(5);
        const killed = Promise.withResolvers<void>();
        const onStep = async (name: RotationStep) => {
          seen.add(name);
          if (step++ !== cutAt) return;
          wasCut = true;
          if (name === 'name-compressed') assert.ok(names().some((one) => one.endsWith('.tmp')));
          killed.resolve();
          await new Promise(() => {});
        };
        const now = start + round * 1000;
        await Promise.race([rotate({ now, onStep }), killed.promise]);
        assert.equal(await log.read(), lines(0, log.next), `cut off before step ${cutAt}, round ${round}`);
        // What the monitor does when it finds no log.
        if (!existsSync(log.path)) log.reopen();
        log.write(1);
        assert.equal(await log.read(), lines(0, log.next));
      }
      if (!wasCut) break;
      for (let round = 4; round < 6; round++) await rotate({ now: start + round * 1000, maxFiles: 20 });
      const last = names();
      assert.ok(!last.some((name) => name.endsWith('.tmp')), last.join(' '));
      assert.equal(last.length, new Set(last.map((name) => name.replace('.gz', ''))).size, last.join(' '));
      assert.equal(await log.read(), lines(0, log.next));
    }
    assert.deepEqual(
      [...seen].sort(),
      [
        'name-compressed',
        'remove-duplicate',
        'remove-original',
        'remove-unfinished',
        'rename',
        'reopen',
        'write-compressed',
      ].sort(),
    );
  });
});
