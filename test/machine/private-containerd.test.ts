/** The private containerd for real: it runs a pod, is adopted, survives a crash, and leaves nothing behind. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { after, before, test } from 'node:test';
import { runCommand } from '../../scripts/machine/command.ts';
import { listSandboxes } from '../../scripts/machine/cri-calls.ts';
import { demoImages, importDemoImages } from '../../scripts/machine/demo-images.ts';
import { createOwnCgroup, removeOwnCgroup } from '../../scripts/machine/own-cgroup.ts';
import {
  type PrivateContainerd,
  startPrivateContainerd,
  stopPrivateContainerd,
} from '../../scripts/machine/private-containerd.ts';
import { readProcess, waitUntilGone } from '../../scripts/machine/teardown.ts';
import { startBarePod } from './bare-pod.ts';
import { leftovers, type MachineState, readMachineState } from './leftovers.ts';

const marker = `KUBELET_TS_CHECK=${process.env.KUBELET_TS_CHECK ?? 'none'}`;
let directory = '';
let cgroup = '';
let untouched: MachineState;

before(async () => {
  untouched = await readMachineState(marker);
  directory = mkdtempSync('/var/tmp/kubelet-ts-private-');
  cgroup = basename(directory);
});

after(async () => {
  await stopPrivateContainerd(directory, { data: true });
  await removeOwnCgroup(cgroup);
  rmSync(directory, { recursive: true, force: true });
});

async function start(): Promise<PrivateContainerd> {
  const containerd = await startPrivateContainerd({ directory });
  const { endpoint, snapshotter } = containerd;
  await importDemoImages({ endpoint, directory, snapshotter });
  return containerd;
}

async function crash(containerd: PrivateContainerd): Promise<void> {
  const entry = readProcess(containerd.pid);
  assert.ok(entry !== undefined);
  process.kill(containerd.pid, 'SIGKILL');
  assert.ok(await waitUntilGone([entry], 5000));
}

/** Only what can be ours: other tests may use the machine at the same time. */
async function ownLeftovers(containerd: PrivateContainerd): Promise<string[]> {
  const found = leftovers(untouched, await readMachineState(marker));
  const own = [directory, cgroup, containerd.network.name, containerd.network.bridge];
  return found.filter((line) => own.some((word) => line.includes(word)));
}

test('it serves a page from a pod, is adopted, comes back after a crash with the pod, and leaves nothing', async () => {
  const first = await start();
  assert.equal(first.adopted, false);
  createOwnCgroup(cgroup);
  const pod = await startBarePod({
    endpoint: first.endpoint,
    name: 'web',
    image: demoImages.web,
    cgroupParent: `/${cgroup}/pod`,
  });
  const page = async (): Promise<string> => {
    const response = await fetch(`http://${pod.address}:8080/`, { signal: AbortSignal.timeout(10_000) });
    return await response.text();
  };
  assert.match(await page(), /Hello from a pod/);

  const again = await start();
  assert.equal(again.adopted, true);
  assert.equal(again.pid, first.pid);

  await crash(first);
  assert.match(await page(), /Hello from a pod/);
  const third = await start();
  assert.equal(third.adopted, false);
  assert.deepEqual(third.network, first.network);
  assert.deepEqual(await listSandboxes(third.endpoint), [{ id: pod.sandbox, pod: 'bare/web', ready: true }]);
  assert.match(await page(), /Hello from a pod/);

  // Stopped while its containerd is dead and a pod runs: the worst case.
  await crash(third);
  assert.notDeepEqual(await ownLeftovers(first), [], 'the check below must be able to fail');
  await stopPrivateContainerd(directory);
  await removeOwnCgroup(cgroup);
  assert.deepEqual(await ownLeftovers(first), []);
  await stopPrivateContainerd(directory);
});

test('after a stop it starts again with its images; a stop while it runs makes it forget its pods', async () => {
  const second = await start();
  assert.deepEqual(
    (await listSandboxes(second.endpoint)).filter(({ ready }) => ready),
    [],
  );
  // As after an import that was cut short: the images have their names, and nothing behind them.
  const { endpoint, snapshotter } = second;
  const ctr = (...args: string[]) =>
    runCommand('ctr', ['--address', endpoint.replace('unix://', ''), '--namespace', 'k8s.io', ...args]);
  const blobs = (await ctr('content', 'ls', '--quiet')).split('\n').filter(Boolean);
  await ctr('content', 'rm', ...blobs);
  const check = () =>
    ctr('images', 'check', '--quiet', '--snapshotter', snapshotter, `name==${demoImages.web}`);
  await assert.rejects(check());
  await importDemoImages({ endpoint, directory, snapshotter });
  assert.equal((await check()).trim(), demoImages.web);

  await startBarePod({ endpoint, name: 'idle', image: demoImages.busybox });
  await second.stop();
  assert.equal(readProcess(second.pid), undefined);
  const third = await start();
  assert.deepEqual(await listSandboxes(third.endpoint), []);
  await third.stop({ data: true });
  assert.deepEqual(await ownLeftovers(third), []);
});
