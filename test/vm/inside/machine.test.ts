/**
 * Proves that the virtual machine is what the end-to-end tests take it for: cgroup v2 alone with every controller,
 * pressure figures, and a containerd that runs pods with limits and addresses. Only meaningful inside of it:
 *
 *     node test/vm/run.ts -- test/vm/inside/machine.test.ts
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Client, credentials } from '@grpc/grpc-js';
import { demoImages, importDemoImages } from '../../../scripts/machine/demo-images.ts';
import {
  type PrivateContainerd,
  startPrivateContainerd,
} from '../../../scripts/machine/private-containerd.ts';
import {
  LinuxContainerConfig,
  LinuxContainerResources,
  LinuxPodSandboxConfig,
  RuntimeServiceDefinition,
} from '../../../src/runtime/generated/cri.ts';
import { containerConfig, sandboxConfig } from '../../fixtures/cri-runtime/requests.ts';

const directory = '/var/lib/kubelet-vm-test';
const none = new Uint8Array();
const { methods } = RuntimeServiceDefinition;
let containerd: PrivateContainerd;
let client: Client;

before(async () => {
  containerd = await startPrivateContainerd({ directory, state: '/run/kubelet-vm-test' });
  await importDemoImages({ endpoint: containerd.endpoint, directory, snapshotter: containerd.snapshotter });
  client = new Client(containerd.endpoint, credentials.createInsecure());
});

after(async () => {
  client?.close();
  await containerd?.stop({ data: true });
});

test('only cgroup v2 is there, with every controller enabled', () => {
  const groups = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(' - cgroup'));
  assert.match(groups.join('\n'), /^\S+ \S+ \S+ \/ \/sys\/fs\/cgroup [^\n]* - cgroup2 [^\n]*$/);
  const enabled = readFileSync('/sys/fs/cgroup/cgroup.subtree_control', 'utf8').trim().split(' ');
  for (const name of ['cpuset', 'cpu', 'io', 'memory', 'hugetlb', 'pids'])
    assert.ok(enabled.includes(name), name);
  assert.equal(readFileSync('/proc/self/cgroup', 'utf8').trim(), '0::/system.slice/command.service');
});

test('the kernel tells pressure, of the machine and of each cgroup', () => {
  for (const resource of ['cpu', 'memory', 'io']) {
    assert.match(readFileSync(`/proc/pressure/${resource}`, 'utf8'), /^some avg10=/);
    assert.match(readFileSync(`/sys/fs/cgroup/system.slice/${resource}.pressure`, 'utf8'), /^some avg10=/);
  }
});

test('a pod gets an address, and its container the limits on cgroup v2', async () => {
  const parent = '/kubepods/burstable/podmachine-test';
  mkdirSync(`/sys/fs/cgroup${parent}`, { recursive: true });
  const config = sandboxConfig('machine-test', {
    linux: { ...LinuxPodSandboxConfig.decode(none), cgroupParent: parent },
  });
  const { podSandboxId } = await call(methods.runPodSandbox, { config, runtimeHandler: '' });
  const sandbox = await call(methods.podSandboxStatus, { podSandboxId, verbose: false });
  assert.match(sandbox.status?.network?.ip ?? '', /^10\.\d+\.\d+\.\d+$/);
  const resources = {
    ...LinuxContainerResources.decode(none),
    memoryLimitInBytes: 64n * 1024n * 1024n,
    cpuPeriod: 100_000n,
    cpuQuota: 50_000n,
    cpusetCpus: '1',
  };
  const { containerId } = await call(methods.createContainer, {
    podSandboxId,
    config: containerConfig('main', {
      image: demoImages.busybox,
      linux: { ...LinuxContainerConfig.decode(none), resources },
    }),
    sandboxConfig: config,
  });
  await call(methods.startContainer, { containerId });
  const read = async (file: string) => {
    const cmd = ['cat', `/sys/fs/cgroup/${file}`];
    const answer = await call(methods.execSync, { containerId, cmd, timeout: 20n });
    return Buffer.from(answer.stdout).toString().trim();
  };
  assert.ok(existsSync(`/sys/fs/cgroup${parent}/${containerId}`), 'the container is in its pod’s cgroup');
  assert.equal(await read('memory.max'), String(64 * 1024 * 1024));
  assert.equal(await read('cpu.max'), '50000 100000');
  assert.equal(await read('cpuset.cpus.effective'), '1');
  await call(methods.stopContainer, { containerId, timeout: 5n });
  await call(methods.stopPodSandbox, { podSandboxId });
  await call(methods.removePodSandbox, { podSandboxId });
});

interface Method<Request, Response> {
  name: string;
  requestType: { encode(message: Request): { finish(): Uint8Array } };
  responseType: { decode(bytes: Uint8Array): Response };
}

/** One CRI call, with how long it took in the report: emulation's price is worth seeing. */
function call<Request, Response>(method: Method<Request, Response>, request: Request): Promise<Response> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      `/${RuntimeServiceDefinition.fullName}/${method.name}`,
      (message: Request) => Buffer.from(method.requestType.encode(message).finish()),
      (bytes: Buffer) => method.responseType.decode(bytes),
      request,
      { deadline: Date.now() + 60_000 },
      (error, response) => {
        console.log(`${method.name}: ${((performance.now() - started) / 1000).toFixed(2)} s`);
        if (error !== null) reject(error);
        else resolve(response as Response);
      },
    );
  });
}
