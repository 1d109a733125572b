import assert from 'node:assert/strict';
import {
  closeSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../concurrency/clock.ts';
import { lines, timeOfLine, WrittenLog } from './fixtures/written-log.ts';
import { NoLogError, type ReadLogOptions, readContainerLog } from './read-container-log.ts';
import { rotateLog } from './rotate-log.ts';

let log: WrittenLog;
beforeEach(() => {
  log = new WrittenLog();
});
afterEach(() => log.dispose());

let now = new Date(2026, 2, 1, 12, 0, 0).getTime();
const rotate = (maxFiles = 5) =>
  rotateLog({
    path: log.path,
    maxFiles,
    now: (now += 1000),
    reopen: async () => log.reopen(),
    onTrouble: (_, error) => assert.fail(error as Error),
  });
/** By this process, from wherever. */
const bytesRead = () => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
const openFiles = () => readdirSync('/proc/self/fd').length;

describe('reading the log of a container', () => {
  it('reads nothing of an empty log, and says when there is none', async () => {
    await assert.rejects(log.read(), NoLogError);
    log.reopen();
    assert.equal(await log.read(), '');
    await assert.rejects(log.read({ path: join(log.directory, 'no', '0.log') }), NoLogError);
  });

  it('refuses what is no regular file', async () => {
    mkdirSync(log.path);
    await assert.rejects(log.read(), /no regular file/);
  });

  it('reads the last lines across rotated and compressed parts', async () => {
    for (let part = 0; part < 4; part++) {
      log.write(3, { parts: 2 });
      await rotate();
    }
    log.write(3);
    assert.equal(await log.read(), lines(0, 15));
    for (let tail = 0; tail <= 16; tail++) {
      assert.equal(await log.read({ tailLines: tail }), lines(Math.max(0, 15 - tail), 15), `${tail} lines`);
    }
  });

  it('reads the lines since a time across rotated and compressed parts', async () => {
    for (let part = 0; part < 3; part++) {
      log.write(3);
      await rotate();
    }
    for (let from = 0; from <= 9; from++) {
      const sinceMs = Date.parse(timeOfLine(from));
      assert.equal(await log.read({ sinceMs }), lines(from, 9));
      assert.equal(await log.read({ sinceMs, tailLines: 4 }), lines(Math.max(from, 5), 9));
    }
  });

  it('counts a line that was cut by a rotation once', async () => {
    log.write(2);
    log.raw(`${timeOfLine(2)} stdout P cut `);
    await rotate();
    log.raw(`${timeOfLine(2)} stdout F line\n`);
    for (const compress of [false, true]) {
      if (compress) await rotate();
      assert.equal(await log.read({ tailLines: 1 }), 'cut line\n');
      assert.equal(await log.read({ tailLines: 2 }), 'line 1\ncut line\n');
    }
  });

  it('finds the end of a long log without reading it', async () => {
    const line = `${timeOfLine(0)} stdout F ${'x'.repeat(16_000)}\n`;
    for (let n = 0; n < 500; n++) log.raw(line);
    log.write(3);
    const before = bytesRead();
    assert.equal(await log.read({ tailLines: 2 }), lines(1, 3));
    const sinceMs = Date.parse(timeOfLine(1));
    assert.equal(await log.read({ sinceMs }), lines(1, 3));
    assert.ok(bytesRead() - before < 4 * 2 ** 20, 'of 8 MiB, twice');
    assert.equal((await log.read({ tailLines: 100 })).split('\n').length, 101);
  });

  it('reads a few blocks of a log of 1 GiB for its last lines', async () => {
    log.reopen();
    // A hole stands for what nobody is to read.
    truncateSync(log.path, 2 ** 30);
    log.raw('\n');
    log.write(1000);
    const before = bytesRead();
    assert.equal(await log.read({ tailLines: 100 }), lines(900, 1000));
    assert.ok(bytesRead() - before < 2 * 2 ** 20);
  });

  it('lets go of every file, also when nobody reads on', async () => {
    for (let part = 0; part < 3; part++) {
      log.write(50_000);
      await rotate();
    }
    const before = openFiles();
    await log.read({ tailLines: 10 });
    const read = readContainerLog(
      { path: log.path, attempt: 0, clock: systemClock },
      { write: () => Promise.reject(new Error('gone')) },
      new AbortController().signal,
    );
    await assert.rejects(read, /gone/);
    await log.read({ limitBytes: 10 });
    assert.equal(openFiles(), before);
  });

  it('tails any log as the end of all of it', async () => {
    const piece = fc.record({
      lines: fc.nat(6),
      parts: fc.integer({ min: 1, max: 3 }),
      rotate: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), fc.nat(30), async (pieces, tailLines) => {
        log.dispose();
        log = new WrittenLog();
        log.reopen();
        for (const one of pieces) {
          log.write(one.lines, one);
          if (one.rotate) await rotate(20);
        }
        const from = Math.max(0, log.next - tailLines);
        assert.equal(await log.read({ tailLines }), lines(from, log.next));
        assert.equal(await log.read({ sinceMs: Date.parse(timeOfLine(from)) }), lines(from, log.next));
      }),
      { numRuns: 30 },
    );
  });
});

