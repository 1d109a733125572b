import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MachineFacts } from './node-facts.ts';
import { preflightProblems } from './preflight.ts';

const machine: MachineFacts = {
  hostname: 'node',
  cpus: 2,
  onlineCpus: '0-1',
  memory: 2 ** 31,
  pageSize: 4096,
  swaps: [],
  hugePages: [],
  maxProcesses: 1000,
  cgroupVersion: 2,
  swapAccounting: true,
  addresses: [],
  kernelRelease: '6.1.0',
  appArmor: false,
  selinux: false,
};
const strict = { failOnSwap: true, failOnCgroupV1: true, reservedCpus: undefined };
const swap = { path: '/dev/sda2', type: 'partition', size: 1024, used: 0, priority: -2 };

describe('preflightProblems', () => {
  it('finds nothing on a machine that fits', () => {
    assert.deepEqual(preflightProblems(machine, strict, 0), []);
  });

  it('names swap, cgroup v1 and a missing root with their remedies, all at once', () => {
    const odd: MachineFacts = { ...machine, cgroupVersion: 1, swaps: [swap] };
    const problems = preflightProblems(odd, strict, 1000).join('\n');
    assert.match(problems, /must run as root/);
    assert.match(problems, /failCgroupV1: false/);
    assert.match(problems, /\/dev\/sda2.*swapoff -a/);
  });

  it('names reserved CPUs that the machine does not have', () => {
    assert.deepEqual(preflightProblems(machine, { ...strict, reservedCpus: [0, 1] }, 0), []);
    const [problem, ...others] = preflightProblems(machine, { ...strict, reservedCpus: [1, 2, 7] }, 0);
    assert.match(problem ?? '', /CPU 2, 7, but this machine has only 0-1/);
    assert.deepEqual(others, []);
  });

  it('accepts what the configuration allows', () => {
    const odd: MachineFacts = { ...machine, cgroupVersion: 1, swaps: [swap] };
    assert.deepEqual(preflightProblems(odd, { ...strict, failOnSwap: false, failOnCgroupV1: false }, 0), []);
  });
});
