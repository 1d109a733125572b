import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { amountsOf } from '../kubernetes/pod-resources.ts';
import type { PodSpec } from '../kubernetes/types.ts';
import { cgroupSettings, sharesOfWeight, sliceProperties, weightOf } from './cgroup-values.ts';
import {
  kubepodsCgroupValues,
  podCgroupValues,
  protectedMemory,
  qosCgroupValues,
} from './pod-cgroup-values.ts';

const options = { cpuCfsQuota: true, cpuPeriod: 100_000, podPidsLimit: -1, hugePageSizes: [2 ** 21] };

const container = (name: string, requests?: Record<string, string>, limits?: Record<string, string>) => ({
  name,
  resources: { ...(requests ? { requests } : {}), ...(limits ? { limits } : {}) },
});
const spec = (...containers: PodSpec['containers']): PodSpec => ({ containers });
const settings = (of: PodSpec, version: 1 | 2, more = {}) =>
  Object.fromEntries(
    cgroupSettings(version, podCgroupValues(of, { ...options, ...more })).map(({ file, value }) => [
      file,
      value,
    ]),
  );

describe('conversions', () => {
  it('weights stay in range, rise with shares, and come back close', () => {
    assert.equal(weightOf(2), 1);
    assert.equal(weightOf(1024), 39);
    assert.equal(weightOf(262_144), 10_000);
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 262_144 }), (shares) => {
        const weight = weightOf(shares);
        assert.ok(weight >= 1 && weight <= 10_000);
        assert.ok(Math.abs(sharesOfWeight(weight) - shares) <= 27);
        assert.equal(weightOf(Math.min(shares + 27, 262_144)) >= weight, true);
      }),
    );
  });
});

describe('the cgroup of a pod', () => {
  it('BestEffort: least share, nothing else', () => {
    assert.deepEqual(settings(spec(container('a')), 1), {
      'cpu.shares': '2',
      'hugetlb.2MB.limit_in_bytes': '0',
    });
    assert.deepEqual(settings(spec(container('a')), 2), { 'cpu.weight': '1', 'hugetlb.2MB.max': '0' });
  });

  it('Guaranteed: share, quota and memory limit', () => {
    const guaranteed = spec(
      container('a', { cpu: '500m', memory: '64Mi' }, { cpu: '500m', memory: '64Mi' }),
      container('b', { cpu: '1', memory: '1Gi' }, { cpu: '1', memory: '1Gi' }),
    );
    const memory = String((1024 + 64) * 2 ** 20);
    assert.deepEqual(settings(guaranteed, 1, { podPidsLimit: 100 }), {
      'cpu.shares': '1536',
      'cpu.cfs_period_us': '100000',
      'cpu.cfs_quota_us': '150000',
      'memory.limit_in_bytes': memory,
      'pids.max': '100',
      'hugetlb.2MB.limit_in_bytes': '0',
    });
    assert.deepEqual(settings(guaranteed, 2, { podPidsLimit: 100 }), {
      'cpu.weight': String(weightOf(1536)),
      'cpu.max': '150000 100000',
      'memory.max': memory,
      'pids.max': '100',
      'hugetlb.2MB.max': '0',
    });
  });

  it('Burstable: limits only when every container has them', () => {
    const partly = spec(container('a', { cpu: '100m' }, { cpu: '200m', memory: '32Mi' }), container('b'));
    assert.deepEqual(Object.keys(settings(partly, 1)), ['cpu.shares', 'hugetlb.2MB.limit_in_bytes']);
    const wholly = spec(
      container('a', { cpu: '100m' }, { cpu: '200m', memory: '32Mi' }),
      container('b', {}, { cpu: '300m', memory: '32Mi' }),
    );
    assert.deepEqual(settings(wholly, 1), {
      'cpu.shares': String(Math.floor((400 * 1024) / 1000)),
      'cpu.cfs_period_us': '100000',
      'cpu.cfs_quota_us': '50000',
      'memory.limit_in_bytes': String(2 ** 26),
      'hugetlb.2MB.limit_in_bytes': '0',
    });
  });

  it('counts overhead, huge pages and pod-level limits', () => {
    const pod: PodSpec = {
      ...spec(container('a', {}, { 'hugepages-2Mi': '4Mi', memory: '8Mi', cpu: '1' })),
      overhead: { memory: '2Mi', cpu: '250m' },
    };
    const values = podCgroupValues(pod, options);
    assert.equal(values.memoryLimit, 10 * 2 ** 20);
    assert.equal(values.cpuQuota, 125_000);
    assert.deepEqual([...values.hugePages!], [[2 ** 21, 2 ** 22]]);
    const podLevel = podCgroupValues(
      { ...spec(container('a')), resources: { limits: { memory: '1Gi', cpu: '2' } } },
      options,
    );
    assert.equal(podLevel.memoryLimit, 2 ** 30);
    assert.equal(podLevel.cpuShares, 2048);
  });

  it('has no quota where quotas are off', () => {
    const pod = spec(container('a', {}, { cpu: '1', memory: '1Gi' }));
    assert.equal(settings(pod, 1, { cpuCfsQuota: false })['cpu.cfs_quota_us'], '-1');
    assert.equal(settings(pod, 2, { cpuCfsQuota: false })['cpu.max'], 'max 100000');
  });
});

