/** What containers find in volumes that are made of objects of the API and of the pod itself. */
import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { describe, it } from 'node:test';
import { parseQuantity, quantityValue } from '../../../../src/kubernetes/quantity.ts';
import type { Volume } from '../../../../src/kubernetes/types.ts';
import { conditionOf } from '../scenarios.ts';
import { ClusterScenarios, type SeenFile, seen } from './cluster-scenarios.ts';
import { type ObjectKind, objectKinds, objectOf, objectVolume } from './object-volumes.ts';

const scenarios = new ClusterScenarios();
const user = 1000;
const group = 1001;

const short: Record<ObjectKind, string> = {
  configMap: 'cm',
  projectedConfigMap: 'pcm',
  secret: 'sec',
  projectedSecret: 'psec',
};
const data = { 'data-1': 'value-1', 'data-2': 'value-2\n', 'data-3': 'value-3' };
/** What one key of an object is called in the volume. */
const items = [{ key: 'data-2', path: 'path/to/data-2' }];

const bytes = Buffer.from([0, 0xff, 0xfe, 1, 10, 0x80]);
for (const kind of ['configMap', 'secret'] as const) scenarios.object(objectOf(kind, 'some', data));
scenarios.object({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'elsewhere' } });
for (const kind of ['configMap', 'secret'] as const) {
  const object = objectOf(kind, 'some', { 'data-1': 'of another namespace' });
  scenarios.object({ ...object, metadata: { name: 'some', namespace: 'elsewhere' } });
}
scenarios.configMap('binary', { text: 'text' }, { binaryData: { bytes: bytes.toString('base64') } });

const podName = { path: 'podname', fieldRef: { fieldPath: 'metadata.name' } };
const amounts = (containerName: string) =>
  ['limits.cpu', 'requests.cpu', 'limits.memory', 'requests.memory'].map((resource) => ({
    path: `${containerName}-${resource}`,
    resourceFieldRef: { containerName, resource },
  }));
/** The same files by a volume of their own (`dw`) and projected (`pdw`). */
function downward(name: string, files: { path: string; mode?: number }[], defaultMode?: number): Volume[] {
  const mode = defaultMode === undefined ? {} : { defaultMode };
  return [
    { name: `dw-${name}`, downwardAPI: { items: files, ...mode } },
    { name: `pdw-${name}`, projected: { sources: [{ downwardAPI: { items: files } }], ...mode } },
  ];
}
/** Volumes of every kind of object. */
const ofObjects = (name: string, options = {}) =>
  objectKinds.map((kind) => objectVolume(kind, `${short[kind]}-${name}`, 'some', options));

const mountsOf = (volumes: readonly Volume[]) =>
  volumes.map(({ name }) => ({ name, mountPath: `${seen}/${name}` }));
const reader = (volumes: readonly Volume[], name = 'main', more = {}) =>
  scenarios.idler(name, { volumeMounts: mountsOf(volumes), ...more });

const forRoot: Volume[] = [
  ...ofObjects('plain'),
  ...ofObjects('second'),
  ...ofObjects('mode', { defaultMode: 0o400 }),
  ...ofObjects('mapped', { items }),
  ...ofObjects('item-mode', { items: items.map((item) => ({ ...item, mode: 0o400 })) }),
  objectVolume('configMap', 'cm-binary', 'binary'),
  {
    name: 'combined',
    projected: {
      sources: [
        { configMap: { name: 'some', items: [{ key: 'data-1', path: 'of/config-map' }] } },
        { secret: { name: 'some', items: [{ key: 'data-2', path: 'of/secret' }] } },
        { downwardAPI: { items: [podName] } },
      ],
    },
  },
  ...downward('plain', [podName, ...amounts('main'), ...amounts('free')]),
  ...downward('mode', [podName], 0o400),
  ...downward('item-mode', [{ ...podName, mode: 0o400 }]),
];
const limits = {
  requests: { cpu: '250m', memory: '32Mi' },
  limits: { cpu: '1250m', memory: '64Mi' },
};
const root = scenarios.pod('root', {
  volumes: forRoot,
  containers: [reader(forRoot, 'main', { resources: limits }), scenarios.idler('free')],
});
const forUser = [...ofObjects('plain'), ...ofObjects('mapped', { items })];
const nonRoot = scenarios.pod('non-root', {
  volumes: forUser,
  securityContext: { runAsUser: user, runAsNonRoot: true },
  containers: [reader(forUser)],
});
const forGroup = [
  ...ofObjects('plain'),
  ...ofObjects('mapped', { items }),
  ...ofObjects('mode', { defaultMode: 0o440 }),
  ...downward('plain', [podName]),
  ...downward('mode', [podName], 0o440),
];
const grouped = scenarios.pod('grouped', {
  volumes: forGroup,
  securityContext: { runAsUser: user, runAsNonRoot: true, fsGroup: group },
  containers: [reader(forGroup)],
});

