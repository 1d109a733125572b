import assert from 'node:assert/strict';
import { it } from 'node:test';
import { imageVolumesMissing } from './image-volume-support.ts';

for (const [name, version, mounts] of [
  ['containerd', '1.6.20~ds1', false],
  ['containerd', 'v1.7.24', false],
  ['containerd', '2.0.3', false],
  ['containerd', '2.1.9', true],
  ['containerd', 'v3.0.0', true],
  ['containerd', 'unknown', true],
  ['cri-o', '1.30.9', false],
  ['cri-o', '1.31.0', true],
  ['docker', '27.1.0', false],
  ['another', '0.1.0', true],
] as const) {
  it(`${name} ${version} ${mounts ? 'mounts images' : 'is refused with what it takes'}`, () => {
    const missing = imageVolumesMissing({ name, version });
    assert.equal(missing === undefined, mounts);
    if (missing !== undefined) assert.match(missing, new RegExp(`^${name} ${version} cannot .* CRI-O 1.31`));
  });
}
