import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadConfiguration } from '../config/load-configuration.ts';
import { resolveSettings } from '../config/settings.ts';
import { formatQuantity } from '../kubernetes/quantity.ts';
import type { MachineFacts } from './node-facts.ts';
import { nodeResources } from './node-resources.ts';

const machine: MachineFacts = {
  hostname: 'node',
  cpus: 4,
  onlineCpus: '0-3',
  memory: 8 * 2 ** 30,
  pageSize: 65_536,
  swaps: [],
  hugePages: [],
  maxProcesses: 1000,
  ephemeralStorage: 98_831_908 * 1024,
  cgroupVersion: 2,
  swapAccounting: true,
  addresses: [],
  kernelRelease: '6.1.0',
  appArmor: false,
  selinux: false,
};

function resources(...argv: string[]) {
  const none = () => {
    throw new Error('no files here');
  };
  const loaded = loadConfiguration(argv, { cwd: '/', readFile: none, readDirectory: none });
  assert.ok(loaded.ok, JSON.stringify(loaded));
  return nodeResources(machine, resolveSettings(loaded));
}
const allocatable = (...argv: string[]) =>
  Object.fromEntries(
    [...resources(...argv).allocatable].map(([name, amount]) => [name, formatQuantity(amount)]),
  );

describe('the resources of a node', () => {
  it('are less the thresholds of hard eviction, to the byte as a kubelet counts them', () => {
    const byDefault = allocatable();
    assert.equal(byDefault['memory'], '8092Mi');
    assert.equal(byDefault['ephemeral-storage'], '91083486262');
    const set = allocatable('--eviction-hard=memory.available<1Gi,nodefs.available<0%');
    assert.equal(set['memory'], '7Gi');
    assert.equal(set['ephemeral-storage'], '98831908Ki');
    assert.equal(allocatable('--experimental-allocatable-ignore-eviction')['memory'], '8Gi');
  });

  it('are less the CPUs that are reserved by name, whatever the reservations say of CPU', () => {
    assert.equal(allocatable('--kube-reserved=cpu=500m')['cpu'], '3500m');
    assert.equal(allocatable('--kube-reserved=cpu=500m', '--reserved-cpus=0,2-3')['cpu'], '1');
  });

  it('tell containers how memory is throttled, once MemoryQoS is on', () => {
    assert.equal(resources().forContainers.memoryQos, undefined);
    const { memoryQos } = resources('--feature-gates=MemoryQoS=true').forContainers;
    assert.deepEqual(memoryQos, {
      throttlingFactor: 0.9,
      reservation: 'None',
      nodeAllocatableBytes: 8092 * 2 ** 20,
      pageSizeBytes: 65_536,
    });
  });
});
