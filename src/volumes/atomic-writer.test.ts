import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { lstat, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import {
  FilePathError,
  type Files,
  safeFilePath,
  type WriterFileSystem,
  writeFilesAtomically,
  writerFileSystem,
} from './atomic-writer.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'atomic-writer-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

type Content = Readonly<Record<string, string>>;

function filesOf(content: Content, mode = 0o644): Files {
  return new Map(
    Object.entries(content).map(([path, text]) => [path, { content: Buffer.from(text), mode }] as const),
  );
}

const write = (content: Content, more: { group?: number; mode?: number; fs?: WriterFileSystem } = {}) =>
  writeFilesAtomically({ directory, files: filesOf(content, more.mode), ...more });

/** What a container sees: through the links at the top, without what starts with `..`. */
function shown(): Record<string, string> {
  const seen: Record<string, string> = {};
  const walk = (path: string, name: string) => {
    let entries: string[];
    try {
      entries = readdirSync(path);
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOTDIR');
      seen[name] = readFileSync(path, 'utf8');
      return;
    }
    for (const entry of entries) walk(join(path, entry), `${name}/${entry}`);
  };
  for (const name of readdirSync(directory)) if (!name.startsWith('..')) walk(join(directory, name), name);
  return seen;
}

const contentArbitrary = fc
  .dictionary(fc.constantFrom('a', 'b', 'c', 'dir/x', 'dir/y', 'deep/er/z', '.hidden'), fc.string(), {
    maxKeys: 5,
  })
  .map((content): Content => ({ ...content }));

describe('files that change all at once', () => {
  it('lie behind ..data, in a directory named after the time', async () => {
    const now = Date.UTC(2026, 2, 4, 5, 6, 7);
    await writeFilesAtomically({ directory, files: filesOf({ 'app.conf': 'x', 'dir/y': 'z' }), now });
    const data = await readlink(join(directory, '..data'));
    assert.match(data, /^\.\.2026_03_04_05_06_07\.\w+$/);
    assert.equal((await lstat(join(directory, data))).mode & 0o7777, 0o755);
    assert.equal((await lstat(join(directory, data, 'dir'))).mode & 0o7777, 0o755);
    assert.equal(await readlink(join(directory, 'app.conf')), '..data/app.conf');
    assert.equal(await readlink(join(directory, 'dir')), '..data/dir');
    assert.deepEqual(shown(), { 'app.conf': 'x', 'dir/y': 'z' });
  });

  it('have exactly their mode, and are open to the group of the pod', async () => {
    const umask = process.umask(0o077);
    try {
      await write({ a: '1' }, { mode: 0o644 });
      assert.equal((await stat(join(directory, 'a'))).mode & 0o7777, 0o644);
      await write({ a: '2', 'd/b': '' }, { mode: 0o600, group: 4321 });
    } finally {
      process.umask(umask);
    }
    const facts = await stat(join(directory, 'a'));
    assert.deepEqual([facts.uid, facts.gid, facts.mode & 0o7777], [0, 4321, 0o640]);
    const parent = await stat(join(directory, 'd'));
    assert.deepEqual([parent.gid, parent.mode & 0o7777], [4321, 0o2755]);
  });

  it('belong to their user', async () => {
    const files: Files = new Map([['token', { content: Buffer.from('t'), mode: 0o600, uid: 1234 }]]);
    await writeFilesAtomically({ directory, files, group: 4321 });
    const facts = await stat(join(directory, 'token'));
    assert.deepEqual([facts.uid, facts.gid, facts.mode & 0o7777], [1234, 4321, 0o640]);
  });

  it('are not written again when nothing has changed', async () => {
    assert.equal(await write({ a: '1', 'd/b': '2' }), true);
    const data = await readlink(join(directory, '..data'));
    assert.equal(await write({ a: '1', 'd/b': '2' }), false);
    assert.equal(await write({ 'd/b': '2', './a': '1' }, { mode: 0o600 }), false);
    assert.equal(await readlink(join(directory, '..data')), data);
    assert.equal(await write({ a: '1' }), true);
    assert.notEqual(await readlink(join(directory, '..data')), data);
  });

  it('leave alone what somebody else has made, and repair links', async () => {
    await write({ a: '1', b: '2' });
    await mkdir(join(directory, 'nested/mount'), { recursive: true });
    await writeFile(join(directory, 'plain'), 'mine');
    rmSync(join(directory, 'a'));
    await symlink('/etc/passwd', join(directory, 'other'));
    await write({ a: '1', b: '2' });
    assert.equal(await readFile(join(directory, 'a'), 'utf8'), '1');
    await write({ a: '3', plain: 'theirs' });
    assert.equal(await readFile(join(directory, 'plain'), 'utf8'), 'mine');
    assert.equal(await readlink(join(directory, 'other')), '/etc/passwd');
    assert.deepEqual(await readdir(join(directory, 'nested')), ['mount']);
  });

  it('show whatever sequence of contents is written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(contentArbitrary, { minLength: 1, maxLength: 4 }), async (contents) => {
        rmSync(directory, { recursive: true });
        await mkdir(directory);
        for (const content of contents) {
          await write(content);
          assert.deepEqual(shown(), content);
          const own = readdirSync(directory).filter((name) => name.startsWith('..'));
          assert.equal(own.length, 2, own.join());
        }
      }),
      { numRuns: 30 },
    );
  });

  for (const path of [
    '',
    '.',
    '..',
    '../x',
    'a/../b',
    '/etc/x',
    '..data',
    '..x/y',
    'a\0b',
    'x'.repeat(256),
  ]) {
    it(`refuse the path ${JSON.stringify(path.slice(0, 20))}`, async () => {
      assert.throws(() => safeFilePath(path), FilePathError);
      await assert.rejects(write({ good: '1', [path]: 'bad' }), FilePathError);
      assert.deepEqual(readdirSync(directory), []);
    });
  }

  it('refuse a file where another one needs a directory, and paths too long', async () => {
    await assert.rejects(write({ a: '1', 'a/b': '2' }), /"a" is a file as well/);
    assert.throws(() => safeFilePath(`${'x/'.repeat(2100)}y`), FilePathError);
    assert.equal(safeFilePath('./a//b/'), 'a/b');
  });
});

