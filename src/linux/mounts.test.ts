import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, open, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { mountAt, mountsAtOrBelow } from './mount-table.ts';
import {
  bindMount,
  makeSharedMount,
  mountTmpfs,
  StillMountedError,
  UnmountHangsError,
  type Unmounting,
  unmount,
  unmountAtOrBelow,
} from './mounts.ts';
import { tryLock, unlock } from './syscalls.ts';

/** Unmounts as the kernel does, except that a call it is told to let hang takes longer than anybody waits. */
function unmounting(hangs: (target: string, detach: boolean) => boolean): Unmounting {
  const clock = new VirtualClock();
  return {
    clock,
    unmount: (target, options) => {
      if (!hangs(String(target), options?.detach === true)) return unmount(target, options);
      setImmediate(() => void clock.advance(10_000));
      return new Promise(() => {});
    },
  };
}

describe('mounting', () => {
  let base: string;
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'mounts with space-'));
  });
  afterEach(async () => {
    await unmountAtOrBelow(base);
    rmSync(base, { recursive: true, force: true });
  });

  it('mounts a tmpfs once, with its size, and unmounts it once', async () => {
    const target = join(base, 'memory');
    await mkdir(target);
    await mountTmpfs(target, ['size=1048576']);
    await mountTmpfs(target, ['size=1048576']);
    const mounted = await mountAt(target);
    assert.equal(mounted?.type, 'tmpfs');
    assert.ok(mounted.superOptions.includes('size=1024k'));
    assert.equal((await mountsAtOrBelow(base)).length, 1);
    assert.equal(await unmount(target), true);
    assert.equal(await unmount(target), false);
    assert.equal(await unmount(join(base, 'missing')), false);
  });

  it('finds a mount point through a symbolic link in its parent', async () => {
    await mkdir(join(base, 'real/memory'), { recursive: true });
    await symlink(join(base, 'real'), join(base, 'alias'));
    await mountTmpfs(join(base, 'real/memory'), []);
    assert.equal((await mountAt(join(base, 'alias/memory')))?.type, 'tmpfs');
    assert.deepEqual(await unmountAtOrBelow(join(base, 'alias/memory')), [join(base, 'real/memory')]);
  });

  it('binds directories and files, read-only when asked, and repairs a half-done read-only bind', async () => {
    await mkdir(join(base, 'source'));
    await mkdir(join(base, 'target'));
    await writeFile(join(base, 'source/file'), 'content');
    await bindMount(join(base, 'source'), join(base, 'target'));
    await writeFile(join(base, 'target/second'), 'through the bind');
    await bindMount(join(base, 'source'), join(base, 'target'), { readOnly: true });
    await assert.rejects(writeFile(join(base, 'target/third'), ''), { code: 'EROFS' });
    assert.equal((await mountsAtOrBelow(base)).length, 1);
    assert.equal(await readFile(join(base, 'source/second'), 'utf8'), 'through the bind');
  });

  it('unmounts nested and stacked mounts, and detaches busy ones', async () => {
    const outer = join(base, 'outer');
    await mkdir(outer);
    await mountTmpfs(outer, []);
    await mkdir(join(outer, 'inner'));
    await mountTmpfs(join(outer, 'inner'), []);
    await mkdir(join(base, 'source'));
    await bindMount(join(base, 'source'), join(outer, 'inner'));
    const busy = await open(join(outer, 'inner/file'), 'w').catch(() => undefined);
    const alsoBusy = await open(join(outer, 'file'), 'w');
    try {
      const gone = await unmountAtOrBelow(base);
      assert.ok(gone.includes(outer));
      assert.equal((await mountsAtOrBelow(base)).length, 0);
    } finally {
      await busy?.close();
      await alsoBusy.close();
    }
    await stat(outer);
  });

  it('detaches a mount whose file system does not answer, and goes on with the others', async () => {
    for (const name of ['dead', 'fine']) {
      await mkdir(join(base, name));
      await mountTmpfs(join(base, name), []);
    }
    const how = unmounting((target, detach) => target.endsWith('dead') && !detach);
    const gone = await unmountAtOrBelow(base, undefined, how);
    assert.deepEqual(gone.map((path) => basename(path)).sort(), ['dead', 'fine']);
    assert.equal((await mountsAtOrBelow(base)).length, 0);
  });

  it('names a mount that can in no way be taken away, and takes away the others', async () => {
    for (const name of ['dead', 'fine']) {
      await mkdir(join(base, name));
      await mountTmpfs(join(base, name), []);
    }
    const how = unmounting((target) => target.endsWith('dead'));
    await assert.rejects(unmountAtOrBelow(base, undefined, how), (error) => {
      assert.ok(error instanceof StillMountedError);
      assert.deepEqual(
        error.mountPoints.map((path) => basename(path)),
        ['dead'],
      );
      assert.ok(error.cause instanceof UnmountHangsError);
      assert.match(error.cause.message, /unmounting .*\/dead hangs; .* or restart the node/);
      return true;
    });
    assert.deepEqual(
      (await mountsAtOrBelow(base)).map(({ mountPoint }) => basename(mountPoint)),
      ['dead'],
    );
  });

  it('unmounts what is mounted on names with letters of any script, and on names that are no text', async () => {
    const named = join(base, 'größe ☃');
    await mkdir(named);
    await mountTmpfs(named, []);
    assert.equal((await mountAt(named))?.mountPointBytes, undefined);
    const bytes = Buffer.concat([Buffer.from(`${base}/`), Buffer.from([0xff, 0x20, 0xfe])]);
    await mkdir(bytes);
    execFileSync('sh', ['-c', `mount -t tmpfs none "$(printf '%s/\\377 \\376' "$1")"`, 'sh', base]);
    assert.equal((await mountsAtOrBelow(base)).length, 2);
    assert.equal((await unmountAtOrBelow(base)).length, 2);
  });

  it('sees its own mounts at once, however many others look at the table', async () => {
    const targets = Array.from({ length: 40 }, (_, i) => join(base, `m${i}`));
    await Promise.all(
      targets.map(async (target) => {
        await mkdir(target);
        assert.equal(await mountAt(target), undefined);
        await mountTmpfs(target, []);
        assert.equal((await mountAt(target))?.type, 'tmpfs');
        await unmount(target);
        assert.equal(await mountAt(target), undefined);
      }),
    );
  });

  it('makes a directory share its mounts once, and leaves it alone where they are shared already', async () => {
    // Machines differ in whether their root is shared, so the test brings a private mount of its own.
    const around = join(base, 'around');
    await mkdir(around);
    await mountTmpfs(around, []);
    execFileSync('mount', ['--make-private', around]);
    const root = join(around, 'root');
    await mkdir(join(root, 'pods'), { recursive: true });
    assert.equal(await makeSharedMount(root), true);
    assert.equal(await makeSharedMount(root), false);
    assert.equal(await makeSharedMount(join(root, 'pods')), false);
    const mounts = await mountsAtOrBelow(root);
    assert.deepEqual(
      mounts.map(({ mountPoint }) => mountPoint),
      [root],
    );
    assert.match(mounts[0]!.tags.join(), /^shared:\d+$/);
    assert.equal(await unmount(root), true);
  });

  it('names call, path and reason when the kernel refuses', async () => {
    await mkdir(join(base, 'target'));
    await assert.rejects(mountTmpfs(join(base, 'target'), ['size=nonsense']), (error: Error) => {
      assert.match(
        error.message,
        /^EINVAL: mount failed on '.*target' \(source 'tmpfs', type tmpfs, options size=nonsense\)$/,
      );
      return true;
    });
    await assert.rejects(mountTmpfs(join(base, 'missing'), []), { code: 'ENOENT', syscall: 'mount' });
  });
});

describe('locks', () => {
  it('are held by one descriptor at a time', async () => {
    const base = mkdtempSync(join(tmpdir(), 'lock-'));
    const first = await open(join(base, 'lock'), 'w');
    const second = await open(join(base, 'lock'), 'r');
    try {
      assert.equal(await tryLock(first.fd), true);
      assert.equal(await tryLock(second.fd), false);
      await unlock(first.fd);
      assert.equal(await tryLock(second.fd), true);
    } finally {
      await first.close();
      await second.close();
      rmSync(base, { recursive: true });
    }
  });
});
