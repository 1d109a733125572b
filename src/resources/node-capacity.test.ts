import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ResourceAmounts } from '../kubernetes/pod-resources.ts';
import { formatQuantity } from '../kubernetes/quantity.ts';
import { nodeAllocatable, nodeCapacity, podsPidsMax, podsShare } from './node-capacity.ts';

const facts = {
  cpus: 4,
  memory: 8 * 2 ** 30,
  ephemeralStorage: 100 * 2 ** 30,
  hugePages: [
    { pageSize: 2 ** 21, pages: 512 },
    { pageSize: 2 ** 30, pages: 0 },
  ],
};
const text = (amounts: ResourceAmounts) =>
  Object.fromEntries([...amounts].map(([name, amount]) => [name, formatQuantity(amount)]));

describe('node capacity', () => {
  it('lists every resource of the machine', () => {
    assert.deepEqual(text(nodeCapacity(facts, { maxPods: 110 })), {
      cpu: '4',
      memory: '8Gi',
      pods: '110',
      'ephemeral-storage': '100Gi',
      'hugepages-2Mi': '1Gi',
      'hugepages-1Gi': '0',
    });
  });

  it('takes the lower of maxPods and podsPerCore', () => {
    const pods = (maxPods: number, podsPerCore: number) =>
      formatQuantity(nodeCapacity(facts, { maxPods, podsPerCore }).get('pods')!);
    assert.equal(pods(110, 10), '40');
    assert.equal(pods(30, 10), '30');
    assert.equal(pods(110, 0), '110');
  });

  it('leaves ephemeral storage out where it is not counted', () => {
    const { ephemeralStorage: _, ...without } = facts;
    assert.equal(nodeCapacity(without, { maxPods: 1 }).has('ephemeral-storage'), false);
  });
});

describe('node allocatable', () => {
  const capacity = nodeCapacity(facts, { maxPods: 110 });
  const reservation = {
    kubeReserved: { cpu: '500m', memory: '512Mi', pid: '100' },
    systemReserved: { memory: '256Mi', 'ephemeral-storage': '1Gi' },
    evictionHard: { 'memory.available': '256Mi', 'nodefs.available': '10%' },
  };

  it('is capacity less reservations, hard eviction and huge pages', () => {
    assert.deepEqual(text(nodeAllocatable(capacity, reservation)), {
      cpu: '3500m',
      memory: '6Gi',
      pods: '110',
      'ephemeral-storage': String(99 * 2 ** 30 - 10_737_418_400),
      'hugepages-2Mi': '1Gi',
      'hugepages-1Gi': '0',
    });
  });

  it('the cgroup of all pods keeps the eviction threshold', () => {
    assert.equal(text(podsShare(capacity, reservation))['memory'], '7424Mi');
  });

  it('reserved CPUs replace the CPU of both reservations', () => {
    assert.equal(text(nodeAllocatable(capacity, { ...reservation, reservedSystemCpus: 1 }))['cpu'], '3');
  });

  it('takes reserved process ids off', () => {
    assert.equal(podsPidsMax(32_768, reservation), 32_668);
    assert.equal(podsPidsMax(50, reservation), 0);
    assert.equal(podsPidsMax(50, {}), 50);
  });

  it('is never negative and never above capacity', () => {
    const amount = fc.oneof(
      fc.nat({ max: 200 }).map((gibi) => `${gibi}Gi`),
      fc.nat({ max: 99 }).map((p) => `${p}%`),
    );
    fc.assert(
      fc.property(amount, fc.nat({ max: 9000 }), (threshold, milli) => {
        const result = nodeAllocatable(capacity, {
          kubeReserved: { cpu: `${milli}m`, memory: `${milli}Mi` },
          evictionHard: { 'memory.available': threshold, 'nodefs.available': threshold },
        });
        for (const [name, left] of result) {
          assert.ok(left.nano >= 0n);
          assert.ok(left.nano <= capacity.get(name)!.nano);
        }
      }),
    );
  });
});
