import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { enclosingMount, isAtOrBelow, parseMountInfo } from './mount-table.ts';

const table = [
  '21 26 0:20 / /proc rw,relatime - proc proc rw',
  '26 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard',
  '40 26 0:33 /sub /mnt/with\\040space\\134back rw shared:2 master:1 - tmpfs tmp\\011fs rw,size=4k,mode=755',
  'not a line',
  '41 26 0:34 / /mnt/withother rw - ceph',
].join('\n');

describe('the mount table', () => {
  it('reads tags, escapes and options, and leaves out lines it does not understand', () => {
    const mounts = parseMountInfo(table);
    assert.deepEqual(
      mounts.map((mount) => mount.mountPoint),
      ['/proc', '/', '/mnt/with space\\back'],
    );
    assert.deepEqual(mounts[2], {
      id: 40,
      parentId: 26,
      device: '0:33',
      root: '/sub',
      mountPoint: '/mnt/with space\\back',
      options: ['rw'],
      tags: ['shared:2', 'master:1'],
      type: 'tmpfs',
      source: 'tmp\tfs',
      superOptions: ['rw', 'size=4k', 'mode=755'],
    });
  });

  it('tells what lies below a directory by whole path elements', () => {
    assert.equal(isAtOrBelow('/mnt/a', '/mnt'), true);
    assert.equal(isAtOrBelow('/mnt', '/mnt'), true);
    assert.equal(isAtOrBelow('/mnta', '/mnt'), false);
    assert.equal(isAtOrBelow('/anything', '/'), true);
  });
});

describe('the mount around a path', () => {
  it('is the nearest, and the uppermost of those on one place', () => {
    const line = (id: number, at: string) => `${id} 1 0:1 / ${at} rw - tmpfs t${id} rw`;
    const mounts = parseMountInfo(
      [line(1, '/'), line(2, '/a'), line(3, '/a/b'), line(4, '/a'), line(5, '/ab')].join('\n'),
    );
    for (const [path, id] of [
      ['/', 1],
      ['/a', 4],
      ['/a/x', 4],
      ['/a/b/c', 3],
      ['/abc', 1],
    ] as const) {
      assert.equal(enclosingMount(mounts, path)?.id, id, path);
    }
  });
});
