import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Container, PodSpec } from '../../kubernetes/types.ts';
import type { NodeResourceSettings } from './linux-resources.ts';
import { gibi, mebi, node, resourcesOf } from './translation-fixtures.ts';

suite('container resources', () => {
  test('a limit without a request counts for both, a request of zero stays', () => {
    assert.equal(resourcesOf({ limits: { cpu: '1' } }).cpuShares, 1024n);
    assert.equal(resourcesOf({ limits: { cpu: '1' }, requests: { cpu: '0' } }).cpuShares, 2n);
  });

  test('pod-level limits bound a container without its own', () => {
    const spec = { resources: { limits: { cpu: '2', memory: '1Gi' } } };
    const bounded = resourcesOf(undefined, { spec });
    assert.deepEqual([bounded.cpuQuota, bounded.memoryLimitInBytes], [200_000n, BigInt(gibi)]);
    assert.equal(resourcesOf({ limits: { cpu: '1' } }, { spec }).cpuQuota, 100_000n);
  });

  test('no quota when it is off or the CPUs are exclusive', () => {
    const limits = { limits: { cpu: '1' } };
    const off = resourcesOf(limits, {
      resources: { ...node, cpuQuota: { enabled: false, periodUs: 100_000 } },
    });
    assert.deepEqual([off.cpuQuota, off.cpuPeriod, off.cpuShares], [0n, 0n, 1024n]);
    const pinned = resourcesOf(limits, { assignment: { cpus: '2-3', mems: '0', exclusive: true } });
    assert.deepEqual([pinned.cpuQuota, pinned.cpusetCpus, pinned.cpusetMems], [0n, '2-3', '0']);
    const short = resourcesOf(limits, {
      resources: { ...node, cpuQuota: { enabled: true, periodUs: 10_000 } },
    });
    assert.deepEqual([short.cpuQuota, short.cpuPeriod], [10_000n, 10_000n]);
  });

  test('the OOM score', () => {
    assert.equal(resourcesOf(undefined).oomScoreAdj, 1000n);
    assert.equal(resourcesOf({ requests: { memory: '1Gi' } }).oomScoreAdj, 875n);
    const both = { cpu: '1', memory: '1Gi' };
    assert.equal(resourcesOf({ requests: both, limits: both }).oomScoreAdj, -997n);
  });

  test('swap and OOM group on cgroup v2', () => {
    assert.deepEqual(resourcesOf(undefined).unified, { 'memory.oom.group': '1', 'memory.swap.max': '0' });
    const bare = { ...node, singleProcessOomKill: true, swap: { ...node.swap, controllerAvailable: false } };
    assert.deepEqual(resourcesOf(undefined, { resources: bare }).unified, {});
    assert.equal(resourcesOf({ limits: { memory: '64Mi' } }).memorySwapLimitInBytes, 0n);
  });

  test('limited swap follows the memory request of Burstable containers', () => {
    const resources: NodeResourceSettings = {
      ...node,
      swap: { controllerAvailable: true, behavior: 'LimitedSwap', totalBytes: 4 * gibi },
    };
    const swap = (own: Container['resources'], spec: Partial<PodSpec> = {}) =>
      resourcesOf(own, { resources, spec }).unified['memory.swap.max'];
    assert.equal(swap({ requests: { memory: '2Gi' } }), String(gibi));
    assert.equal(swap({ requests: { memory: '2Gi' } }, { priority: 2_000_000_000 }), '0');
    assert.equal(swap({ requests: { memory: '2Gi' }, limits: { memory: '2Gi' } }), '0');
    assert.equal(swap({ requests: { cpu: '1' } }), '0');
    assert.equal(swap(undefined), '0');
  });

  test('cgroup v1 has no unified keys, and no swap beside memory', () => {
    const resources: NodeResourceSettings = { ...node, cgroupVersion: 1 };
    const limited = resourcesOf({ limits: { memory: '64Mi' } }, { resources });
    assert.deepEqual(limited.unified, {});
    assert.equal(limited.memorySwapLimitInBytes, BigInt(64 * mebi));
    const unaccounted = { ...resources, swap: { ...node.swap, controllerAvailable: false } };
    assert.equal(
      resourcesOf({ limits: { memory: '64Mi' } }, { resources: unaccounted }).memorySwapLimitInBytes,
      0n,
    );
  });

  test('huge pages: every size of the node, zero where not asked', () => {
    const resources = { ...node, hugePageSizes: [2 * mebi, gibi] };
    assert.deepEqual(resourcesOf({ limits: { 'hugepages-2Mi': '4Mi' } }, { resources }).hugepageLimits, [
      { pageSize: '2MB', limit: BigInt(4 * mebi) },
      { pageSize: '1GB', limit: 0n },
    ]);
  });

  test('MemoryQoS', () => {
    const memoryQos = {
      throttlingFactor: 0.9,
      reservation: 'TieredReservation',
      nodeAllocatableBytes: 4 * gibi,
      pageSizeBytes: 4096,
    } as const;
    const unified = (
      own: Container['resources'],
      settings: NodeResourceSettings['memoryQos'] = memoryQos,
    ) => {
      const {
        'memory.oom.group': _group,
        'memory.swap.max': _swap,
        ...rest
      } = resourcesOf(own, { resources: { ...node, memoryQos: settings } }).unified;
      return rest;
    };
    const high = (request: number, bound: number) =>
      String(Math.floor((request + (bound - request) * 0.9) / 4096) * 4096);
    assert.deepEqual(unified({ requests: { memory: '1Gi' }, limits: { memory: '2Gi' } }), {
      'memory.low': String(gibi),
      'memory.high': high(gibi, 2 * gibi),
    });
    assert.deepEqual(unified(undefined), { 'memory.high': high(0, 4 * gibi) });
    const both = { cpu: '1', memory: '1Gi' };
    assert.deepEqual(unified({ requests: both, limits: both }), { 'memory.min': String(gibi) });
    assert.deepEqual(unified({ requests: both, limits: both }, { ...memoryQos, reservation: 'None' }), {});
  });
});
