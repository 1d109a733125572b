import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settings } from './fixtures/node-world.ts';
import { checkNodeLabels, NodeLabelsError } from './node-labels.ts';
import { newNode, reconcileMetadata } from './node-object.ts';
import type { Node } from './node-types.ts';

const providedIp = 'alpha.kubernetes.io/provided-node-ip';
const attachDetach = 'volumes.kubernetes.io/controller-managed-attach-detach';

describe('a new Node', () => {
  test('has the standard labels, the annotation of attach and detach, and nothing else', () => {
    assert.deepEqual(newNode(settings), {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'worker-1',
        labels: {
          'beta.kubernetes.io/arch': 'amd64',
          'beta.kubernetes.io/os': 'linux',
          'kubernetes.io/arch': 'amd64',
          'kubernetes.io/hostname': 'worker-1',
          'kubernetes.io/os': 'linux',
        },
        annotations: { [attachDetach]: 'true' },
      },
      spec: {},
    });
  });

  test('takes --node-labels, also in place of standard ones', () => {
    const { labels } = newNode({
      ...settings,
      labels: { pool: 'a', 'kubernetes.io/hostname': 'other' },
    }).metadata;
    assert.equal(labels?.['pool'], 'a');
    assert.equal(labels?.['kubernetes.io/hostname'], 'other');
  });

  test('is tainted as told, cordoned when not schedulable, and until its cloud has seen it', () => {
    const { spec } = newNode({
      ...settings,
      taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoExecute' }],
      schedulable: false,
      externalCloud: true,
      providerId: 'cloud://zone/i-1',
    });
    assert.deepEqual(spec, {
      providerID: 'cloud://zone/i-1',
      unschedulable: true,
      taints: [
        { key: 'dedicated', value: 'gpu', effect: 'NoExecute' },
        { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
        { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
      ],
    });
  });

  test('does not have a taint twice', () => {
    const taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
    assert.deepEqual(newNode({ ...settings, taints: [taint], schedulable: false }).spec?.taints, [taint]);
  });

  for (const [nodeIps, externalCloud, expected] of [
    [['10.0.0.5'], true, '10.0.0.5'],
    [['10.0.0.5', 'fd00::5'], true, '10.0.0.5,fd00::5'],
    [['::'], true, undefined],
    [[], true, undefined],
    [['10.0.0.5'], false, undefined],
  ] as const) {
    test(`hands --node-ip ${nodeIps.join()} to ${externalCloud ? 'the cloud' : 'nobody'}: ${expected}`, () => {
      const { annotations } = newNode({ ...settings, nodeIps, externalCloud }).metadata;
      assert.equal(annotations?.[providedIp], expected);
    });
  }
});

describe('an existing Node', () => {
  const existing: Node = {
    metadata: {
      name: 'worker-1',
      uid: 'u1',
      labels: { 'kubernetes.io/hostname': 'old', 'topology.kubernetes.io/zone': 'a', mine: '1' },
      annotations: { [providedIp]: '10.9.9.9', other: 'x' },
    },
    spec: { taints: [{ key: 'set-by-admin', effect: 'NoSchedule' }], unschedulable: true, providerID: 'p' },
  };

  test('keeps its spec and what others labelled; standard labels and own annotations follow the agent', () => {
    const node = reconcileMetadata(existing, {
      ...settings,
      taints: [{ key: 'new', effect: 'NoSchedule' }],
      labels: { pool: 'not given again', 'topology.kubernetes.io/zone': 'b' },
    });
    assert.equal(node.spec, existing.spec);
    assert.deepEqual(node.metadata.labels, {
      'beta.kubernetes.io/arch': 'amd64',
      'beta.kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'kubernetes.io/hostname': 'worker-1',
      'kubernetes.io/os': 'linux',
      'topology.kubernetes.io/zone': 'b',
      mine: '1',
    });
    assert.deepEqual(node.metadata.annotations, { [attachDetach]: 'true', other: 'x' });
  });

  test('loses a standard label that is given as empty, and the annotation when the node attaches itself', () => {
    const before = reconcileMetadata(existing, settings);
    const node = reconcileMetadata(before, {
      ...settings,
      controllerAttachDetach: false,
      labels: { 'topology.kubernetes.io/zone': '' },
    });
    assert.ok(!('topology.kubernetes.io/zone' in (node.metadata.labels ?? {})));
    assert.deepEqual(node.metadata.annotations, { other: 'x' });
  });
});

describe('--node-labels', () => {
  for (const label of [
    'pool',
    'example.com/pool',
    'node.kubernetes.io/exclude-from-external-load-balancers',
    'gpu.node.kubernetes.io/kind',
    'kubelet.kubernetes.io/x',
    'topology.kubernetes.io/zone',
    'mykubernetes.io/x',
  ]) {
    test(`may be ${label}`, () => checkNodeLabels({ [label]: 'a' }));
  }
  for (const [label, value, problem] of [
    ['node-role.kubernetes.io/worker', '', /node-role\.kubernetes\.io\/worker.*kubectl label node/],
    ['kubernetes.io/role', 'x', /Kubernetes' own/],
    ['x.k8s.io/y', 'x', /Kubernetes' own/],
    ['topology.kubernetes.io/rack', 'x', /Kubernetes' own/],
    ['bad key', 'x', /"bad key" is no label/],
    ['pool', 'bad value', /the value of "pool", "bad value"/],
  ] as const) {
    test(`may not be ${label}=${value}`, () => {
      assert.throws(
        () => checkNodeLabels({ good: '1', [label]: value }),
        (error) => error instanceof NodeLabelsError && problem.test(error.message),
      );
    });
  }
});