/** The group of a pod's files: the one it asks for, or root's. */
const groupOf = (pod: string) => (pod === grouped ? group : 0);

function same(file: SeenFile, mode: string, content: string, ofGroup: number): void {
  const { owner, group: found, mode: has, content: is } = file;
  assert.deepEqual([owner, found, has, is.toString()], ['0', `${ofGroup}`, mode, content]);
}

/** Title, pod, and the mode of each file that the title is about; the content follows from the file's name. */
const ofObject: readonly [title: string, pod: string, files: Readonly<Record<string, string>>][] = [
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume [NodeConformance] [Conformance]',
    root,
    { 'cm-plain/data-1': '644' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume as non-root [NodeConformance] [Conformance]',
    nonRoot,
    { 'cm-plain/data-1': '644' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume as non-root with defaultMode and fsGroup set [LinuxOnly] [NodeConformance]',
    grouped,
    { 'cm-mode/data-1': '440' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume as non-root with FSGroup [LinuxOnly] [NodeConformance]',
    grouped,
    { 'cm-plain/data-1': '644' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume with defaultMode set [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    { 'cm-mode/data-1': '400' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume with mappings [NodeConformance] [Conformance]',
    root,
    { 'cm-mapped/path/to/data-2': '644' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume with mappings and Item mode set [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    { 'cm-item-mode/path/to/data-2': '400' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume with mappings as non-root [NodeConformance] [Conformance]',
    nonRoot,
    { 'cm-mapped/path/to/data-2': '644' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable from pods in volume with mappings as non-root with FSGroup [LinuxOnly] [NodeConformance]',
    grouped,
    { 'cm-mapped/path/to/data-2': '644' },
  ],
  [
    '[sig-storage] ConfigMap should be consumable in multiple volumes in the same pod [NodeConformance] [Conformance]',
    root,
    { 'cm-plain/data-1': '644', 'cm-second/data-1': '644' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume [NodeConformance] [Conformance]',
    root,
    { 'pcm-plain/data-1': '644' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume as non-root [NodeConformance] [Conformance]',
    nonRoot,
    { 'pcm-plain/data-1': '644' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume as non-root with defaultMode and fsGroup set [LinuxOnly] [NodeConformance]',
    grouped,
    { 'pcm-mode/data-1': '440' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume as non-root with FSGroup [LinuxOnly] [NodeConformance]',
    grouped,
    { 'pcm-plain/data-1': '644' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume with defaultMode set [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    { 'pcm-mode/data-1': '400' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume with mappings [NodeConformance] [Conformance]',
    root,
    { 'pcm-mapped/path/to/data-2': '644' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume with mappings and Item mode set [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    { 'pcm-item-mode/path/to/data-2': '400' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume with mappings as non-root [NodeConformance] [Conformance]',
    nonRoot,
    { 'pcm-mapped/path/to/data-2': '644' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable from pods in volume with mappings as non-root with FSGroup [LinuxOnly] [NodeConformance]',
    grouped,
    { 'pcm-mapped/path/to/data-2': '644' },
  ],
  [
    '[sig-storage] Projected configMap should be consumable in multiple volumes in the same pod [NodeConformance] [Conformance]',
    root,
    { 'pcm-plain/data-1': '644', 'pcm-second/data-1': '644' },
  ],
  [
    '[sig-storage] Projected secret should be consumable from pods in volume [NodeConformance] [Conformance]',
    root,
    { 'psec-plain/data-1': '644' },
  ],
  [
    '[sig-storage] Projected secret should be consumable from pods in volume as non-root with defaultMode and fsGroup set [LinuxOnly] [NodeConformance] [Conformance]',
    grouped,
    { 'psec-mode/data-1': '440' },
  ],
  [
    '[sig-storage] Projected secret should be consumable from pods in volume with defaultMode set [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    { 'psec-mode/data-1': '400' },
  ],
  [
    '[sig-storage] Projected secret should be consumable from pods in volume with mappings [NodeConformance] [Conformance]',
    root,
    { 'psec-mapped/path/to/data-2': '644' },
  ],
  [
    '[sig-storage] Projected secret should be consumable from pods in volume with mappings and Item Mode set [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    { 'psec-item-mode/path/to/data-2': '400' },
  ],
  [
    '[sig-storage] Projected secret should be consumable in multiple volumes in a pod [NodeConformance] [Conformance]',
    root,
    { 'psec-plain/data-1': '644', 'psec-second/data-1': '644' },
  ],
  [
    '[sig-storage] Secrets should be consumable from pods in volume [NodeConformance] [Conformance]',
    root,
    { 'sec-plain/data-1': '644' },
  ],
  [
    '[sig-storage] Secrets should be consumable from pods in volume as non-root with defaultMode and fsGroup set [LinuxOnly] [NodeConformance] [Conformance]',
    grouped,
    { 'sec-mode/data-1': '440' },
  ],
  [
    '[sig-storage] Secrets should be consumable from pods in volume with defaultMode set [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    { 'sec-mode/data-1': '400' },
  ],
  [
    '[sig-storage] Secrets should be consumable from pods in volume with mappings [NodeConformance] [Conformance]',
    root,
    { 'sec-mapped/path/to/data-2': '644' },
  ],
  [
    '[sig-storage] Secrets should be consumable from pods in volume with mappings and Item Mode set [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    { 'sec-item-mode/path/to/data-2': '400' },
  ],
  [
    '[sig-storage] Secrets should be consumable in multiple volumes in a pod [NodeConformance] [Conformance]',
    root,
    { 'sec-plain/data-1': '644', 'sec-second/data-1': '644' },
  ],
];

describe('a volume of an object', () => {
  for (const [title, pod, files] of ofObject) {
    it(title, async () => {
      for (const [path, mode] of Object.entries(files)) {
        const content = data[basename(path) as keyof typeof data];
        same(await scenarios.file(pod, path), mode, content, groupOf(pod));
      }
    });
  }

  it('[sig-storage] ConfigMap binary data should be reflected in volume [NodeConformance] [Conformance]', async () => {
    assert.deepEqual((await scenarios.file(root, 'cm-binary/bytes')).content, bytes);
    same(await scenarios.file(root, 'cm-binary/text'), '644', 'text', 0);
  });

  for (const [volume, title] of [
    [
      'sec-plain',
      '[sig-storage] Secrets should be able to mount in a volume regardless of a different secret existing with same name in different namespace [NodeConformance] [Conformance]',
    ],
    [
      'psec-plain',
      '[sig-storage] Projected secret should be able to mount in a volume regardless of a different secret existing with same name in different namespace [NodeConformance]',
    ],
  ] as const) {
    it(title, async () => {
      const other = scenarios.server.admin.get('secrets', 'elsewhere/some');
      assert.equal(atob(other?.data?.['data-1'] ?? ''), 'of another namespace');
      const files = await scenarios.files(root);
      const names = [...files.keys()].filter((path) => path.startsWith(`${volume}/`));
      assert.deepEqual(
        names.toSorted(),
        Object.keys(data).map((key) => `${volume}/${key}`),
      );
      same(await scenarios.file(root, `${volume}/data-1`), '644', 'value-1', 0);
    });
  }

  it('[sig-storage] Projected combined should project all components that make up the projection API [Projection] [NodeConformance] [Conformance]', async () => {
    same(await scenarios.file(root, 'combined/of/config-map'), '644', 'value-1', 0);
    same(await scenarios.file(root, 'combined/of/secret'), '644', 'value-2\n', 0);
    same(await scenarios.file(root, 'combined/podname'), '644', 'root', 0);
  });
});

/** What the node says pods may have of a resource, in whole units. */
function allocatable(resource: string): string {
  const { status } = scenarios.server.admin.get('nodes', 'node') ?? {};
  const amount = status?.allocatable?.[resource];
  assert.ok(amount, `the node tells no allocatable ${resource}`);
  return String(quantityValue(parseQuantity(amount)));
}

const ofPod: readonly [title: string, pod: string, path: string, mode: string, content: () => string][] = [
  [
    "[sig-storage] Downward API volume should provide container's cpu limit [NodeConformance] [Conformance]",
    root,
    'dw-plain/main-limits.cpu',
    '644',
    () => '2',
  ],
  [
    "[sig-storage] Downward API volume should provide container's cpu request [NodeConformance] [Conformance]",
    root,
    'dw-plain/main-requests.cpu',
    '644',
    () => '1',
  ],
  [
    "[sig-storage] Downward API volume should provide container's memory limit [NodeConformance] [Conformance]",
    root,
    'dw-plain/main-limits.memory',
    '644',
    () => String(64 * 2 ** 20),
  ],
  [
    "[sig-storage] Downward API volume should provide container's memory request [NodeConformance] [Conformance]",
    root,
    'dw-plain/main-requests.memory',
    '644',
    () => String(32 * 2 ** 20),
  ],
  [
    '[sig-storage] Downward API volume should provide node allocatable (cpu) as default cpu limit if the limit is not set [NodeConformance] [Conformance]',
    root,
    'dw-plain/free-limits.cpu',
    '644',
    () => allocatable('cpu'),
  ],
  [
    '[sig-storage] Downward API volume should provide node allocatable (memory) as default memory limit if the limit is not set [NodeConformance] [Conformance]',
    root,
    'dw-plain/free-limits.memory',
    '644',
    () => allocatable('memory'),
  ],
  [
    '[sig-storage] Downward API volume should provide podname as non-root with fsgroup [LinuxOnly] [NodeConformance]',
    grouped,
    'dw-plain/podname',
    '644',
    () => 'grouped',
  ],
  [
    '[sig-storage] Downward API volume should provide podname as non-root with fsgroup and defaultMode [LinuxOnly] [NodeConformance]',
    grouped,
    'dw-mode/podname',
    '440',
    () => 'grouped',
  ],
  [
    '[sig-storage] Downward API volume should provide podname only [NodeConformance] [Conformance]',
    root,
    'dw-plain/podname',
    '644',
    () => 'root',
  ],
  [
    '[sig-storage] Downward API volume should set DefaultMode on files [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    'dw-mode/podname',
    '400',
    () => 'root',
  ],
  [
    '[sig-storage] Downward API volume should set mode on item file [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    'dw-item-mode/podname',
    '400',
    () => 'root',
  ],
  [
    "[sig-storage] Projected downwardAPI should provide container's cpu limit [NodeConformance] [Conformance]",
    root,
    'pdw-plain/main-limits.cpu',
    '644',
    () => '2',
  ],
  [
    "[sig-storage] Projected downwardAPI should provide container's cpu request [NodeConformance] [Conformance]",
    root,
    'pdw-plain/main-requests.cpu',
    '644',
    () => '1',
  ],
  [
    "[sig-storage] Projected downwardAPI should provide container's memory limit [NodeConformance] [Conformance]",
    root,
    'pdw-plain/main-limits.memory',
    '644',
    () => String(64 * 2 ** 20),
  ],
  [
    "[sig-storage] Projected downwardAPI should provide container's memory request [NodeConformance] [Conformance]",
    root,
    'pdw-plain/main-requests.memory',
    '644',
    () => String(32 * 2 ** 20),
  ],
  [
    '[sig-storage] Projected downwardAPI should provide node allocatable (cpu) as default cpu limit if the limit is not set [NodeConformance] [Conformance]',
    root,
    'pdw-plain/free-limits.cpu',
    '644',
    () => allocatable('cpu'),
  ],
  [
    '[sig-storage] Projected downwardAPI should provide node allocatable (memory) as default memory limit if the limit is not set [NodeConformance] [Conformance]',
    root,
    'pdw-plain/free-limits.memory',
    '644',
    () => allocatable('memory'),
  ],
  [
    '[sig-storage] Projected downwardAPI should provide podname as non-root with fsgroup [LinuxOnly] [NodeConformance]',
    grouped,
    'pdw-plain/podname',
    '644',
    () => 'grouped',
  ],
  [
    '[sig-storage] Projected downwardAPI should provide podname as non-root with fsgroup and defaultMode [LinuxOnly] [NodeConformance]',
    grouped,
    'pdw-mode/podname',
    '440',
    () => 'grouped',
  ],
  [
    '[sig-storage] Projected downwardAPI should provide podname only [NodeConformance] [Conformance]',
    root,
    'pdw-plain/podname',
    '644',
    () => 'root',
  ],
  [
    '[sig-storage] Projected downwardAPI should set DefaultMode on files [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    'pdw-mode/podname',
    '400',
    () => 'root',
  ],
  [
    '[sig-storage] Projected downwardAPI should set mode on item file [LinuxOnly] [NodeConformance] [Conformance]',
    root,
    'pdw-item-mode/podname',
    '400',
    () => 'root',
  ],
];

describe('a volume of what the pod is', () => {
  for (const [title, pod, path, mode, content] of ofPod) {
    it(title, async () => {
      same(await scenarios.file(pod, path), mode, content(), groupOf(pod));
    });
  }
});

describe('a volume that cannot be made', () => {
  for (const [kind, missing, title] of [
    [
      'configMap',
      'object',
      '[sig-storage] ConfigMap Should fail non-optional pod creation due to configMap object does not exist [Slow] [NodeConformance]',
    ],
    [
      'configMap',
      'key',
      '[sig-storage] ConfigMap Should fail non-optional pod creation due to the key in the configMap object does not exist [Slow] [NodeConformance]',
    ],
    [
      'projectedConfigMap',
      'object',
      '[sig-storage] Projected configMap Should fail non-optional pod creation due to configMap object does not exist [Slow] [NodeConformance]',
    ],
    [
      'projectedConfigMap',
      'key',
      '[sig-storage] Projected configMap Should fail non-optional pod creation due to the key in the configMap object does not exist [Slow] [NodeConformance]',
    ],
    [
      'projectedSecret',
      'object',
      '[sig-storage] Projected secret Should fail non-optional pod creation due to secret object does not exist [Slow] [NodeConformance]',
    ],
    [
      'projectedSecret',
      'key',
      '[sig-storage] Projected secret Should fail non-optional pod creation due to the key in the secret object does not exist [Slow] [NodeConformance]',
    ],
    [
      'secret',
      'object',
      '[sig-storage] Secrets Should fail non-optional pod creation due to secret object does not exist [Slow] [NodeConformance]',
    ],
    [
      'secret',
      'key',
      '[sig-storage] Secrets Should fail non-optional pod creation due to the key in the secret object does not exist [Slow] [NodeConformance]',
    ],
  ] as const) {
    const volume =
      missing === 'object'
        ? objectVolume(kind, 'files', 'not-there')
        : objectVolume(kind, 'files', 'some', { items: [{ key: 'no-such-key', path: 'file' }] });
    const pod = scenarios.pod(`no-${missing}-${short[kind]}`, {
      volumes: [volume],
      containers: [reader([volume])],
    });
    it(title, async () => {
      const why = missing === 'object' ? /"?not-there"? not found/ : /no-such-key/;
      const { status } = await scenarios.heldBack(pod, why);
      assert.equal(status?.containerStatuses?.[0]?.state?.waiting?.reason, 'ContainerCreating');
    });
  }

  for (const [kind, withInit, title] of [
    [
      'configMap',
      true,
      '[sig-node] Pod conditions managed by Kubelet without PodReadyToStartContainersCondition condition [NodeConformance] a pod failing to mount volumes (ConfigMap) and with init containers should report just the scheduled condition set',
    ],
    [
      'configMap',
      false,
      '[sig-node] Pod conditions managed by Kubelet without PodReadyToStartContainersCondition condition [NodeConformance] a pod failing to mount volumes (ConfigMap) and without init containers should report scheduled and initialized conditions set',
    ],
    [
      'secret',
      true,
      '[sig-node] Pod conditions managed by Kubelet without PodReadyToStartContainersCondition condition [NodeConformance] a pod failing to mount volumes (Secret) and with init containers should report just the scheduled condition set',
    ],
    [
      'secret',
      false,
      '[sig-node] Pod conditions managed by Kubelet without PodReadyToStartContainersCondition condition [NodeConformance] a pod failing to mount volumes (Secret) and without init containers should report scheduled and initialized conditions set',
    ],
  ] as const) {
    const volume = objectVolume(kind, 'files', 'not-there');
    const pod = scenarios.pod(`conditions-${short[kind]}-${withInit ? 'init' : 'plain'}`, {
      volumes: [volume],
      ...(withInit && { initContainers: [scenarios.idler('init', { command: ['true'] })] }),
      containers: [reader([volume])],
    });
    it(title, async () => {
      const object = await scenarios.heldBack(pod, /not-there/);
      const set = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].filter(
        (type) => conditionOf(object, type)?.status === 'True',
      );
      assert.deepEqual(set, withInit ? ['PodScheduled'] : ['PodScheduled', 'Initialized']);
    });
  }
});
