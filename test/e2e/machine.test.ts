/**
 * The ground the other tests stand on: when this fails, look at the machine and its containerd first, not at
 * the agent.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runtimeComplaints } from '../../scripts/machine/cri-calls.ts';
import { demoImages } from '../../scripts/machine/demo-images.ts';
import { cgroupHierarchies } from '../../scripts/machine/own-cgroup.ts';
import { removeBarePod, startBarePod } from '../machine/bare-pod.ts';

function fromEnvironment(name: string): string {
  const value = process.env[name];
  assert.ok(value !== undefined && value !== '', `${name} is not set; run this by scripts/end-to-end.ts`);
  return value;
}

test('the runtime is ready, and a pod in the test cgroup serves a page, with no agent involved', async () => {
  const endpoint = fromEnvironment('KUBELET_TS_TEST_CONTAINERD');
  const cgroupRoot = fromEnvironment('KUBELET_TS_TEST_CGROUP_ROOT');
  assert.ok(existsSync(fromEnvironment('KUBELET_TS_TEST_DIRECTORY')));
  assert.deepEqual(await runtimeComplaints(endpoint), []);
  for (const { mountPoint } of cgroupHierarchies(readFileSync('/proc/self/mountinfo', 'utf8'))) {
    assert.ok(existsSync(`${mountPoint}${cgroupRoot}`), `${mountPoint} has the cgroup ${cgroupRoot}`);
  }
  const pod = await startBarePod({
    endpoint,
    name: 'machine',
    image: demoImages.web,
    cgroupParent: `${cgroupRoot}/machine`,
  });
  try {
    const response = await fetch(`http://${pod.address}:8080/`, { signal: AbortSignal.timeout(30_000) });
    assert.equal(response.status, 200);
    assert.match(await response.text(), /Hello from a pod/);
  } finally {
    await removeBarePod(endpoint, pod);
  }
});
