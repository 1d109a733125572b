import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from './command.ts';
import { demoImageDefinitions, demoImages } from './demo-images.ts';
import { ociArchive } from './oci-archive.ts';
import { tarArchive } from './tar-archive.ts';

async function unpacked<T>(archive: Buffer, use: (directory: string) => T): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'kubelet-ts-tar-'));
  try {
    const file = join(directory, 'archive.tar');
    writeFileSync(file, archive);
    await runCommand('tar', ['--extract', '--file', file, '--directory', directory]);
    rmSync(file);
    return use(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('tar reads what was written: content, modes, links', async () => {
  const archive = tarArchive([
    { type: 'directory', path: 'a', mode: 0o750 },
    { type: 'file', path: 'a/b', mode: 0o640, content: 'x'.repeat(513) },
    { type: 'file', path: 'empty', mode: 0o600, content: '' },
    { type: 'symlink', path: 'link', target: 'a/b' },
  ]);
  assert.equal(archive.length % 512, 0);
  await unpacked(archive, (directory) => {
    assert.equal(readFileSync(join(directory, 'link'), 'utf8'), 'x'.repeat(513));
    assert.equal(statSync(join(directory, 'a')).mode & 0o777, 0o750);
    assert.equal(statSync(join(directory, 'a/b')).mode & 0o777, 0o640);
    assert.equal(statSync(join(directory, 'empty')).size, 0);
  });
});

test('an entry name that ustar cannot hold is refused', () => {
  const path = 'n'.repeat(101);
  assert.throws(
    () => tarArchive([{ type: 'file', path, mode: 0o644, content: '' }]),
    /longer than 100 bytes/,
  );
});

interface Index {
  manifests: { digest: string; size: number; annotations: Record<string, string> }[];
}

test('the layout names every image, and every blob lies under its own digest', async () => {
  const archive = ociArchive(demoImageDefinitions(Buffer.from('busybox'), ['sh', 'ls'], 'x64'), 'amd64');
  await unpacked(archive, (directory) => {
    const index = JSON.parse(readFileSync(join(directory, 'index.json'), 'utf8')) as Index;
    const names = index.manifests.map(({ annotations }) => annotations['io.containerd.image.name']);
    assert.deepEqual(names, Object.values(demoImages));
    const blobs = readdirSync(join(directory, 'blobs/sha256'));
    for (const name of blobs) {
      const content = readFileSync(join(directory, 'blobs/sha256', name));
      assert.equal(createHash('sha256').update(content).digest('hex'), name);
    }
    for (const { digest, size } of index.manifests) {
      assert.equal(statSync(join(directory, 'blobs/sha256', digest.slice(7))).size, size);
    }
    // Three layers in all (pause, base, web page), five configurations, five manifests: equal layers are one blob.
    assert.equal(blobs.length, 13);
  });
});

test('the same input gives the same bytes, so digests do not change from machine to machine', () => {
  const make = (): Buffer => ociArchive(demoImageDefinitions(Buffer.from('b'), ['sh'], 'arm64'), 'arm64');
  assert.ok(make().equals(make()));
  const [manifest] = (/sha256:[0-9a-f]{64}/.exec(make().toString('latin1')) ?? []) as string[];
  assert.ok(manifest !== undefined);
});
