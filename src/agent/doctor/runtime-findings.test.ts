import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '../../concurrency/clock.ts';
import { answerFindings, runtimeFindings } from './runtime-findings.ts';

const node = {
  endpoint: 'unix:///run/containerd/containerd.sock',
  configuredDriver: 'cgroupfs',
  cniDirectory: '/etc/cni/net.d',
  cniConfigurations: ['10-bridge.conflist'],
};
const condition = (type: string, status: boolean) => ({ type, status, reason: 'Why', message: 'because' });
const well = [condition('RuntimeReady', true), condition('NetworkReady', true)];
const found = (
  facts: Partial<Parameters<typeof answerFindings>[0]>,
  odd: Partial<typeof node> = {},
): string[] =>
  answerFindings({ name: 'containerd', conditions: well, ...facts }, { ...node, ...odd }).map(
    ({ check, severity, problem }) => `${severity} ${check}: ${problem}`,
  );

test('what the runtime says of itself', () => {
  assert.deepEqual(found({}), []);
  assert.deepEqual(found({ cgroupDriver: 'cgroupfs' }), []);
  assert.match(
    found({ cgroupDriver: 'systemd' }).join(),
    /^warning cgroup-driver: Configured is cgroupfs, while containerd uses systemd/,
  );
  assert.match(
    found({ conditions: [condition('RuntimeReady', false)] }).join(),
    /^error runtime-ready: .*Why because/,
  );
  const noNetwork = { conditions: [condition('NetworkReady', false)] };
  assert.match(found(noNetwork).join(), /^warning cni: containerd cannot use .*10-bridge.conflist: because/);
  assert.match(
    found(noNetwork, { cniConfigurations: [] }).join(),
    /^warning cni: There is no network configuration/,
  );
});

let directory: string;
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'doctor-'));
});
after(() => rmSync(directory, { recursive: true, force: true }));

async function look(path: string): Promise<string[]> {
  const settings = {
    runtime: {
      endpoint: `unix://${path}`,
      imageEndpoint: `unix://${path}`,
      requestTimeoutMs: 1000,
      maxParallelImagePulls: 1,
      pullRate: undefined,
    },
    cgroups: { driver: 'cgroupfs' },
  };
  const signal = new AbortController().signal;
  const findings = await runtimeFindings({ settings, clock: systemClock, signal });
  return findings.map(({ check, severity }) => `${severity} ${check}`);
}

test('a socket that is missing, no socket, and one where nothing sensible answers', async () => {
  assert.deepEqual(await look(join(directory, 'none.sock')), ['error runtime-socket']);
  writeFileSync(join(directory, 'file.sock'), '');
  assert.deepEqual(await look(join(directory, 'file.sock')), ['error runtime-socket']);
  const path = join(directory, 'odd.sock');
  const server = createServer((socket) => socket.on('error', () => {}).end('hello\n')).listen(path);
  await once(server, 'listening');
  assert.deepEqual(await look(path), ['error runtime-answer']);
  server.close();
});
