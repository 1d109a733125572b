/**
 * A thread that swaps directories for links, without rest, while the agent opens and mounts sub-paths. Of all
 * the tries, none may lead out of the volume. `KUBELET_TS_SUB_PATH_RACES` says how many there are.
 */
import assert from 'node:assert/strict';
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { loadKoffi } from '../linux/koffi.ts';
import { unmountAtOrBelow } from '../linux/mounts.ts';
import { openat2Number, openPathOnly } from '../linux/syscalls.ts';
import { ContainerMountError } from './container-mounts.ts';
import { bindSubPath, bounds, openPart } from './sub-paths.ts';

const races = Number(process.env['KUBELET_TS_SUB_PATH_RACES'] ?? 100_000);
const openings = races / 50;
const mounts = 200;
const atOnce = 50;

/** Runs in a thread of its own until it is ended: `swap` is now a directory, now a link out, now nothing. */
const attacker = `
const { renameSync, rmSync, symlinkSync, unlinkSync } = require('node:fs');
const { workerData: volume } = require('node:worker_threads');
const [swap, hidden, link] = ['swap', 'hidden', 'link'].map((name) => volume + '/' + name);
const targets = ['../outside', '/proc/self/cwd/..', volume + '/../outside'];
// The agent may make what it misses at the same moment, so each step may fail.
const attempt = (step) => { try { step(); return true; } catch { return false; } };
for (let round = 0; ; round++) {
  attempt(() => symlinkSync(targets[round % targets.length], link));
  attempt(() => renameSync(swap, hidden));
  attempt(() => renameSync(link, swap));
  attempt(() => unlinkSync(swap));
  if (!attempt(() => renameSync(hidden, swap))) rmSync(hidden, { recursive: true, force: true });
}
`;

describe('a thread that swaps links under sub-paths', () => {
  let base: string;
  let volumePath: string;
  let worker: Worker;

  beforeEach(async () => {
    base = mkdtempSync(join(tmpdir(), 'sub-path-races-'));
    volumePath = join(base, 'volume');
    await mkdir(join(volumePath, 'swap/inner'), { recursive: true });
    await mkdir(join(base, 'outside/inner'), { recursive: true });
    await writeFile(join(base, 'outside/inner/secret'), 'secret');
    worker = new Worker(attacker, { eval: true, workerData: volumePath });
    // In the short time it takes a thread to begin, nothing would be tried.
    await new Promise((resolve) => worker.once('online', resolve));
  });
  afterEach(async () => {
    await worker.terminate();
    await unmountAtOrBelow(base);
    rmSync(base, { recursive: true, force: true });
  });

  const outsideFiles = () =>
    new Set(['outside', 'outside/inner', '.'].map((name) => statSync(join(base, name)).ino));

  it(`never leads ${races} resolutions out of the volume`, async () => {
    const koffi = await loadKoffi();
    // Directly, without a thread for each call: what counts is the kernel's answer within these bounds.
    const syscall = koffi.load(null).func('long syscall(long, int, const void *, const void *, size_t)');
    const how = Buffer.alloc(24);
    how.writeBigUInt64LE(BigInt(openPathOnly), 0);
    how.writeBigUInt64LE(BigInt(bounds), 16);
    const name = Buffer.from('swap/inner\0');
    const volume = openSync(volumePath, constants.O_RDONLY | constants.O_DIRECTORY);
    const outside = outsideFiles();
    const seen = { opened: 0, refused: 0 };
    try {
      for (let tried = 0; tried < races; tried++) {
        const part = syscall(openat2Number, volume, name, how, how.length);
        if (part < 0) {
          seen.refused++;
          continue;
        }
        const { ino } = fstatSync(part);
        closeSync(part);
        assert.ok(!outside.has(ino), 'it led out of the volume');
        seen.opened++;
      }
    } finally {
      closeSync(volume);
    }
    // Both happened, again and again, or it was no race.
    assert.ok(seen.opened > races / 1000 && seen.refused > races / 1000, JSON.stringify(seen));
  });

  it(`never leads ${openings} openings that make missing directories out of the volume`, async () => {
    const volume = openSync(volumePath, constants.O_RDONLY | constants.O_DIRECTORY);
    const outside = outsideFiles();
    let opened = 0;
    const attempt = async (): Promise<void> => {
      const part = await openPart(volume, ['swap', 'inner', 'new']).catch(() => undefined);
      if (part === undefined) return;
      const { ino } = fstatSync(part);
      closeSync(part);
      assert.ok(!outside.has(ino), 'it led out of the volume');
      opened++;
    };
    try {
      for (let tried = 0; tried < openings; tried += atOnce) {
        await Promise.all(Array.from({ length: atOnce }, attempt));
      }
    } finally {
      closeSync(volume);
    }
    assert.ok(opened > 0);
    assert.deepEqual(await readdir(join(base, 'outside')), ['inner']);
    assert.deepEqual(await readdir(join(base, 'outside/inner')), ['secret']);
  });

  it(`never mounts what is outside, in ${mounts} mounts that make missing directories`, async () => {
    const seen = { bound: 0, refused: 0 };
    for (let index = 0; index < mounts; index++) {
      const target = join(base, 'pod/volume-subpaths/data/main', String(index));
      const subPath = index % 2 === 0 ? 'swap/inner' : `swap/new-${index}`;
      try {
        await bindSubPath({ volumePath, subPath, target, mountName: 'data', container: 'main' });
        seen.bound++;
        assert.deepEqual(await readdir(target), []);
      } catch (error) {
        assert.ok(error instanceof ContainerMountError, String(error));
        seen.refused++;
      }
      if (index % 50 === 49) await unmountAtOrBelow(join(base, 'pod'));
    }
    assert.ok(seen.bound > 0, JSON.stringify(seen));
    assert.deepEqual(await readdir(join(base, 'outside')), ['inner']);
  });
});
