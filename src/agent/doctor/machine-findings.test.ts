import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MachineHealth, type MachineRules, machineFindings } from './machine-findings.ts';

const well: MachineHealth = {
  uid: 0,
  cgroupVersion: 2,
  controllers: ['cpuset', 'cpu', 'io', 'memory', 'hugetlb', 'pids'],
  onlineCpus: '0-3',
  swaps: [],
  disk: { path: '/var', bytes: { free: 50e9, total: 100e9 }, inodes: { free: 900, total: 1000 } },
  sysctls: {
    'net.ipv4.ip_forward': '1',
    'net.bridge.bridge-nf-call-iptables': '1',
    'net.netfilter.nf_conntrack_count': '100',
    'net.netfilter.nf_conntrack_max': '1000',
  },
};
const strict: MachineRules = { failOnSwap: true, failOnCgroupV1: true, reservedCpus: undefined };
const swap = { path: '/dev/sda2', type: 'partition', size: 1024, used: 0, priority: -2 };
const found = (odd: Partial<MachineHealth>, rules = strict) =>
  machineFindings({ ...well, ...odd }, rules).map(({ check, severity }) => `${severity} ${check}`);
const sysctls = (odd: Record<string, string>) => ({ sysctls: { ...well.sysctls, ...odd } });

test('nothing on a machine that is well, nor where the kernel lacks what is optional', () => {
  assert.deepEqual(found({}), []);
  assert.deepEqual(found({ sysctls: {}, disk: undefined }), []);
  const withoutInodes = { path: '/', bytes: { free: 50, total: 100 }, inodes: { free: 0, total: 0 } };
  assert.deepEqual(found({ disk: { ...withoutInodes, bytes: { free: 5e9, total: 9e9 } } }), []);
});

test('what stops the node, and what only troubles it', () => {
  assert.deepEqual(found({ uid: 1000 }), ['error root']);
  assert.deepEqual(found({ cgroupVersion: 1 }), ['error cgroup-version']);
  assert.deepEqual(found({ cgroupVersion: 1 }, { ...strict, failOnCgroupV1: false }), []);
  assert.deepEqual(found({ swaps: [swap] }), ['error swap']);
  assert.deepEqual(found({ swaps: [swap] }, { ...strict, failOnSwap: false }), []);
  assert.deepEqual(found({}, { ...strict, reservedCpus: [3, 4] }), ['error reserved-cpus']);
  assert.deepEqual(found({}, { ...strict, reservedCpus: [3] }), []);
  assert.deepEqual(found({ controllers: ['cpuset', 'cpu', 'pids'] }), ['error cgroup-controllers']);
  assert.deepEqual(found({ controllers: ['cpu', 'memory'] }), ['warning cgroup-controllers']);
  assert.deepEqual(found(sysctls({ 'net.ipv4.ip_forward': '0' })), ['warning ip-forward']);
  assert.deepEqual(found(sysctls({ 'net.bridge.bridge-nf-call-iptables': '0' })), [
    'warning bridge-netfilter',
  ]);
  assert.deepEqual(found(sysctls({ 'net.netfilter.nf_conntrack_count': '960' })), ['warning conntrack']);
});

test('a disk that is low, and one that is full', () => {
  const disk = (free: number, inodes = 900) => ({
    disk: { path: '/var', bytes: { free, total: 100e9 }, inodes: { free: inodes, total: 1000 } },
  });
  assert.deepEqual(found(disk(9e9)), ['warning disk']);
  assert.deepEqual(found(disk(50e9, 40)), ['warning disk']);
  assert.deepEqual(found(disk(1e6)), ['error disk']);
  assert.deepEqual(found(disk(50e9, 0)), ['error disk']);
});
