import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { cpuQuota, cpuShares, hugePageSizeName } from './cgroup-amounts.ts';

suite('amounts as cgroups take them', () => {
  test('shares and quota', () => {
    const table: [number, number, number][] = [
      [0, 2, 0],
      [1, 2, 1000],
      [10, 10, 1000],
      [100, 102, 10_000],
      [1500, 1536, 150_000],
      [1_000_000, 262_144, 100_000_000],
    ];
    for (const [milli, shares, quota] of table) {
      assert.deepEqual([cpuShares(milli), cpuQuota(milli, 100_000)], [shares, quota]);
    }
  });

  test('shares and quota never leave their bounds and never fall as the request grows', () => {
    fc.assert(
      fc.property(
        fc.nat(10_000_000),
        fc.nat(1000),
        fc.integer({ min: 1000, max: 1_000_000 }),
        (milli, more, period) => {
          assert.ok(cpuShares(milli) >= 2 && cpuShares(milli) <= 262_144);
          assert.ok(cpuShares(milli + more) >= cpuShares(milli));
          assert.ok(cpuQuota(milli + more, period) >= cpuQuota(milli, period));
          assert.ok(milli === 0 || cpuQuota(milli, period) >= 1000);
        },
      ),
    );
  });

  test('huge page sizes carry the kernel names', () => {
    assert.deepEqual([65_536, 2 ** 21, 2 ** 25, 2 ** 30].map(hugePageSizeName), [
      '64KB',
      '2MB',
      '32MB',
      '1GB',
    ]);
  });
});
