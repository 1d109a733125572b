import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { diskFiles } from './disk-files.ts';
import { loadConfiguration } from './load-configuration.ts';

test('reads files and drop-ins from the disk, refuses what is no text', () => {
  const cwd = mkdtempSync(path.join(tmpdir(), 'configuration-'));
  try {
    const head = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
    writeFileSync(path.join(cwd, 'k.yaml'), `${head}maxPods: 7\n`);
    mkdirSync(path.join(cwd, 'd/sub'), { recursive: true });
    writeFileSync(path.join(cwd, 'd/sub/a.conf'), `${head}port: 1234\n`);
    symlinkSync('../k.yaml', path.join(cwd, 'd/link.conf'));
    symlinkSync('/', path.join(cwd, 'd/elsewhere'));
    const result = loadConfiguration(['--config=k.yaml', '--config-dir=d'], { cwd, ...diskFiles });
    assert.ok(result.ok);
    assert.deepEqual([result.configuration.maxPods, result.configuration.port], [7, 1234]);

    writeFileSync(path.join(cwd, 'latin1'), Buffer.from([0x61, 0xe9]));
    assert.throws(() => diskFiles.readFile(path.join(cwd, 'latin1')), /not UTF-8/);
    assert.throws(() => diskFiles.readFile('/dev/null'), /not a regular file/);
    assert.throws(() => diskFiles.readFile(cwd), /not a regular file/);
    assert.throws(() => diskFiles.readFile(path.join(cwd, 'none')), /ENOENT/);
  } finally {
    rmSync(cwd, { recursive: true });
  }
});
