import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { link, mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../concurrency/clock.ts';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { readFileIfExists, writeFileAtomically } from './atomic-file.ts';
import { ChecksummedFile } from './checksummed-file.ts';
import { directoryUsage } from './directory-usage.ts';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'files-'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe('atomic files', () => {
  it('have exactly the mode asked for, leave nothing beside them, and replace links instead of following', async () => {
    const path = join(base, 'file');
    await writeFile(join(base, 'other'), 'untouched');
    await symlink(join(base, 'other'), path);
    await writeFile(`${path}.tmp`, 'left by a crash');
    await writeFileAtomically(path, 'content', { mode: 0o666 });
    assert.equal(await readFile(path, 'utf8'), 'content');
    assert.equal(await readFile(join(base, 'other'), 'utf8'), 'untouched');
    assert.equal((await stat(path)).mode & 0o7777, 0o666);
    assert.deepEqual((await readdir(base)).sort(), ['file', 'other']);
  });

  it('are written in the order of the calls', async () => {
    const path = join(base, 'file');
    await Promise.all(Array.from({ length: 20 }, (_, i) => writeFileAtomically(path, String(i))));
    assert.equal(await readFile(path, 'utf8'), '19');
  });

  it('keep the old content when writing fails', async () => {
    const path = join(base, 'directory');
    await mkdir(join(path, 'not empty'), { recursive: true });
    await assert.rejects(writeFileAtomically(path, 'x'));
    assert.deepEqual(await readdir(base), ['directory']);
    assert.equal(await readFileIfExists(join(base, 'missing')), undefined);
  });
});

describe('checksummed state', () => {
  const isRecord = (data: unknown): data is Record<string, unknown> =>
    typeof data === 'object' && data !== null && !Array.isArray(data);
  const open = () =>
    new ChecksummedFile({ path: join(base, 'state'), clock: new VirtualClock(), accepts: isRecord });

  it('comes back as it was written, whatever JSON it is', async () => {
    const file = open();
    assert.deepEqual(await file.read(), { kind: 'absent' });
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (data) => {
        await file.write(data);
        const read = await file.read();
        assert.equal(read.kind, 'read');
        assert.equal(JSON.stringify(read.kind === 'read' && read.data), JSON.stringify(data));
      }),
      { numRuns: 50 },
    );
  });

  it('is set aside when cut anywhere, and the next read finds nothing', async () => {
    const file = open();
    await file.write({ a: 1, b: ['x'] });
    const whole = await readFile(file.path, 'utf8');
    for (let length = 0; length < whole.length - 1; length++) {
      await writeFile(file.path, whole);
      await truncate(file.path, length);
      const read = await file.read();
      assert.equal(read.kind, 'corrupt', `cut to ${length}`);
    }
    assert.deepEqual(await file.read(), { kind: 'absent' });
    assert.deepEqual(await readdir(base), ['state.corrupt-2026-01-01T00-00-00-000Z']);
  });

  for (const [what, text, reason] of [
    ['changed data', '{"checksum":"sha256:00","data":{"a":2}}', /checksum/],
    ['no data', '{"checksum":"x"}', /no data/],
    ['a bare value', 'null', /no data/],
    ['binary', '\u0000\u0001', /not JSON/],
  ] as const) {
    it(`is set aside when it holds ${what}`, async () => {
      await writeFile(join(base, 'state'), text);
      const read = await open().read();
      assert.ok(read.kind === 'corrupt');
      assert.match(read.reason, reason);
    });
  }

  it('is set aside when its shape is foreign or it is no file', async () => {
    const foreign = new ChecksummedFile({
      path: join(base, 'state'),
      clock: systemClock,
      accepts: (data): data is number => typeof data === 'number',
    });
    await open().write({ a: 1 });
    const read = await foreign.read();
    assert.ok(read.kind === 'corrupt' && read.setAside);
    await mkdir(join(base, 'state'));
    const directory = await open().read();
    assert.ok(directory.kind === 'corrupt' && /cannot be read/.test(directory.reason));
  });
});

describe('directory usage', () => {
  it('agrees with du, counts hard links once, and follows no links', async () => {
    await mkdir(join(base, 'a/b'), { recursive: true });
    await writeFile(join(base, 'a/big'), Buffer.alloc(300_000, 1));
    await writeFile(join(base, 'a/b/small'), 'x');
    await link(join(base, 'a/big'), join(base, 'a/b/same'));
    await symlink('/usr', join(base, 'usr'));
    const usage = await directoryUsage(base, { clock: systemClock });
    const kibibytes = Number(execFileSync('du', ['-s', '-k', base]).toString().split('\t')[0]);
    assert.equal(usage.bytes, kibibytes * 1024);
    const paths = [base, 'a', 'a/b', 'a/big', 'a/b/small', 'usr'];
    assert.equal(usage.inodes, paths.length);
    assert.deepEqual(await directoryUsage(join(base, 'missing'), { clock: systemClock }), {
      bytes: 0,
      inodes: 0,
    });
  });

  it('keeps its pace: a faster walk waits for the clock', async () => {
    await Promise.all(Array.from({ length: 1200 }, (_, i) => writeFile(join(base, `f${i}`), '')));
    const clock = new VirtualClock();
    const progress = { done: false };
    const walk = directoryUsage(base, { clock, entriesPerSecond: 500 }).then((usage) => {
      progress.done = true;
      return usage;
    });
    while (clock.nextTimer() === undefined) await clock.advance(0);
    assert.equal(progress.done, false);
    while (!progress.done) await clock.advance(1000);
    assert.equal((await walk).inodes, 1201);
    assert.ok(clock.now() - Date.UTC(2026, 0, 1) >= 2000);
  });
});
