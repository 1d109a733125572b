import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultPod } from './pod-defaults.ts';
import type { PodManifest } from './types.ts';

type Spec = NonNullable<PodManifest['spec']>;

/** The spec after defaulting of one with the given fields. */
function defaulted(spec: object): Spec {
  return defaultPod({ spec: spec as Spec }).spec!;
}

function container(fields: object, spec: object = {}) {
  return defaulted({ ...spec, containers: [{ name: 'c', image: 'x:1', ...fields }] }).containers[0]!;
}

function volume(source: object) {
  return defaulted({ containers: [], volumes: [{ name: 'v', ...source }] }).volumes![0]!;
}

describe('defaults of a pod', () => {
  it('fills in an empty spec', () => {
    const expected = {
      restartPolicy: 'Always',
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
      terminationGracePeriodSeconds: 30,
      securityContext: {},
      enableServiceLinks: true,
    };
    assert.deepEqual(defaultPod({}), { spec: expected });
    assert.deepEqual(defaultPod({ spec: { restartPolicy: '', dnsPolicy: '' } as Spec }), { spec: expected });
  });

  it('keeps what is said', () => {
    const said = {
      containers: [],
      restartPolicy: 'Never',
      dnsPolicy: 'Default',
      schedulerName: 'mine',
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsUser: 1 },
      enableServiceLinks: false,
    };
    assert.deepEqual(defaulted(said), said);
  });

  it('keeps the two names of the service account equal', () => {
    const both = { serviceAccount: 'a', serviceAccountName: 'a' };
    for (const one of [{ serviceAccount: 'a' }, { serviceAccountName: 'a' }]) {
      const { serviceAccount, serviceAccountName } = defaulted(one);
      assert.deepEqual({ serviceAccount, serviceAccountName }, both);
    }
    assert.equal(defaulted({ serviceAccount: 'old', serviceAccountName: 'new' }).serviceAccount, 'new');
  });
});

describe('defaults of containers', () => {
  const policies: [image: string, policy: string][] = [
    ['app', 'Always'],
    ['app:latest', 'Always'],
    ['host:5000/app', 'Always'],
    ['host:5000/app:latest', 'Always'],
    ['app:1', 'IfNotPresent'],
    ['host:5000/app:1', 'IfNotPresent'],
    ['app@sha256:0123', 'IfNotPresent'],
    ['app:1@sha256:0123', 'IfNotPresent'],
    ['app:latest@sha256:0123', 'Always'],
    ['', 'IfNotPresent'],
  ];
  for (const [image, policy] of policies) {
    it(`pulls "${image}" ${policy}`, () => assert.equal(container({ image }).imagePullPolicy, policy));
  }

  it('sets the termination message and leaves a given policy', () => {
    assert.deepEqual(container({ imagePullPolicy: 'Never' }), {
      name: 'c',
      image: 'x:1',
      imagePullPolicy: 'Never',
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
    });
  });

  it('makes ports TCP, and host ports on the host network', () => {
    const ports = [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP', hostPort: 54 }];
    assert.deepEqual(container({ ports }).ports, [{ containerPort: 80, protocol: 'TCP' }, ports[1]]);
    assert.deepEqual(container({ ports }, { hostNetwork: true }).ports, [
      { containerPort: 80, protocol: 'TCP', hostPort: 80 },
      ports[1],
    ]);
  });

  it('fills in probes and hooks', () => {
    const timing = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
    const result = container({
      livenessProbe: { httpGet: { port: 80 } },
      readinessProbe: { grpc: { port: 9 }, timeoutSeconds: 5, periodSeconds: 0 },
      startupProbe: { exec: { command: ['a'] } },
      lifecycle: { preStop: { httpGet: { port: 1, path: '/x' } } },
    });
    assert.deepEqual(result.livenessProbe, { httpGet: { port: 80, path: '/', scheme: 'HTTP' }, ...timing });
    assert.deepEqual(result.readinessProbe, { grpc: { port: 9, service: '' }, ...timing, timeoutSeconds: 5 });
    assert.deepEqual(result.startupProbe, { exec: { command: ['a'] }, ...timing });
    assert.deepEqual(result.lifecycle, { preStop: { httpGet: { port: 1, path: '/x', scheme: 'HTTP' } } });
  });

  it('fills in where variables come from', () => {
    const env = [
      { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'B', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'k' } } },
    ];
    const result = container({ env }).env;
    assert.equal(result?.[0]?.valueFrom?.fieldRef?.apiVersion, 'v1');
    assert.equal(result?.[1]?.valueFrom?.fileKeyRef?.optional, false);
  });

  it('requests what is limited and not requested, in init containers too', () => {
    const resources = { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } };
    const expected = { ...resources, requests: { cpu: '500m', memory: '1Gi' } };
    assert.deepEqual(container({ resources }).resources, expected);
    const init = { containers: [], initContainers: [{ name: 'i', image: 'x', resources }] };
    assert.deepEqual(defaulted(init).initContainers?.[0]?.resources, expected);
    assert.deepEqual(container({ resources: { requests: { cpu: '1' } } }).resources, {
      requests: { cpu: '1' },
    });
  });

  it('treats ephemeral containers as containers, without resources', () => {
    const debug = { name: 'd', image: 'x', resources: { limits: { cpu: '1' } } };
    const result = defaulted({ containers: [], ephemeralContainers: [debug] }).ephemeralContainers?.[0];
    assert.equal(result?.imagePullPolicy, 'Always');
    assert.equal(result?.terminationMessagePolicy, 'File');
    assert.deepEqual(result?.resources, debug.resources);
  });
});

