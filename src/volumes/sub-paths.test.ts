import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { mountsAtOrBelow } from '../linux/mount-table.ts';
import { unmountAtOrBelow } from '../linux/mounts.ts';
import { ContainerMountError } from './container-mounts.ts';
import { bindSubPath } from './sub-paths.ts';

describe('sub-paths', () => {
  let base: string;
  let volumePath: string;
  let target: string;

  beforeEach(async () => {
    base = mkdtempSync(join(tmpdir(), 'sub-paths-'));
    volumePath = join(base, 'volume');
    target = join(base, 'pod/volume-subpaths/data/main/0');
    await mkdir(volumePath);
    await chmod(volumePath, 0o2775);
    await mkdir(join(base, 'outside'));
    await writeFile(join(base, 'outside/secret'), 'secret');
  });
  afterEach(async () => {
    await unmountAtOrBelow(base);
    rmSync(base, { recursive: true, force: true });
  });

  const bind = async (subPath: string, to = target) =>
    await bindSubPath({ volumePath, subPath, target: to, mountName: 'data', container: 'main' });
  const refused = async (subPath: string) => {
    await assert.rejects(bind(subPath), (error) => {
      assert.ok(error instanceof ContainerMountError);
      assert.equal(error.message, 'failed to prepare subPath for volumeMount "data" of container "main"');
      return true;
    });
    assert.equal((await mountsAtOrBelow(base)).length, 0);
    assert.deepEqual(await readdir(join(base, 'outside')), ['secret']);
  };

  it('show a directory, made with the mode of the volume when missing', async () => {
    await bind('new/deep');
    await writeFile(join(target, 'file'), 'content');
    assert.equal(await readFile(join(volumePath, 'new/deep/file'), 'utf8'), 'content');
    assert.equal((await stat(join(volumePath, 'new'))).mode & 0o7777, 0o2775);
    assert.equal((await stat(join(volumePath, 'new/deep'))).mode & 0o7777, 0o2775);
    assert.equal((await stat(join(base, 'pod/volume-subpaths'))).mode & 0o7777, 0o750);
  });

  it('keep users of a missing directory apart when those of the volume are', async () => {
    await chmod(volumePath, 0o3777);
    await bind('shared/deep');
    assert.equal((await stat(join(volumePath, 'shared'))).mode & 0o7777, 0o3777);
    assert.equal((await stat(target)).mode & 0o7777, 0o3777);
  });

  it('show a single file', async () => {
    await writeFile(join(volumePath, 'file'), 'content');
    await bind('file');
    assert.equal(await readFile(target, 'utf8'), 'content');
  });

  it('stay as they are when bound again, and follow the volume when the part was replaced', async () => {
    await mkdir(join(volumePath, 'part'));
    await bind('part');
    await bind('part');
    assert.equal((await mountsAtOrBelow(base)).length, 1);
    await rename(join(volumePath, 'part'), join(volumePath, 'old'));
    await mkdir(join(volumePath, 'part'));
    await writeFile(join(volumePath, 'part/new'), '');
    await bind('part');
    assert.deepEqual(await readdir(target), ['new']);
    assert.equal((await mountsAtOrBelow(base)).length, 1);
  });

  it('follow links within the volume', async () => {
    await mkdir(join(volumePath, 'real'));
    await symlink('real', join(volumePath, 'alias'));
    await bind('alias/new');
    await stat(join(volumePath, 'real/new'));
  });

  it('never lead out of the volume', async () => {
    await symlink(join(base, 'outside'), join(volumePath, 'absolute'));
    await symlink('../outside', join(volumePath, 'relative'));
    await symlink('/proc/self/root', join(volumePath, 'magic'));
    await symlink(join(base, 'outside/new'), join(volumePath, 'dangling'));
    for (const escape of ['absolute', 'relative', 'magic', 'dangling']) {
      await refused(escape);
      await refused(`${escape}/new`);
    }
    await writeFile(join(volumePath, 'file'), '');
    await refused('file/below');
  });

  it('never lead out of the volume while the workload swaps directories for links', async () => {
    const swapping = { on: true };
    // The two make and remove the same names, so each step of the attack may fail.
    const attack = (async () => {
      const { swap, hidden } = { swap: join(volumePath, 'swap'), hidden: join(volumePath, 'hidden') };
      while (swapping.on) {
        await mkdir(join(swap, 'inner'), { recursive: true }).catch(() => {});
        await rename(swap, hidden).catch(() => {});
        await symlink('../outside', swap).catch(() => {});
        await rm(swap, { recursive: true, force: true }).catch(() => {});
        await rm(hidden, { recursive: true, force: true }).catch(() => {});
      }
    })();
    for (let attempt = 0; attempt < 150; attempt++) {
      await bind('swap/inner').catch((error: unknown) => assert.ok(error instanceof ContainerMountError));
      const seen = await readdir(target).catch((): string[] => []);
      assert.ok(!seen.includes('secret'));
    }
    swapping.on = false;
    await attack;
    assert.deepEqual(await readdir(join(base, 'outside')), ['secret']);
    await bind('swap/inner');
  });
});
