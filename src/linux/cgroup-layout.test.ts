import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { detectCgroups, NoCgroupsError } from './cgroup-layout.ts';
import { parseMountInfo } from './mount-table.ts';

const procCgroups = `#subsys_name\thierarchy\tnum_cgroups\tenabled
cpuset\t3\t1\t1
cpu\t1\t1\t1
cpuacct\t1\t1\t1
memory\t4\t16\t1
pids\t8\t1\t1
`;

const cases = [
  {
    name: 'one v2 tree',
    mounts: ['30 22 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate'],
    expected: { mode: 'v2', unified: '/sys/fs/cgroup', trees: [] },
  },
  {
    name: 'v1 trees, two controllers in one, and a named hierarchy',
    mounts: [
      '30 22 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755',
      '31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct',
      '32 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
      '33 30 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/x,name=systemd',
    ],
    expected: {
      mode: 'v1',
      trees: [
        ['cpu', '/sys/fs/cgroup/cpu,cpuacct'],
        ['cpuacct', '/sys/fs/cgroup/cpu,cpuacct'],
        ['memory', '/sys/fs/cgroup/memory'],
        ['name=systemd', '/sys/fs/cgroup/systemd'],
      ],
    },
  },
  {
    name: 'v1 with a v2 tree beside it, and a bind mount of one container',
    mounts: [
      '32 30 0:29 /docker/abc /mnt/elsewhere rw - cgroup cgroup rw,memory',
      '33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
      '40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw',
    ],
    expected: {
      mode: 'hybrid',
      unified: '/sys/fs/cgroup/unified',
      trees: [['memory', '/sys/fs/cgroup/memory']],
    },
  },
  {
    name: 'v2 with only a named v1 hierarchy',
    mounts: [
      '31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw',
      '33 30 0:30 / /mnt/systemd rw - cgroup cgroup rw,name=systemd',
    ],
    expected: { mode: 'v2', unified: '/sys/fs/cgroup', trees: [] },
  },
];

describe('the cgroup layout', () => {
  for (const { name, mounts, expected } of cases) {
    it(`is found: ${name}`, () => {
      const layout = detectCgroups(parseMountInfo(mounts.join('\n')), procCgroups);
      assert.deepEqual({ ...layout, trees: [...layout.trees] }, expected);
    });
  }

  it('is an error when there is none', () => {
    assert.throws(() => detectCgroups([], procCgroups), NoCgroupsError);
  });
});