describe('defaults of pod-level resources', () => {
  const podResources = (resources: object, ...containers: object[]) =>
    defaulted({ resources, containers: containers.map((own) => ({ name: 'c', image: 'x', resources: own })) })
      .resources;

  it('requests what the containers request together, or else the limit', () => {
    const limits = { cpu: '2', memory: '1Gi' };
    assert.deepEqual(podResources({ limits }, { requests: { cpu: '300m' } }, { requests: { cpu: '200m' } }), {
      limits,
      requests: { cpu: '500m', memory: '1Gi' },
    });
  });

  it('leaves requests alone where there are no limits', () => {
    assert.deepEqual(podResources({ requests: { cpu: '1' } }, { requests: { memory: '1Gi' } }), {
      requests: { cpu: '1' },
    });
    assert.equal(podResources(undefined as unknown as object, { requests: { cpu: '1' } }), undefined);
  });

  it('takes over the huge pages of the containers', () => {
    const own = { limits: { cpu: '1', 'hugepages-2Mi': '4Mi' } };
    assert.deepEqual(podResources({ limits: { cpu: '4' } }, own, own), {
      limits: { cpu: '4', 'hugepages-2Mi': '8Mi' },
      requests: { cpu: '2', 'hugepages-2Mi': '8Mi' },
    });
  });
});

describe('defaults of volumes', () => {
  const cases: [source: object, expected: object][] = [
    [{}, { emptyDir: {} }],
    [{ emptyDir: null }, { emptyDir: {} }],
    [{ hostPath: { path: '/a' } }, { hostPath: { path: '/a', type: '' } }],
    [{ secret: { secretName: 's' } }, { secret: { secretName: 's', defaultMode: 0o644 } }],
    [{ secret: { secretName: 's', defaultMode: 0 } }, { secret: { secretName: 's', defaultMode: 0 } }],
    [{ configMap: { name: 'm' } }, { configMap: { name: 'm', defaultMode: 0o644 } }],
    [
      { downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.name' } }] } },
      {
        downwardAPI: {
          items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.name', apiVersion: 'v1' } }],
          defaultMode: 0o644,
        },
      },
    ],
    [
      { projected: { sources: [{ serviceAccountToken: { path: 'p' } }] } },
      {
        projected: {
          sources: [{ serviceAccountToken: { path: 'p', expirationSeconds: 3600 } }],
          defaultMode: 0o644,
        },
      },
    ],
    [{ image: { reference: 'x' } }, { image: { reference: 'x', pullPolicy: 'Always' } }],
    [
      { ephemeral: { volumeClaimTemplate: { spec: {} } } },
      { ephemeral: { volumeClaimTemplate: { spec: { volumeMode: 'Filesystem' } } } },
    ],
    [{ iscsi: { iqn: 'i' } }, { iscsi: { iqn: 'i', iscsiInterface: 'default' } }],
    [
      { rbd: { image: 'i' } },
      { rbd: { image: 'i', pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' } },
    ],
    [
      { azureDisk: { diskName: 'd' } },
      {
        azureDisk: {
          diskName: 'd',
          cachingMode: 'ReadWrite',
          kind: 'Shared',
          fsType: 'ext4',
          readOnly: false,
        },
      },
    ],
    [
      { scaleIO: { system: 's' } },
      { scaleIO: { system: 's', storageMode: 'ThinProvisioned', fsType: 'xfs' } },
    ],
    // A mistyped kind must not quietly become an empty directory.
    [{ hostpath: { path: '/' } }, { hostpath: { path: '/' } }],
  ];
  for (const [source, expected] of cases) {
    it(JSON.stringify(source), () => assert.deepEqual(volume(source), { name: 'v', ...expected }));
  }
});