/** A file system on which call number `failAt` and all later ones fail, as after a kill. */
function dyingFileSystem(failAt: number): { fs: WriterFileSystem; calls: () => number } {
  let calls = 0;
  const entries = Object.entries(writerFileSystem).map(([name, call]) => [
    name,
    async (...args: unknown[]) => {
      if (++calls >= failAt) throw Object.assign(new Error(`killed before ${name}`), { code: 'EKILLED' });
      return await (call as (...args: unknown[]) => Promise<unknown>)(...args);
    },
  ]);
  return { fs: Object.fromEntries(entries) as WriterFileSystem, calls: () => calls };
}

describe('a crash while files are written', () => {
  const before: Content = { a: 'old', gone: 'old', 'dir/x': 'old' };
  const after: Content = { a: 'new', 'dir/x': 'new', 'dir/y': 'new', fresh: 'new' };

  for (const [what, first] of [
    ['over an old content', before],
    ['into an empty directory', undefined],
  ] as const) {
    it(`${what} leaves the old or the new one, whatever the line, and the next run finishes`, async () => {
      let finished = false;
      let sawOld = 0;
      let sawNew = 0;
      for (let failAt = 1; !finished; failAt++) {
        rmSync(directory, { recursive: true });
        await mkdir(directory);
        if (first) await write(first);
        const { fs } = dyingFileSystem(failAt);
        finished = await write(after, { fs, group: 4321 }).then(
          () => true,
          (error: Error) => {
            assert.match(error.message, /^killed/);
            return false;
          },
        );
        const data = join(directory, '..data');
        const content = readIfThere(data);
        if (content && JSON.stringify(content) === JSON.stringify(sorted(after))) sawNew++;
        else {
          assert.deepEqual(content, first && sorted(first), `killed at call ${failAt}`);
          sawOld++;
        }
        await write(after);
        assert.deepEqual(shown(), after);
        assert.equal(readdirSync(directory).filter((name) => name.startsWith('..')).length, 2);
      }
      assert.ok(sawOld > 10 && sawNew > 5, `${sawOld} old, ${sawNew} new`);
    });
  }

  it('of a full disk leaves the old content and no attempt', async () => {
    await write(before);
    const fs: WriterFileSystem = {
      ...writerFileSystem,
      writeFile: () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })),
    };
    await assert.rejects(write(after, { fs }), /full/);
    assert.deepEqual(shown(), before);
    assert.equal(readdirSync(directory).filter((name) => name.startsWith('..')).length, 2);
  });
});

function sorted(content: Content): Content {
  return Object.fromEntries(Object.entries(content).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function readIfThere(root: string): Content | undefined {
  const content: Record<string, string> = {};
  const walk = (path: string, prefix: string) => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) walk(join(path, entry.name), `${prefix}${entry.name}/`);
      else content[prefix + entry.name] = readFileSync(join(path, entry.name), 'utf8');
    }
  };
  try {
    walk(root, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  return sorted(content);
}

describe('a reader', () => {
  it('that opens ..data once sees one content, never a mixture', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const version = (n: number): Content => Object.fromEntries(names.map((name) => [name, `v${n}`]));
    await write(version(0));
    let reads = 0;
    const look = () => {
      const fd = openSync(join(directory, '..data'), 'r');
      try {
        const seen = new Set(names.map((name) => readFileSync(`/proc/self/fd/${fd}/${name}`, 'utf8')));
        assert.equal(seen.size, 1, [...seen].join());
        reads++;
      } catch (error) {
        // The content was replaced under the reader's hands, which it notices, and looks again.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      } finally {
        closeSync(fd);
      }
    };
    // Every system call of the writer is followed by a look.
    const entries = Object.entries(writerFileSystem).map(([name, call]) => [
      name,
      async (...args: unknown[]) => {
        const result = await (call as (...args: unknown[]) => Promise<unknown>)(...args);
        look();
        return result;
      },
    ]);
    const fs = Object.fromEntries(entries) as WriterFileSystem;
    for (let n = 1; n <= 30; n++) await write(version(n), { fs });
    assert.ok(reads > 300, `${reads} reads`);
  });
});
