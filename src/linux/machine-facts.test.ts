import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { describe, it } from 'node:test';
import { hasCapability, holds, parseEffectiveCapabilities } from './capabilities.ts';
import {
  countCpuList,
  parseBootTime,
  parseMemoryInfo,
  parsePageSize,
  parseSwaps,
  readBootId,
  readCpuCount,
  readHugePages,
  readKernelVersion,
  readMaxProcesses,
  readMemoryInfo,
  readOnlineCpus,
  readPageSize,
  readSwaps,
  readUptime,
} from './procfs.ts';

describe('/proc', () => {
  it('reads meminfo in bytes', () => {
    const text = 'MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    600 kB\nSwapTotal:  0 kB\n';
    assert.deepEqual(parseMemoryInfo(text), {
      total: 1_024_000,
      free: 10_240,
      available: 614_400,
      swapTotal: 0,
      swapFree: 0,
    });
    assert.throws(() => parseMemoryInfo('MemFree: 1 kB\n'), /MemTotal/);
  });

  for (const [list, count] of [
    ['0', 1],
    ['0-3\n', 4],
    ['0-1,4,8-9', 5],
    ['\n', 0],
  ] as const) {
    it(`counts the CPUs in ${JSON.stringify(list)}`, () => assert.equal(countCpuList(list), count));
  }

  it('reads the boot time and swap areas', () => {
    assert.equal(parseBootTime('cpu 1 2\nbtime 1700000000\nprocesses 1\n'), 1_700_000_000_000);
    assert.throws(() => parseBootTime(''), /btime/);
    const heading = 'Filename\t\t\tType\t\tSize\tUsed\tPriority\n';
    assert.deepEqual(parseSwaps(heading), []);
    assert.deepEqual(parseSwaps(`${heading}/dev/sda2  partition\t2048\t1024\t-2\n`), [
      { path: '/dev/sda2', type: 'partition', size: 2_097_152, used: 1_048_576 },
    ]);
  });

  it('reads the page size, and the CPUs that are online', async () => {
    const vector = Buffer.alloc(48);
    for (const [index, value] of [33n, 1n, 6n, 65_536n, 0n, 0n].entries()) {
      vector.writeBigUInt64LE(value, index * 8);
    }
    assert.equal(parsePageSize(vector), 65_536);
    assert.throws(() => parsePageSize(vector.subarray(0, 16)), /page size/);
    assert.ok((await readPageSize()) >= 4096);
    assert.equal(countCpuList(await readOnlineCpus()), await readCpuCount());
  });

  it('agrees with Node.js about this machine', async () => {
    assert.equal((await readMemoryInfo()).total, totalmem());
    assert.ok((await readCpuCount()) >= availableParallelism());
    assert.match(await readBootId(), /^[0-9a-f-]{36}$/);
    const sinceBoot = (Date.now() - parseBootTime(readFileSync('/proc/stat', 'utf8'))) / 1000;
    assert.ok(Math.abs(sinceBoot - (await readUptime())) < 60);
    assert.ok((await readMaxProcesses()) > 100);
    assert.match(await readKernelVersion(), /^\d+\.\d+/);
    assert.ok(Array.isArray(await readSwaps()));
    for (const { pageSize } of await readHugePages()) assert.equal(pageSize % 4096, 0);
    assert.deepEqual(await readHugePages('/nowhere'), []);
  });
});

describe('capabilities', () => {
  it('are bits of the effective set', async () => {
    const mask = parseEffectiveCapabilities('CapPrm:\t0\nCapEff:\t000001fffeffffff\n');
    assert.equal(holds(mask, 'CAP_SYS_ADMIN'), true);
    assert.equal(holds(mask, 'CAP_SYS_RESOURCE'), false);
    assert.equal(parseEffectiveCapabilities(''), 0n);
    assert.equal(typeof (await hasCapability('CAP_SYS_ADMIN')), 'boolean');
  });
});