describe('following the log of a container', () => {
  /** A follower whose text can be waited for. */
  function follow(options: Partial<ReadLogOptions> = {}) {
    const abort = new AbortController();
    let text = '';
    let bell = Promise.withResolvers<void>();
    let gate = Promise.resolve();
    const done = readContainerLog(
      { path: log.path, attempt: log.attempt, follow: log, clock: systemClock, ...options },
      {
        async write(piece) {
          text += piece.toString();
          bell.resolve();
          bell = Promise.withResolvers();
          await gate;
        },
      },
      abort.signal,
    );
    const until = async (wanted: string) => {
      while (text.length < wanted.length) {
        await Promise.race([
          bell.promise,
          done.then(() => {
            if (text.length < wanted.length) throw new Error(`ended with ${JSON.stringify(text)}`);
          }),
        ]);
      }
      assert.equal(text, wanted);
    };
    return { abort, done, until, text: () => text, block: (until: Promise<void>) => void (gate = until) };
  }
  const end = (continues = false) => log.tell({ attempt: log.attempt, isRunning: false, continues });

  it('shows what is written, until the container has ended', async () => {
    log.write(2);
    const follower = follow();
    await follower.until(lines(0, 2));
    log.write(1);
    await follower.until(lines(0, 3));
    log.write(1);
    end();
    await follower.done;
    assert.equal(follower.text(), lines(0, 4));
    assert.equal(log.listeners, 0);
  });

  it('begins with the last lines', async () => {
    log.write(10);
    const [last, none] = [follow({ tailLines: 2 }), follow({ tailLines: 0 })];
    await last.until(lines(8, 10));
    log.write(1);
    await last.until(lines(8, 11));
    await none.until(lines(10, 11));
    end();
    await Promise.all([last.done, none.done]);
  });

  it('ends at its limit', async () => {
    log.write(1);
    const follower = follow({ limitBytes: 10 });
    await follower.until('line 0\n');
    log.write(5);
    await follower.done;
    assert.equal(follower.text(), lines(0, 2).slice(0, 10));
  });

  it('goes on through rotations, compression and removal', async () => {
    log.write(2);
    const follower = follow();
    for (let round = 1; round < 8; round++) {
      await follower.until(lines(0, log.next));
      await rotate(3);
      log.write(2, { parts: 2 });
    }
    end();
    await follower.done;
    assert.equal(follower.text(), lines(0, 16));
  });

  it('takes what the runtime still writes to a file that was rotated away', async () => {
    log.write(1);
    const follower = follow();
    await follower.until(lines(0, 1));
    const old = log.keepOpen();
    await rotate();
    log.write(1, { file: old });
    await follower.until(lines(0, 2));
    log.write(1);
    await follower.until(lines(0, 3));
    // The follower has moved on to the new file.
    log.write(1, { file: old });
    await follower.until(lines(0, 4));
    log.write(1);
    await follower.until(lines(0, 5));
    closeSync(old);
    end();
    await follower.done;
  });

  it('misses nothing while a slow client lets several rotations pass', async () => {
    log.write(2);
    const follower = follow();
    const gate = Promise.withResolvers<void>();
    follower.block(gate.promise);
    await follower.until(lines(0, 2));
    log.write(1);
    for (let round = 0; round < 4; round++) {
      await rotate(20);
      log.write(3);
    }
    follower.block(Promise.resolve());
    gate.resolve();
    await follower.until(lines(0, 15));
    end();
    await follower.done;
    assert.equal(follower.text(), lines(0, 15));
  });

  it('waits while there is no live file, as within a rotation', async () => {
    log.write(2);
    const follower = follow();
    await follower.until(lines(0, 2));
    rmSync(log.path);
    log.reopen();
    log.write(1);
    await follower.until(lines(0, 3));
    end();
    await follower.done;
  });

  it('goes on with the next instance when the container is restarted', async () => {
    log.write(2);
    const follower = follow({ tailLines: 1 });
    await follower.until(lines(1, 2));
    log.raw(`${timeOfLine(9)} stdout P no end`);
    end(true);
    log.restart();
    log.write(2);
    await follower.until(`line 1\nno end${lines(2, 4)}`);
    end(true);
    log.restart();
    end(true);
    log.restart();
    log.write(1);
    end();
    await follower.done;
    assert.equal(follower.text(), `line 1\nno end${lines(2, 5)}`);
  });

  it('ends when the container will not come back', async () => {
    log.write(1);
    const follower = follow();
    end(true);
    await follower.until(lines(0, 1));
    log.tell(undefined);
    await follower.done;
  });

  it('ends with the client, and leaves nothing', async () => {
    log.write(1);
    const before = openFiles();
    const followers = Array.from({ length: 20 }, () => follow());
    await Promise.all(followers.map(({ until }) => until(lines(0, 1))));
    assert.ok(openFiles() >= before + 20);
    for (const { abort } of followers) abort.abort(new Error('client gone'));
    for (const { done } of followers) await assert.rejects(done, /client gone/);
    assert.equal(log.listeners, 0);
    // The first watch opens the process's one inotify descriptor, which stays.
    assert.ok(openFiles() <= before + 1);
  });

  it('says when there is no log directory', async () => {
    const follower = follow({ path: join(log.directory, 'gone', '0.log') });
    await assert.rejects(follower.done, NoLogError);
  });

  it('shows the same whatever happens between two lines', async () => {
    const happening = fc.oneof(
      fc.record({ kind: fc.constant('write' as const), lines: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ kind: fc.constant('rotate' as const), maxFiles: fc.integer({ min: 4, max: 6 }) }),
      fc.record({ kind: fc.constant('restart' as const) }),
      fc.record({ kind: fc.constant('look' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { maxLength: 25 }), async (happenings) => {
        log.dispose();
        log = new WrittenLog();
        log.reopen();
        const follower = follow();
        let unseenRotations = 0;
        for (const one of happenings) {
          if (one.kind === 'write') log.write(one.lines);
          else if (one.kind === 'restart') {
            log.restart();
            unseenRotations = 0;
          } else if (one.kind === 'look' || unseenRotations === 2) {
            await follower.until(lines(0, log.next));
            unseenRotations = 0;
          } else {
            await rotate(one.maxFiles);
            unseenRotations++;
          }
        }
        end();
        await follower.done;
        assert.equal(follower.text(), lines(0, log.next));
      }),
      { numRuns: 40 },
    );
  });

  it('reads what later instances have left although the container is gone', async () => {
    writeFileSync(join(log.directory, '7.log'), `${timeOfLine(0)} stdout F seven\n`);
    log.write(1);
    const follower = follow();
    await follower.until(lines(0, 1));
    log.tell(undefined);
    await follower.done;
    assert.equal(follower.text(), `${lines(0, 1)}seven\n`);
  });
});
