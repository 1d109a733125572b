import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { quantityOf } from '../kubernetes/quantity.ts';
import { machine, statusFacts } from './fixtures/node-world.ts';
import { goArchitecture, prettyName, readMachineIdentity } from './machine-identity.ts';
import { nodeResources, nodeStatus, reportedImages } from './node-status.ts';

test('a whole status', () => {
  const status = nodeStatus(
    undefined,
    statusFacts({
      swapBytes: 1024,
      images: [{ names: ['a:1'], sizeBytes: 5 }],
      volumesInUse: ['kubernetes.io/csi/x^2', 'kubernetes.io/csi/x^1'],
      runtimeHandlers: [{ name: 'runc', features: { userNamespaces: true, recursiveReadOnlyMounts: false } }],
      declaredFeatures: ['B', 'A'],
    }),
  );
  assert.deepEqual(status, {
    capacity: { cpu: '4', memory: '8Gi', pods: '110' },
    allocatable: { cpu: '3', memory: '7Gi', pods: '110' },
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: {
      architecture: 'amd64',
      bootID: 'boot-1',
      containerRuntimeVersion: 'containerd://2.1.9',
      kernelVersion: '6.1.0-13-amd64',
      kubeProxyVersion: '',
      kubeletVersion: 'v1.36.2',
      machineID: 'f00d',
      operatingSystem: 'linux',
      osImage: 'Debian GNU/Linux 12 (bookworm)',
      swap: { capacity: 1024 },
      systemUUID: '4c4c4544-0001',
    },
    images: [{ names: ['a:1'], sizeBytes: 5 }],
    volumesInUse: ['kubernetes.io/csi/x^1', 'kubernetes.io/csi/x^2'],
    runtimeHandlers: [{ name: 'runc', features: { userNamespaces: true, recursiveReadOnlyMounts: false } }],
    features: { supplementalGroupsPolicy: true },
    declaredFeatures: ['A', 'B'],
  });
});

test('what is not known yet, and what others wrote, stays', () => {
  const existing = {
    nodeInfo: {
      ...nodeStatus(undefined, statusFacts()).nodeInfo!,
      containerRuntimeVersion: 'containerd://2.0',
    },
    images: [{ names: ['a:1'] }],
    volumesInUse: ['v'],
    volumesAttached: [{ name: 'v', devicePath: '' }],
    runtimeHandlers: [{ name: 'runc' }],
  };
  const status = nodeStatus(
    existing,
    statusFacts({
      runtime: undefined,
      images: undefined,
      volumesInUse: undefined,
      runtimeHandlers: undefined,
    }),
  );
  assert.equal(status.nodeInfo?.containerRuntimeVersion, 'containerd://2.0');
  for (const field of ['images', 'volumesInUse', 'volumesAttached', 'runtimeHandlers'] as const) {
    assert.deepEqual(status[field], existing[field]);
  }
  const free = nodeStatus(existing, statusFacts({ volumesInUse: [] }));
  assert.ok(!('volumesInUse' in free), 'nothing is in use any more');
});

describe('resources', () => {
  const existing = {
    capacity: { cpu: '2', 'hugepages-1Gi': '1Gi', 'example.com/dongle': '4', 'vendor.com/gpu': '2' },
    allocatable: { cpu: '2', 'hugepages-1Gi': '1Gi', 'vendor.com/gpu': '2' },
  };

  test('an operator’s own stay and are allocatable; huge pages are what the kernel has', () => {
    assert.deepEqual(nodeResources(existing, statusFacts()), {
      capacity: { cpu: '4', memory: '8Gi', pods: '110', 'example.com/dongle': '4', 'vendor.com/gpu': '2' },
      allocatable: { cpu: '3', memory: '7Gi', pods: '110', 'example.com/dongle': '4', 'vendor.com/gpu': '2' },
    });
  });

  test('devices that are gone count 0, those that are back count again', () => {
    const facts = statusFacts();
    const gone = nodeResources(existing, { ...facts, goneResources: ['vendor.com/gpu'] });
    assert.deepEqual([gone.capacity['vendor.com/gpu'], gone.allocatable['vendor.com/gpu']], ['0', '0']);
    const back = nodeResources(existing, {
      ...facts,
      capacity: new Map([...facts.capacity, ['vendor.com/gpu', quantityOf(3)]]),
      allocatable: new Map([...facts.allocatable, ['vendor.com/gpu', quantityOf(1)]]),
    });
    assert.deepEqual([back.capacity['vendor.com/gpu'], back.allocatable['vendor.com/gpu']], ['3', '1']);
  });

  test('a new machine under the old name forgets devices', () => {
    const { capacity } = nodeResources(existing, { ...statusFacts(), forgetExtendedResources: true });
    assert.deepEqual(
      [capacity['vendor.com/gpu'], capacity['example.com/dongle'], capacity['cpu']],
      ['0', '0', '4'],
    );
  });
});

