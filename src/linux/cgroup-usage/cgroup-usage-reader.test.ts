import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import { CgroupUsageReader } from './cgroup-usage-reader.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cgroup-usage-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function plant(files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
}

describe('the usage of a cgroup of v2', () => {
  const reader = () =>
    new CgroupUsageReader({ mode: 'v2', unified: root, trees: new Map() }, new VirtualClock(5000));

  it('is told in nanoseconds and bytes, with limits that are set', () => {
    plant({
      'pod/cpu.stat':
        'usage_usec 7\nuser_usec 4\nsystem_usec 3\nnr_periods 2\nnr_throttled 1\nthrottled_usec 9\n',
      'pod/memory.current': '1000\n',
      'pod/memory.stat': 'anon 300\nfile 600\ninactive_file 400\npgfault 5\npgmajfault 1\n',
      'pod/memory.max': 'max\n',
      'pod/pids.max': '12\n',
      'pod/cpu.max': 'max 100000\n',
      'pod/cpu.weight': '1\n',
      'pod/io.stat': '8:0 rbytes=10 wbytes=20 rios=1 wios=2\n',
      'pod/cgroup.procs': '41\n42\n',
    });
    const usage = reader().read('/pod', 'all');
    assert.equal(usage?.at, 5000);
    assert.deepEqual(usage.cpu, {
      totalNs: 7000,
      userNs: 4000,
      systemNs: 3000,
      periods: 2,
      throttledPeriods: 1,
      throttledNs: 9000,
    });
    assert.equal(usage.memory?.workingSet, 600);
    assert.deepEqual(usage.limits, { tasks: 12, cpuShares: 2, cpuPeriod: 100_000 });
    assert.deepEqual(usage.devices, [
      { major: 8, minor: 0, readBytes: 10, writeBytes: 20, reads: 1, writes: 2 },
    ]);
    assert.deepEqual(usage.processes, { count: 2, first: 41 });
    assert.equal(reader().firstProcess('/pod'), 41);
  });

  it('is absent for a cgroup that is gone', () => {
    assert.equal(reader().read('/gone', 'all'), undefined);
    assert.equal(reader().firstProcess('/gone'), undefined);
    assert.equal(reader().createdAt('/gone'), undefined);
  });
});

describe('the usage of a cgroup of v1', () => {
  const reader = () => {
    const names = ['cpuacct', 'cpu', 'memory', 'pids', 'blkio'];
    const trees = new Map(names.map((name) => [name, join(root, name)]));
    return new CgroupUsageReader({ mode: 'v1', trees }, new VirtualClock());
  };

  it('comes from the tree of each controller', () => {
    plant({
      'cpuacct/pod/cpuacct.usage': '7000\n',
      'memory/pod/memory.usage_in_bytes': '1000\n',
      'memory/pod/memory.stat':
        'rss 1\ntotal_rss 300\ntotal_inactive_file 400\nhierarchical_memsw_limit 900\n',
      'memory/pod/memory.limit_in_bytes': '600\n',
      'memory/pod/memory.soft_limit_in_bytes': '9223372036854771712\n',
      'cpu/pod/cpu.shares': '512\n',
      'cpu/pod/cpu.cfs_quota_us': '-1\n',
      'pids/pod/pids.current': '3\n',
      'blkio/pod/blkio.throttle.io_service_bytes_recursive': '8:0 Read 10\n8:0 Write 20\nTotal 30\n',
    });
    const usage = reader().read('/pod', 'all');
    assert.deepEqual(usage?.cpu, { totalNs: 7000 });
    assert.equal(usage.memory?.workingSet, 600);
    assert.equal(usage.memory.rss, 300);
    assert.equal(usage.tasks, 3);
    assert.deepEqual(usage.limits, { memory: 600, swap: 300, cpuShares: 512 });
    assert.deepEqual(usage.devices, [
      { major: 8, minor: 0, readBytes: 10, writeBytes: 20, reads: 0, writes: 0 },
    ]);
  });

  it('spares what only details tell of', () => {
    plant({ 'cpuacct/pod/cpuacct.usage': '7000\n', 'cpu/pod/cpu.shares': '512\n' });
    const usage = reader().read('/pod', 'core');
    assert.deepEqual([usage?.limits, usage?.devices, usage?.memory], [{}, [], undefined]);
  });
});