describe('the cgroups above the pods', () => {
  it('Burstable gets the sum of its pods, BestEffort the least share', () => {
    const pods = [
      { spec: spec(container('a', { cpu: '500m' })) },
      { spec: spec(container('a', { memory: '1Gi' })) },
      { spec: spec(container('a', {}, { cpu: '4', memory: '1Gi' })) },
      { spec: spec(container('a')) },
    ] as Parameters<typeof qosCgroupValues>[0];
    const values = qosCgroupValues(pods, [2 ** 21]);
    assert.equal(values.Burstable.cpuShares, 512);
    assert.equal(values.BestEffort.cpuShares, 2);
    assert.ok(values.Burstable.hugePages!.get(2 ** 21)! >= 2 ** 62);
    assert.equal(qosCgroupValues([], []).Burstable.cpuShares, 2);
  });

  it('all pods get what the node leaves for them, or only the share when not enforced', () => {
    const share = amountsOf({ cpu: '1500m', memory: '1Gi', pods: '110', 'hugepages-2Mi': '4Mi' });
    assert.deepEqual(
      kubepodsCgroupValues(share, { enforced: true, pidsMax: 1000, hugePageSizes: [2 ** 21, 2 ** 30] }),
      {
        cpuShares: 1536,
        memoryLimit: 2 ** 30,
        pidsMax: 1000,
        hugePages: new Map([
          [2 ** 21, 2 ** 22],
          [2 ** 30, 0],
        ]),
      },
    );
    assert.deepEqual(kubepodsCgroupValues(share, { enforced: false, hugePageSizes: [] }), {
      cpuShares: 1536,
    });
  });
});

describe('slice properties', () => {
  it('say the same in systemd terms', () => {
    const values = { cpuShares: 1024, cpuQuota: 12_345, cpuPeriod: 100_000, memoryLimit: 4096, pidsMax: 5 };
    const plain = (version: 1 | 2, of: Parameters<typeof sliceProperties>[1]) =>
      Object.fromEntries(sliceProperties(version, of).map(({ name, value }) => [name, value]));
    assert.deepEqual(plain(1, values), {
      CPUShares: 1024,
      CPUQuotaPerSecUSec: 130_000,
      MemoryLimit: 4096,
      TasksMax: 5,
    });
    assert.deepEqual(plain(2, { ...values, cpuQuota: 'unlimited' }), {
      CPUWeight: 39,
      CPUQuotaPerSecUSec: 'infinity',
      MemoryMax: 4096,
      TasksMax: 5,
    });
  });
});

describe('memory that is kept for pods', () => {
  const guaranteed = spec(container('a', undefined, { cpu: '1', memory: '64Mi' }));
  const burstable = spec(container('a', { memory: '16Mi' }), container('b', { cpu: '1' }));
  const bestEffort = spec(container('a'));
  const kept = (of: PodSpec, protectMemory = true) => {
    const { 'memory.min': min, 'memory.low': low } = settings(of, 2, { protectMemory });
    return { min, low };
  };

  it('is the request, by tier, and only where it is asked for', () => {
    assert.deepEqual(kept(guaranteed), { min: String(2 ** 26), low: undefined });
    assert.deepEqual(kept(burstable), { min: undefined, low: String(2 ** 24) });
    assert.deepEqual(kept(bestEffort), { min: undefined, low: undefined });
    assert.deepEqual(kept(guaranteed, false), { min: undefined, low: undefined });
    assert.equal(settings(guaranteed, 1, { protectMemory: true })['memory.min'], undefined);
  });

  it('adds up over all pods, and is nothing when nobody asks', () => {
    const pods = [guaranteed, guaranteed, burstable, bestEffort].map((each) => ({ spec: each }));
    assert.deepEqual(protectedMemory(pods, true), { memoryMin: 2 ** 27, memoryLow: 2 ** 24 });
    assert.deepEqual(protectedMemory(pods, false), { memoryMin: 0, memoryLow: 0 });
  });

  it('is told to systemd as well', () => {
    assert.deepEqual(sliceProperties(2, { memoryMin: 5, memoryLow: 0 }), [
      { name: 'MemoryMin', type: 't', value: 5 },
      { name: 'MemoryLow', type: 't', value: 0 },
    ]);
    assert.deepEqual(sliceProperties(1, { memoryMin: 5, memoryLow: 0 }), []);
  });
});