describe('images', () => {
  const images = [
    { names: ['small:1'], sizeBytes: 1 },
    { names: ['t:1', 't:2', 't@sha256:a', 't:3', 't:4', 't:5'], sizeBytes: 9 },
    { names: ['b:1'], sizeBytes: 5 },
    { names: ['a:1'], sizeBytes: 5 },
  ];
  test('largest first, five names each, digests before tags', () => {
    assert.deepEqual(reportedImages(images, -1), [
      { names: ['t@sha256:a', 't:1', 't:2', 't:3', 't:4'], sizeBytes: 9 },
      { names: ['a:1'], sizeBytes: 5 },
      { names: ['b:1'], sizeBytes: 5 },
      { names: ['small:1'], sizeBytes: 1 },
    ]);
  });
  test('at most as many as configured', () => {
    assert.equal(reportedImages(images, 2).length, 2);
    assert.deepEqual(reportedImages(images, 0), []);
  });
});

describe('the identity of the machine', () => {
  async function identityOf(files: Record<string, string>) {
    const root = await mkdtemp(join(tmpdir(), 'identity-'));
    try {
      for (const [name, text] of Object.entries(files)) {
        await mkdir(dirname(join(root, name)), { recursive: true });
        await writeFile(join(root, name), text);
      }
      return readMachineIdentity({ root });
    } finally {
      await rm(root, { recursive: true });
    }
  }

  test('is read from where Linux keeps it', async () => {
    const found = await identityOf({
      'etc/machine-id': 'f00d\n',
      'sys/class/dmi/id/product_uuid': '4c4c4544-0001\n',
      'proc/sys/kernel/random/boot_id': 'boot-1\n',
      'proc/sys/kernel/osrelease': '6.1.0-13-amd64\n',
      'etc/os-release': 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    });
    assert.deepEqual(found, { ...machine, architecture: goArchitecture(process.arch) });
  });

  test('makes do with what there is', async () => {
    const found = await identityOf({ 'etc/machine-id': '', 'var/lib/dbus/machine-id': 'beef' });
    assert.deepEqual(
      [found.machineId, found.systemUuid, found.bootId, found.osImage],
      ['beef', 'beef', '', 'Linux'],
    );
    const board = await identityOf({ 'proc/device-tree/vm,uuid': 'abc\0' });
    assert.equal(board.systemUuid, 'abc');
  });

  for (const [text, expected] of [
    ['PRETTY_NAME=Alpine', 'Alpine'],
    ["PRETTY_NAME='Fedora 44'", 'Fedora 44'],
    ['PRETTY_NAME="A \\"B\\""', 'A "B"'],
    ['PRETTY_NAME=""', undefined],
    ['NAME=x', undefined],
  ] as const) {
    test(`os-release ${text}`, () => assert.equal(prettyName(text), expected));
  }

  test('architectures have Go’s names', () => {
    assert.deepEqual(['x64', 'arm64', 'ia32', 's390x'].map(goArchitecture), [
      'amd64',
      'arm64',
      '386',
      's390x',
    ]);
  });
});
