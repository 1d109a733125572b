/**
 * What every kind of volume has to do, whoever wrote it: be set up again without harm, keep what containers
 * wrote, be taken down from the directories and the mount table alone, and survive a kill at any moment.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { mountsAtOrBelow } from '../linux/mount-table.ts';
import { unmountAtOrBelow } from '../linux/mounts.ts';
import { freshVolumes, podWith, volumeCases } from './fixtures/volume-cases.ts';
import { volumeDirectoryNames } from './pod-volume-paths.ts';

const { signal } = new AbortController();
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'volume-contract-'));
});
afterEach(async () => {
  await unmountAtOrBelow(root);
  rmSync(root, { recursive: true, force: true });
});

/** Nothing of the volumes is mounted or on disk. */
async function assertGone(uid: string): Promise<void> {
  assert.deepEqual(await mountsAtOrBelow(join(root, 'pods')), []);
  const left = await readdir(join(root, 'pods', uid)).catch((): string[] => []);
  assert.deepEqual(
    left.filter((name) => (volumeDirectoryNames as readonly string[]).includes(name)),
    [],
  );
}

const names = Object.values(volumeCases('/'))
  .flat()
  .map(({ volume }) => volume.name);

for (const name of names) {
  describe(`the volume ${name}`, () => {
    const found = () =>
      Object.entries(volumeCases(root))
        .flatMap(([kind, cases]) => cases.map((one) => ({ kind, ...one })))
        .find(({ volume }) => volume.name === name)!;

    it('is complete after it was set up, and again after the second time', async () => {
      const { kind, volume, isWritable, check } = found();
      const pod = podWith([volume]);
      const volumes = freshVolumes(root);
      const first = await volumes.setUp(pod, signal);
      const [mounted] = first;
      assert.equal(mounted?.kind, kind);
      assert.equal(mounted.readOnly, !isWritable);
      await check(mounted.hostPath);
      for (const again of [volumes, freshVolumes(root)]) {
        assert.deepEqual(await again.setUp(pod, signal), first);
        await check(mounted.hostPath);
      }
      assert.deepEqual(volumes.unfinished(pod.metadata.uid), []);
    });

    it('keeps what containers wrote, whoever sets it up again', async () => {
      const { volume, isWritable } = found();
      if (!isWritable) return;
      const pod = podWith([volume]);
      const [mounted] = await freshVolumes(root).setUp(pod, signal);
      await writeFile(join(mounted!.hostPath, 'written'), 'by a container');
      await freshVolumes(root).setUp(pod, signal);
      assert.equal(await readFile(join(mounted!.hostPath, 'written'), 'utf8'), 'by a container');
    });

    it('is taken down by an agent that never heard of the pod, once and again', async () => {
      const { kind, volume } = found();
      const pod = podWith([volume]);
      const [mounted] = await freshVolumes(root).setUp(pod, signal);
      if (kind === 'hostPath') await writeFile(join(mounted!.hostPath, 'kept'), '');
      for (const volumes of [freshVolumes(root), freshVolumes(root)]) {
        await volumes.tearDown(pod.metadata.uid, signal);
        await assertGone(pod.metadata.uid);
      }
      if (kind === 'hostPath') assert.deepEqual(await readdir(mounted!.hostPath), ['kept']);
    });

    it('is taken down while somebody has a file of it open', async () => {
      const { volume, isWritable } = found();
      const pod = podWith([volume]);
      const [mounted] = await freshVolumes(root).setUp(pod, signal);
      const busy = isWritable ? await open(join(mounted!.hostPath, 'open'), 'w') : undefined;
      try {
        await freshVolumes(root).tearDown(pod.metadata.uid, signal);
        await assertGone(pod.metadata.uid);
      } finally {
        await busy?.close();
      }
    });

    it('is not set up for an agent that gives up, and can be taken down then', async () => {
      const { volume } = found();
      const pod = podWith([volume]);
      await assert.rejects(freshVolumes(root).setUp(pod, AbortSignal.abort(new Error('stopped'))), /stopped/);
      await freshVolumes(root).tearDown(pod.metadata.uid, signal);
      await assertGone(pod.metadata.uid);
    });
  });
}

describe('a kill', () => {
  /** Kills the process `ms` after it began; resolves with all it had told. */
  async function killedAfter(ms: number): Promise<string> {
    const script = fileURLToPath(new URL('./fixtures/set-up-process.ts', import.meta.url));
    const child = spawn(process.execPath, ['--no-warnings', script, root], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let told = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (told === '') setTimeout(() => child.kill('SIGKILL'), ms);
      told += text;
    });
    await once(child, 'close');
    return told;
  }

  it('at any moment leaves volumes that the next agent completes, or takes down to the last trace', async () => {
    const cases = Object.values(volumeCases(root)).flat();
    const pod = podWith(cases.map(({ volume }) => volume));
    const { uid } = pod.metadata;
    let cutOff = 0;
    for (const ms of [0, 5, 12, 21, 40, 75]) {
      const told = await killedAfter(ms);
      assert.match(told, /^begins/);
      if (!told.includes('taken down')) cutOff++;
      if (ms % 2 === 1) {
        const mounted = await freshVolumes(root).setUp(pod, signal);
        for (const { volume, check } of cases) {
          await check(mounted.find(({ name }) => name === volume.name)!.hostPath);
        }
      }
      await freshVolumes(root).tearDown(uid, signal);
      await assertGone(uid);
    }
    assert.ok(cutOff > 0);
  });
});
