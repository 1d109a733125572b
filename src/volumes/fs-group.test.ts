import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { chmod, chown, link, lstat, mkdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { mountTmpfs, unmountAtOrBelow } from '../linux/mounts.ts';
import { applyFsGroup, type FsGroupChange } from './fs-group.ts';

const { signal } = new AbortController();
const group = 4321;
let base: string;
let tree: string;
let clock: VirtualClock;

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'fs-group-'));
  tree = join(base, 'volume');
  clock = new VirtualClock();
  await mkdir(join(tree, 'sub/deep'), { recursive: true });
  await writeFile(join(tree, 'sub/file'), '', { mode: 0o600 });
  await writeFile(join(base, 'outside'), '', { mode: 0o600 });
});
afterEach(async () => {
  await unmountAtOrBelow(base);
  rmSync(base, { recursive: true, force: true });
});

const apply = (more: Partial<FsGroupChange> = {}, end = signal) =>
  applyFsGroup({ directory: tree, group, clock, ...more }, end);
const mode = async (...path: string[]) => (await stat(join(...path))).mode & 0o7777;
const gid = async (...path: string[]) => (await lstat(join(...path))).gid;

describe('fsGroup', () => {
  it('gives group and permissions to everything, and to nothing that links point to', async () => {
    await symlink(join(base, 'outside'), join(tree, 'link'));
    await symlink(base, join(tree, 'sub/out'));
    assert.equal(await apply(), 6);
    assert.deepEqual(
      [await mode(tree), await mode(tree, 'sub'), await mode(tree, 'sub/file'), await mode(tree, 'sub/deep')],
      [0o2775, 0o2775, 0o660, 0o2775],
    );
    for (const path of ['.', 'sub', 'sub/deep', 'sub/file', 'link', 'sub/out']) {
      assert.equal(await gid(tree, path), group, path);
    }
    assert.equal(await gid(base, 'outside'), 0);
    assert.equal(await mode(base, 'outside'), 0o600);
    assert.notEqual(await gid(base), group);
  });

  it('keeps setuid, and lets the group of a read-only volume only read', async () => {
    await chmod(join(tree, 'sub/file'), 0o4700);
    await chmod(join(tree, 'sub'), 0o700);
    await apply({ readOnly: true });
    assert.equal(await mode(tree, 'sub/file'), 0o4740);
    assert.equal(await mode(tree, 'sub'), 0o2750);
  });

  it('OnRootMismatch spares a volume whose root is right, and no other', async () => {
    const policy = 'OnRootMismatch';
    assert.equal(await apply({ policy }), 4);
    await writeFile(join(tree, 'new'), '', { mode: 0o600 });
    await chown(join(tree, 'new'), 0, 0);
    assert.equal(await apply({ policy }), 0);
    assert.equal(await mode(tree, 'new'), 0o600);
    await chmod(tree, 0o700);
    assert.equal(await apply({ policy }), 5);
    assert.equal(await mode(tree, 'new'), 0o660);
  });

  it('leaves the root for the end, so that an interrupted run is made again', async () => {
    await assert.rejects(apply({}, AbortSignal.abort(new Error('stopped'))), /stopped/);
    assert.equal(await gid(tree), 0);
    assert.equal(await apply({ policy: 'OnRootMismatch' }), 4);
  });

  it('leaves alone what is mounted inside, and names that are no UTF-8 are names', async () => {
    await mountTmpfs(join(tree, 'sub/deep'), ['mode=0700']);
    const odd = Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe])]);
    writeFileSync(odd, '', { mode: 0o600 });
    await apply();
    assert.equal(await mode(tree, 'sub/deep'), 0o700);
    assert.equal((await stat(odd)).gid, group);
  });

  it('tells after half a minute, and then each minute, how far it is', async () => {
    // Each file takes turns of the event loop, more of them together than time needs to pass below.
    for (let index = 0; index < 2000; index++) writeFileSync(join(tree, `f${index}`), '');
    const told: string[] = [];
    const run = apply({ onProgress: (message) => told.push(message) });
    await clock.advance(30_000);
    await clock.advance(60_000);
    assert.equal(await run, 2004);
    await settle();
    assert.equal(clock.nextTimer(), undefined);
    assert.equal(told.length, 2);
    assert.match(told[0]!, /^Setting volume ownership for .*\/volume is taking longer than expected, /);
    assert.match(told[1]!, /^Setting volume ownership for .*\/volume, processed \d+ files\.$/);
  });

  it('reaches nothing outside while the workload swaps files and directories for links', async () => {
    const outside = join(base, 'elsewhere');
    mkdirSync(outside);
    writeFileSync(join(outside, 'secret'), '', { mode: 0o600 });
    const state = { on: true };
    const attack = (async () => {
      while (state.on) {
        await mkdir(join(tree, 'swap')).catch(() => {});
        await writeFile(join(tree, 'swap/secret'), '', { mode: 0o600 }).catch(() => {});
        await rename(join(tree, 'swap'), join(tree, 'hidden')).catch(() => {});
        await symlink('../elsewhere', join(tree, 'swap')).catch(() => {});
        await symlink('../elsewhere/secret', join(tree, 'direct')).catch(() => {});
        await rm(join(tree, 'direct'), { force: true }).catch(() => {});
        await link(join(tree, 'sub/file'), join(tree, 'direct')).catch(() => {});
        await rm(join(tree, 'direct'), { force: true }).catch(() => {});
        await rm(join(tree, 'swap'), { recursive: true, force: true }).catch(() => {});
        await rm(join(tree, 'hidden'), { recursive: true, force: true }).catch(() => {});
      }
    })();
    for (let attempt = 0; attempt < 60; attempt++) await apply();
    state.on = false;
    await attack;
    assert.deepEqual([await gid(outside, 'secret'), await mode(outside, 'secret')], [0, 0o600]);
    assert.equal(await gid(outside), 0);
  });
});
