import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadOrder } from './initramfs.ts';

const dependencies = `kernel/virtio_pci.ko: kernel/modern.ko kernel/virtio.ko kernel/ring.ko
kernel/ring.ko:
kernel/virtio.ko: kernel/ring.ko
kernel/virtio_blk.ko.xz: kernel/virtio.ko kernel/ring.ko
`;

test('modules are loaded once, each after what it depends on', () => {
  assert.deepEqual(loadOrder(dependencies, ['virtio_pci', 'virtio_blk']), [
    'kernel/ring.ko',
    'kernel/virtio.ko',
    'kernel/modern.ko',
    'kernel/virtio_pci.ko',
    'kernel/virtio_blk.ko.xz',
  ]);
});

test('a module without dependencies is loaded alone, one that is built in not at all', () => {
  assert.deepEqual(loadOrder(dependencies, ['ring', 'ext4']), ['kernel/ring.ko']);
});
