/** What pods find of themselves in downwardAPI volumes, alone and as a part of projected ones. */
import assert from 'node:assert/strict';
import { availableParallelism, totalmem } from 'node:os';
import { describe, it } from 'node:test';
import type { Container, Pod, Volume } from '../../../src/kubernetes/types.ts';
import { idle, shellPod } from '../../e2e/agent.ts';
import { Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;

type Kind = 'downward' | 'projected';
type Items = NonNullable<NonNullable<Volume['downwardAPI']>['items']>;
const kinds: readonly Kind[] = ['downward', 'projected'];

const resource = (name: string, containerName = 'main') => ({ containerName, resource: name });
const items: Items = [
  { path: 'podname', fieldRef: { fieldPath: 'metadata.name' } },
  { path: 'secretive', mode: 0o400, fieldRef: { fieldPath: 'metadata.name' } },
  { path: 'cpu-limit', resourceFieldRef: { ...resource('limits.cpu'), divisor: '1m' } },
  { path: 'cpu-request', resourceFieldRef: { ...resource('requests.cpu'), divisor: '1m' } },
  { path: 'memory-limit', resourceFieldRef: resource('limits.memory') },
  { path: 'memory-request', resourceFieldRef: resource('requests.memory') },
  { path: 'default-cpu', resourceFieldRef: resource('limits.cpu', 'unlimited') },
  { path: 'default-memory', resourceFieldRef: resource('limits.memory', 'unlimited') },
];

/** One volume of each kind with the same items. */
function volumes(defaultMode?: number): Volume[] {
  const mode = defaultMode === undefined ? {} : { defaultMode };
  return [
    { name: 'downward', downwardAPI: { items, ...mode } },
    { name: 'projected', projected: { sources: [{ downwardAPI: { items } }], ...mode } },
  ];
}

function container(name: string, more: Partial<Container> = {}): Container {
  const volumeMounts = kinds.map((kind) => ({ name: kind, mountPath: `/${kind}` }));
  return { name, image: agent.image, command: ['sh', '-c', idle], volumeMounts, ...more };
}

const resources = { limits: { cpu: '200m', memory: '64Mi' }, requests: { cpu: '50m', memory: '32Mi' } };
const containers = [container('main', { resources }), container('unlimited')];
const pod = (name: string, spec: Partial<Pod['spec']>): string =>
  scenarios.pod(name, shellPod(name, idle, { containers, ...spec }));

const plain = pod('plain', { volumes: volumes() });
const closed = pod('closed', { volumes: volumes(0o400) });
const nonRoot = { runAsUser: 1001, fsGroup: 4321 };
const grouped = pod('grouped', { volumes: volumes(), securityContext: nonRoot });
const groupedClosed = pod('grouped-closed', { volumes: volumes(0o400), securityContext: nonRoot });

const read = (seen: Pod, kind: Kind, file: string) => agent.exec(seen, 'main', 'cat', `/${kind}/${file}`);
const modeOf = async (seen: Pod, kind: Kind, file: string) =>
  (await agent.exec(seen, 'main', 'stat', '-L', '-c', '%a %g', `/${kind}/${file}`)).trim();

/** What each title is about, whatever the volume's kind. */
const checks: Readonly<Record<string, (kind: Kind) => Promise<void>>> = {
  only: async (kind) => {
    const seen = await agent.ready(plain);
    assert.equal(await read(seen, kind, 'podname'), seen.metadata.name);
    assert.equal(await modeOf(seen, kind, 'podname'), '644 0');
  },
  'default-mode': async (kind) => {
    assert.equal(await modeOf(await agent.ready(closed), kind, 'podname'), '400 0');
  },
  'item-mode': async (kind) => {
    assert.equal(await modeOf(await agent.ready(plain), kind, 'secretive'), '400 0');
  },
  grouped: async (kind) => {
    const seen = await agent.ready(grouped);
    assert.equal(await read(seen, kind, 'podname'), seen.metadata.name);
    assert.equal(await modeOf(seen, kind, 'podname'), '644 4321');
  },
  'grouped-mode': async (kind) => {
    const seen = await agent.ready(groupedClosed);
    assert.equal(await read(seen, kind, 'podname'), seen.metadata.name);
    assert.equal(await modeOf(seen, kind, 'podname'), '440 4321');
  },
  'cpu-limit': async (kind) => assert.equal(await read(await agent.ready(plain), kind, 'cpu-limit'), '200'),
  'cpu-request': async (kind) =>
    assert.equal(await read(await agent.ready(plain), kind, 'cpu-request'), '50'),
  'memory-limit': async (kind) =>
    assert.equal(await read(await agent.ready(plain), kind, 'memory-limit'), String(64 * 2 ** 20)),
  'memory-request': async (kind) =>
    assert.equal(await read(await agent.ready(plain), kind, 'memory-request'), String(32 * 2 ** 20)),
  'default-cpu': async (kind) => {
    const cpus = Number(await read(await agent.ready(plain), kind, 'default-cpu'));
    assert.ok(Number.isInteger(cpus) && cpus >= 1 && cpus <= availableParallelism(), String(cpus));
  },
  'default-memory': async (kind) => {
    const bytes = Number(await read(await agent.ready(plain), kind, 'default-memory'));
    // All of the machine but what is kept back from pods.
    assert.ok(bytes > totalmem() / 2 && bytes <= totalmem(), String(bytes));
  },
};

const titles: readonly [Kind, string, string][] = [
  [
    'downward',
    'cpu-limit',
    "[sig-storage] Downward API volume should provide container's cpu limit [NodeConformance] [Conformance]",
  ],
  [
    'downward',
    'cpu-request',
    "[sig-storage] Downward API volume should provide container's cpu request [NodeConformance] [Conformance]",
  ],
  [
    'downward',
    'memory-limit',
    "[sig-storage] Downward API volume should provide container's memory limit [NodeConformance] [Conformance]",
  ],
  [
    'downward',
    'memory-request',
    "[sig-storage] Downward API volume should provide container's memory request [NodeConformance] [Conformance]",
  ],
  [
    'downward',
    'default-cpu',
    '[sig-storage] Downward API volume should provide node allocatable (cpu) as default cpu limit if the limit is not set [NodeConformance] [Conformance]',
  ],
  [
    'downward',
    'default-memory',
    '[sig-storage] Downward API volume should provide node allocatable (memory) as default memory limit if the limit is not set [NodeConformance] [Conformance]',
  ],
  [
    'downward',
    'grouped',
    '[sig-storage] Downward API volume should provide podname as non-root with fsgroup [LinuxOnly] [NodeConformance]',
  ],
  [
    'downward',
    'grouped-mode',
    '[sig-storage] Downward API volume should provide podname as non-root with fsgroup and defaultMode [LinuxOnly] [NodeConformance]',
  ],
  [
    'downward',
    'only',
    '[sig-storage] Downward API volume should provide podname only [NodeConformance] [Conformance]',
  ],
  [
    'downward',
    'default-mode',
    '[sig-storage] Downward API volume should set DefaultMode on files [LinuxOnly] [NodeConformance] [Conformance]',
  ],
  [
    'downward',
    'item-mode',
    '[sig-storage] Downward API volume should set mode on item file [LinuxOnly] [NodeConformance] [Conformance]',
  ],
  [
    'projected',
    'cpu-limit',
    "[sig-storage] Projected downwardAPI should provide container's cpu limit [NodeConformance] [Conformance]",
  ],
  [
    'projected',
    'cpu-request',
    "[sig-storage] Projected downwardAPI should provide container's cpu request [NodeConformance] [Conformance]",
  ],
  [
    'projected',
    'memory-limit',
    "[sig-storage] Projected downwardAPI should provide container's memory limit [NodeConformance] [Conformance]",
  ],
  [
    'projected',
    'memory-request',
    "[sig-storage] Projected downwardAPI should provide container's memory request [NodeConformance] [Conformance]",
  ],
  [
    'projected',
    'default-cpu',
    '[sig-storage] Projected downwardAPI should provide node allocatable (cpu) as default cpu limit if the limit is not set [NodeConformance] [Conformance]',
  ],
  [
    'projected',
    'default-memory',
    '[sig-storage] Projected downwardAPI should provide node allocatable (memory) as default memory limit if the limit is not set [NodeConformance] [Conformance]',
  ],
  [
    'projected',
    'grouped',
    '[sig-storage] Projected downwardAPI should provide podname as non-root with fsgroup [LinuxOnly] [NodeConformance]',
  ],
  [
    'projected',
    'grouped-mode',
    '[sig-storage] Projected downwardAPI should provide podname as non-root with fsgroup and defaultMode [LinuxOnly] [NodeConformance]',
  ],
  [
    'projected',
    'only',
    '[sig-storage] Projected downwardAPI should provide podname only [NodeConformance] [Conformance]',
  ],
  [
    'projected',
    'default-mode',
    '[sig-storage] Projected downwardAPI should set DefaultMode on files [LinuxOnly] [NodeConformance] [Conformance]',
  ],
  [
    'projected',
    'item-mode',
    '[sig-storage] Projected downwardAPI should set mode on item file [LinuxOnly] [NodeConformance] [Conformance]',
  ],
];

describe('the downward API in volumes', () => {
  for (const [kind, about, title] of titles) it(title, () => checks[about]!(kind));
});
