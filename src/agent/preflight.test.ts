import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LogFields, silentLogger } from '../telemetry/logger.ts';
import type { MachineHealth } from './doctor/machine-findings.ts';
import { judge, PreflightError } from './preflight.ts';

const machine: MachineHealth = {
  uid: 0,
  cgroupVersion: 2,
  controllers: ['cpuset', 'cpu', 'io', 'memory', 'pids'],
  onlineCpus: '0-1',
  swaps: [],
  sysctls: {},
};
const strict = { failOnSwap: true, failOnCgroupV1: true, reservedCpus: undefined };
const swap = { path: '/dev/sda2', type: 'partition', size: 1024, used: 0, priority: -2 };

function outcome(odd: Partial<MachineHealth>): { refused: readonly string[]; warned: string[] } {
  const warned: string[] = [];
  const warn = (_message: string, fields?: LogFields) => void warned.push(String(fields?.['problem']));
  try {
    judge({ ...machine, ...odd }, strict, { ...silentLogger, warn });
    return { refused: [], warned };
  } catch (error) {
    assert.ok(error instanceof PreflightError);
    return { refused: error.problems, warned };
  }
}

test('a machine that fits is taken without a word', () => {
  assert.deepEqual(outcome({}), { refused: [], warned: [] });
});

test('everything that stops the agent is said at once, each with its remedy', () => {
  const { refused } = outcome({ cgroupVersion: 1, swaps: [swap], uid: 1000 });
  assert.equal(refused.length, 3);
  const text = refused.join('\n');
  assert.match(text, /must run as root/);
  assert.match(text, /failCgroupV1: false/);
  assert.match(text, /\/dev\/sda2.*swapoff -a/);
});

test('what only troubles the node is told, and the agent starts', () => {
  const { refused, warned } = outcome({ sysctls: { 'net.ipv4.ip_forward': '0' } });
  assert.deepEqual(refused, []);
  assert.match(warned.join(), /^net\.ipv4\.ip_forward: .*sysctl -w net\.ipv4\.ip_forward=1/);
});
