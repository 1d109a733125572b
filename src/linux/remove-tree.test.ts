import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { constants, mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { bindMount, mountTmpfs, unmount, unmountAtOrBelow } from './mounts.ts';
import { removeTree, TreeRemovalError } from './remove-tree.ts';
import { openat2, Resolve } from './syscalls.ts';

describe('removing a tree', () => {
  let base: string;
  let tree: string;

  beforeEach(async () => {
    base = mkdtempSync(join(tmpdir(), 'remove-tree-'));
    tree = join(base, 'tree');
    await mkdir(tree);
  });

  afterEach(async () => {
    await unmountAtOrBelow(base);
    rmSync(base, { recursive: true, force: true });
  });

  it('removes files, directories, links, sockets and pipes, and is done when nothing is there', async () => {
    await mkdir(join(tree, 'a/b/c'), { recursive: true });
    await writeFile(join(tree, 'a/b/file'), 'x');
    execFileSync('mkfifo', [join(tree, 'pipe')]);
    await removeTree(tree);
    await assert.rejects(stat(tree), { code: 'ENOENT' });
    await removeTree(tree);
  });

  it('follows no symbolic link, neither inside nor as the tree itself', async () => {
    const outside = join(base, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'precious'), 'kept');
    await symlink(outside, join(tree, 'link'));
    await symlink('/etc', join(tree, 'etc'));
    await removeTree(tree);
    await symlink(outside, tree);
    await removeTree(tree);
    assert.equal(await readFile(join(outside, 'precious'), 'utf8'), 'kept');
  });

  it('removes a tree deeper than a path can be long', async () => {
    // Built from the inside out: each round puts the tree so far into a new directory.
    const name = 'd'.repeat(200);
    await mkdir(join(base, 'inner', 'leaf'), { recursive: true });
    for (let level = 0; level < 150; level++) {
      await mkdir(join(base, 'outer'));
      await rename(join(base, 'inner'), join(base, 'outer', name));
      await rename(join(base, 'outer'), join(base, 'inner'));
    }
    await rename(join(base, 'inner'), join(tree, 'deep'));
    await removeTree(tree);
    await assert.rejects(stat(tree), { code: 'ENOENT' });
  });

  it('removes names that are not UTF-8 and directories with many entries', async () => {
    await writeFile(Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe, 0x80])]), 'x');
    await mkdir(Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xc3, 0x28])]));
    await Promise.all(Array.from({ length: 2000 }, (_, i) => writeFile(join(tree, `file-${i}`), '')));
    await removeTree(tree);
    await assert.rejects(stat(tree), { code: 'ENOENT' });
  });

  for (const kind of ['bind mount of the same file system', 'tmpfs'] as const) {
    it(`never enters a ${kind}`, async () => {
      const source = join(base, 'source');
      const target = join(tree, 'mounted');
      await mkdir(source);
      await mkdir(target);
      if (kind === 'tmpfs') await mountTmpfs(target, ['size=1m']);
      else await bindMount(source, target);
      await writeFile(join(target, 'precious'), 'kept');
      await assert.rejects(removeTree(tree), (error) => {
        assert.ok(error instanceof TreeRemovalError);
        assert.equal(error.path, target);
        assert.match(error.message, /something is mounted there/);
        return true;
      });
      assert.equal(await readFile(join(target, 'precious'), 'utf8'), 'kept');
      await unmount(target);
      await removeTree(tree);
    });
  }

  it('names the immutable file that stayed, and removes it once it is free', async (context) => {
    const file = join(tree, 'sub', 'fixed');
    await mkdir(join(tree, 'sub'));
    await writeFile(file, 'x');
    try {
      execFileSync('chattr', ['+i', file], { stdio: 'ignore' });
    } catch {
      return context.skip('the file system of the temporary directory has no immutable files');
    }
    try {
      await assert.rejects(removeTree(tree), (error) => {
        assert.ok(error instanceof TreeRemovalError);
        assert.equal(error.path, file);
        assert.match(error.message, /immutable/);
        return true;
      });
    } finally {
      execFileSync('chattr', ['-i', file]);
    }
    await removeTree(tree);
  });

  it('stops when aborted', async () => {
    await writeFile(join(tree, 'file'), '');
    await assert.rejects(removeTree(tree, AbortSignal.abort(new Error('enough'))), /enough/);
    await stat(join(tree, 'file'));
  });

  it('opens nothing beyond its bounds', async () => {
    const flags = constants.O_RDONLY | constants.O_DIRECTORY;
    await symlink('/etc', join(tree, 'away'));
    const directory = await openat2(-100, tree, { flags, resolve: 0 });
    await assert.rejects(openat2(directory, 'away', { flags, resolve: Resolve.beneath }), { code: 'EXDEV' });
    await assert.rejects(openat2(directory, '../..', { flags, resolve: Resolve.beneath }), { code: 'EXDEV' });
    await assert.rejects(openat2(directory, 'missing', { flags, resolve: Resolve.beneath }), {
      code: 'ENOENT',
    });
  });
});
