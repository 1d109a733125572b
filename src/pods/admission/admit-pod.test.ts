import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { amountsOf } from '../../kubernetes/pod-resources.ts';
import type { Container, ObjectMeta, Pod, PodSpec } from '../../kubernetes/types.ts';
import { testPod } from '../fixtures/pod-model.ts';
import type { AdmittingNode, NodeState } from './admission.ts';
import { admitPod } from './admit-pod.ts';

const node: AdmittingNode = {
  name: 'alone',
  kernelRelease: '6.1.0-13-amd64',
  allocatable: amountsOf({
    cpu: '2',
    memory: '1Gi',
    pods: '3',
    'ephemeral-storage': '10Gi',
    'hugepages-2Mi': '4Mi',
    'example.com/gpu': '1',
  }),
  allowedUnsafeSysctls: ['kernel.msg*', 'net.core.somaxconn'],
  strictGroups: true,
  appArmor: true,
  podLevelResources: true,
  comparedTaints: false,
  undeclaredFeatures: [],
};
const state: NodeState = {
  placement: { labels: { zone: 'a' }, taints: [], known: true },
  missingDevices: new Set(),
  pressures: [],
  shuttingDown: false,
};

const podOf = (spec: Partial<PodSpec> = {}, metadata: Partial<ObjectMeta> = {}): Pod => {
  const pod = testPod(spec);
  return { ...pod, metadata: { ...pod.metadata, ...metadata } };
};
const main = (own: Partial<Container>): Partial<PodSpec> => ({ containers: [{ name: 'web', ...own }] });
const asking = (requests: Record<string, string>) => podOf(main({ resources: { requests } }));

/** `Reason: message`, or `admitted`. */
function verdict(
  pod: Pod,
  given: Partial<AdmittingNode & NodeState> = {},
  others: readonly Pod[] = [],
): string {
  const admission = admitPod(pod, { node: { ...node, ...given }, state: { ...state, ...given }, others });
  if (admission.admitted) return 'admitted';
  const waits = admission.waitsFor ? ` (waits for ${admission.waitsFor.kind})` : '';
  return `${admission.reason}: ${admission.message}${waits}`;
}

suite('admission', () => {
  test('a plain pod, and one that is meant for this node', () => {
    assert.equal(verdict(podOf()), 'admitted');
    assert.equal(verdict(podOf({ nodeName: 'alone', os: { name: 'linux' } })), 'admitted');
    assert.equal(verdict(podOf({}, { labels: { 'kubernetes.io/os': 'linux' } })), 'admitted');
  });

  test('another node, another system', () => {
    assert.equal(
      verdict(podOf({ nodeName: 'other' })),
      "NodeName: Predicate NodeName failed: node(s) didn't match the requested node name",
    );
    assert.equal(
      verdict(podOf({ os: { name: 'windows' } })),
      "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
    );
    assert.equal(
      verdict(podOf({}, { labels: { 'kubernetes.io/os': 'windows' } })),
      "PodOSSelectorNodeLabelDoesNotMatch: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    );
  });

  test('what the runtime or a gate does not offer', () => {
    const strict = podOf({ securityContext: { supplementalGroupsPolicy: 'Strict' } });
    assert.equal(verdict(strict), 'admitted');
    assert.equal(
      verdict(strict, { strictGroups: false }),
      'SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node',
    );
    const merge = podOf({ securityContext: { supplementalGroupsPolicy: 'Merge' } });
    assert.equal(verdict(merge, { strictGroups: false }), 'admitted');
    const podLevel = podOf({ resources: { limits: { cpu: '1' } } });
    assert.equal(verdict(podLevel), 'admitted');
    assert.equal(
      verdict(podLevel, { podLevelResources: false }),
      'PodLevelResourcesNotSupported: PodLevelResources feature gate is disabled',
    );
    assert.equal(verdict(podOf({ resources: {} }), { podLevelResources: false }), 'admitted');
  });

  test('the first refusal in the order of Kubernetes counts', () => {
    const everythingWrong = podOf({
      nodeName: 'other',
      os: { name: 'windows' },
      ...main({ resources: { requests: { cpu: '9' } } }),
      securityContext: {
        sysctls: [{ name: 'kernel.panic', value: '1' }],
        appArmorProfile: { type: 'RuntimeDefault' },
      },
    });
    assert.match(verdict(everythingWrong, { appArmor: false }), /^SysctlForbidden/);
    const { securityContext: _, ...spec } = everythingWrong.spec;
    assert.match(verdict({ ...everythingWrong, spec }), /^PodOSNotSupported/);
    assert.match(verdict({ ...everythingWrong, spec: { ...spec, os: { name: 'linux' } } }), /^OutOfcpu/);
  });
});

suite('admission of sysctls', () => {
  const withSysctl = (name: string, spec: Partial<PodSpec> = {}) =>
    podOf({ ...spec, securityContext: { sysctls: [{ name, value: '1' }] } });
  const forbidden = (name: string, why: string) => `SysctlForbidden: forbidden sysctl: "${name}" ${why}`;

  const safe: [name: string, since: string | undefined][] = [
    ['kernel.shm_rmid_forced', undefined],
    ['net.ipv4.ip_local_port_range', undefined],
    ['net.ipv4.tcp_syncookies', undefined],
    ['net.ipv4.ping_group_range', undefined],
    ['net.ipv4.ip_unprivileged_port_start', undefined],
    ['net.ipv4.ip_local_reserved_ports', '3.16'],
    ['net.ipv4.tcp_keepalive_time', '4.5'],
    ['net.ipv4.tcp_fin_timeout', '4.6'],
    ['net.ipv4.tcp_keepalive_intvl', '4.5'],
    ['net.ipv4.tcp_keepalive_probes', '4.5'],
    ['net.ipv4.tcp_rmem', '4.15'],
    ['net.ipv4.tcp_wmem', '4.15'],
  ];
  for (const [name, since] of safe) {
    test(`${name} is safe${since ? ` from Linux ${since} on` : ''}`, () => {
      assert.equal(verdict(withSysctl(name)), 'admitted');
      assert.equal(verdict(withSysctl(name.replaceAll('.', '/'))), 'admitted');
      const old = verdict(withSysctl(name), { kernelRelease: '3.15.9' });
      assert.equal(old, since ? forbidden(name, 'not allowlisted') : 'admitted');
      if (since) assert.equal(verdict(withSysctl(name), { kernelRelease: `${since}.0-rc1` }), 'admitted');
    });
  }

  test('what the operator allows, by name and by prefix, and nothing else', () => {
    for (const name of ['kernel.msgmax', 'kernel/msgmnb', 'net.core.somaxconn']) {
      assert.equal(verdict(withSysctl(name)), 'admitted', name);
    }
    for (const name of ['kernel.shmmax', 'net.core.somaxconn_x', 'net.core', 'kernel.panic']) {
      assert.equal(verdict(withSysctl(name)), forbidden(name, 'not allowlisted'));
    }
  });

  test("no parameter of the whole kernel, even when it is listed, and none of the host's namespaces", () => {
    const everything = { allowedUnsafeSysctls: ['*', 'kernel.*'] };
    assert.equal(
      verdict(withSysctl('kernel.panic'), everything),
      forbidden('kernel.panic', 'not allowlisted'),
    );
    assert.equal(
      verdict(withSysctl('net.ipv4.tcp_syncookies', { hostNetwork: true })),
      forbidden('net.ipv4.tcp_syncookies', 'not allowed with host net enabled'),
    );
    assert.equal(
      verdict(withSysctl('kernel.shm_rmid_forced', { hostIPC: true })),
      forbidden('kernel.shm_rmid_forced', 'not allowed with host ipc enabled'),
    );
    assert.equal(verdict(withSysctl('kernel.shm_rmid_forced', { hostNetwork: true })), 'admitted');
  });
});

suite('admission of host ports', () => {
  const listening = (hostPort: number, protocol = 'TCP', hostIP?: string) =>
    podOf(main({ ports: [{ containerPort: 80, hostPort, protocol, ...(hostIP ? { hostIP } : {}) }] }));
  const taken =
    "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";

  test('port, protocol and address decide', () => {
    assert.equal(verdict(listening(80), {}, [listening(81), listening(80, 'UDP')]), 'admitted');
    assert.equal(verdict(listening(80), {}, [podOf(), listening(80)]), taken);
    const on = (ip: string) => listening(80, 'TCP', ip);
    assert.equal(verdict(on('10.0.0.1'), {}, [on('10.0.0.2')]), 'admitted');
    assert.equal(verdict(on('10.0.0.1'), {}, [on('10.0.0.1')]), taken);
    assert.equal(verdict(on('10.0.0.1'), {}, [listening(80)]), taken);
    assert.equal(verdict(listening(80), {}, [on('10.0.0.1')]), taken);
  });

  test('containers without a host port do not count, sidecars do, init containers do not', () => {
    const ports = [{ containerPort: 80, hostPort: 80 }];
    const sidecar = podOf({ initContainers: [{ name: 'i', restartPolicy: 'Always', ports }] });
    const init = podOf({ initContainers: [{ name: 'i', ports }] });
    assert.equal(verdict(listening(80), {}, [sidecar]), taken);
    assert.equal(verdict(listening(80), {}, [init]), 'admitted');
    const inside = podOf(main({ ports: [{ containerPort: 80 }] }));
    assert.equal(verdict(inside, {}, [inside]), 'admitted');
  });
});

suite('admission of resources', () => {
  test('figures of what is wanted, used and there', () => {
    const other = asking({ cpu: '1500m', memory: '256Mi' });
    assert.equal(
      verdict(asking({ cpu: '600m' }), {}, [other]),
      "OutOfcpu: Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000",
    );
    assert.equal(verdict(asking({ cpu: '500m' }), {}, [other]), 'admitted');
    assert.equal(
      verdict(asking({ memory: '769Mi' }), {}, [other]),
      "OutOfmemory: Node didn't have enough resource: memory, requested: 806354944, used: 268435456, capacity: 1073741824",
    );
    assert.equal(
      verdict(asking({ 'ephemeral-storage': '11Gi' })),
      "OutOfephemeral-storage: Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240",
    );
    assert.equal(
      verdict(podOf(), {}, [podOf(), podOf(), podOf()]),
      "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
    );
  });

  test('a pod that asks for nothing fits a node that is full', () => {
    assert.equal(verdict(podOf(), {}, [asking({ cpu: '2', memory: '1Gi' })]), 'admitted');
    assert.equal(verdict(asking({ cpu: '0' }), {}, [asking({ cpu: '3' })]), 'admitted');
  });

  test('huge pages and extended resources', () => {
    const pages = (size: string, amount: string) =>
      podOf(main({ resources: { limits: { [`hugepages-${size}`]: amount } } }));
    assert.equal(verdict(pages('2Mi', '4Mi')), 'admitted');
    assert.match(verdict(pages('2Mi', '6Mi')), /^OutOfhugepages-2Mi: .*requested: 6291456, used: 0/);
    assert.match(verdict(pages('1Gi', '1Gi')), /^OutOfhugepages-1Gi: .*capacity: 0$/);
    const gpu = podOf(main({ resources: { limits: { 'example.com/gpu': '1' } } }));
    assert.equal(verdict(gpu), 'admitted');
    assert.equal(
      verdict(gpu, {}, [gpu]),
      "OutOfexample.com/gpu: Node didn't have enough resource: example.com/gpu, requested: 1, used: 1, capacity: 1",
    );
    const unknown = podOf(main({ resources: { limits: { 'example.com/fpga': '5' } } }));
    assert.equal(verdict(unknown), 'admitted');
  });

  test('storage is not counted where the node does not know its own', () => {
    const allocatable = amountsOf({ cpu: '2', memory: '1Gi', pods: '3' });
    assert.equal(verdict(asking({ 'ephemeral-storage': '11Gi' }), { allocatable }), 'admitted');
  });

  test('overhead, sidecars and the largest init container count', () => {
    const spec = (cpu: string): Partial<PodSpec> => ({
      overhead: { cpu: '500m' },
      initContainers: [
        { name: 'side', restartPolicy: 'Always', resources: { requests: { cpu: '300m' } } },
        { name: 'init', resources: { requests: { cpu } } },
      ],
    });
    assert.equal(verdict(podOf(spec('1200m'))), 'admitted');
    assert.match(verdict(podOf(spec('1201m'))), /^OutOfcpu: .*requested: 2001,/);
  });

  test('pods that were admitted one after the other never ask for more than there is', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2500 }), { maxLength: 12 }), (requests) => {
        const allocatable = amountsOf({ cpu: '2', memory: '1Gi', pods: '6' });
        const admitted: number[] = [];
        const pods: Pod[] = [];
        for (const milli of requests) {
          const pod = asking({ cpu: `${milli}m` });
          if (verdict(pod, { allocatable }, pods) !== 'admitted') continue;
          pods.push(pod);
          admitted.push(milli);
        }
        const sum = admitted.reduce((total, milli) => total + milli, 0);
        assert.ok(pods.length <= 6 && sum <= 2000, `${pods.length} pods, ${sum}m`);
      }),
    );
  });
});

suite('admission of AppArmor', () => {
  const onPod = (type: string) => podOf({ securityContext: { appArmorProfile: { type } } });
  const onContainer = (type: string, localhostProfile?: string) =>
    podOf(
      main({
        securityContext: { appArmorProfile: { type, ...(localhostProfile ? { localhostProfile } : {}) } },
      }),
    );
  const annotated = (value: string) =>
    podOf({}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/web': value } });
  const off = { appArmor: false };
  const disabled = 'AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host';

  test('[sig-node] AppArmor [NodeConformance] when running without AppArmor should reject a pod with an AppArmor profile in field', () => {
    for (const pod of [
      onPod('RuntimeDefault'),
      onContainer('RuntimeDefault'),
      onContainer('Localhost', 'p'),
    ]) {
      assert.equal(verdict(pod, off), disabled);
      assert.equal(verdict(pod), 'admitted');
    }
  });

  test('[sig-node] AppArmor [NodeConformance] when running without AppArmor should reject a pod with an AppArmor profile in annotation', () => {
    for (const value of ['runtime/default', 'localhost/p']) {
      assert.equal(verdict(annotated(value), off), disabled);
      assert.equal(verdict(annotated(value)), 'admitted');
    }
  });

  test('a pod that wants no profile runs anywhere', () => {
    for (const pod of [podOf(), onPod('Unconfined'), onContainer('Unconfined'), annotated('unconfined')]) {
      assert.equal(verdict(pod, off), 'admitted');
    }
  });

  test('profiles nobody could enforce', () => {
    assert.equal(
      verdict(onContainer('Localhost')),
      'AppArmor: Cannot enforce AppArmor: missing localhost apparmor profile name',
    );
    assert.equal(
      verdict(annotated('strict')),
      'AppArmor: Cannot enforce AppArmor: invalid AppArmor profile name: "strict"',
    );
  });
});

suite('admission by the state of the node', () => {
  const small = asking({ memory: '1Mi' });
  const evicted = (conditions: string) => `Evicted: The node had condition: [${conditions}]. `;

  test('pressure keeps out all but critical pods, and memory pressure only those that ask for nothing', () => {
    const memory = { pressures: ['MemoryPressure'] };
    assert.equal(verdict(podOf(), memory), evicted('MemoryPressure'));
    assert.equal(verdict(small, memory), 'admitted');
    const key = 'node.kubernetes.io/memory-pressure';
    const tolerant = podOf({ tolerations: [{ key, operator: 'Exists', effect: 'NoSchedule' }] });
    assert.equal(verdict(tolerant, memory), 'admitted');
    assert.equal(verdict(small, { pressures: ['DiskPressure'] }), evicted('DiskPressure'));
    const both = { pressures: ['MemoryPressure', 'DiskPressure'] };
    assert.equal(verdict(small, both), evicted('MemoryPressure DiskPressure'));
    assert.equal(verdict(podOf({ priority: 2_000_000_000 }), both), 'admitted');
    assert.equal(
      verdict(podOf({}, { annotations: { 'kubernetes.io/config.source': 'file' } }), both),
      'admitted',
    );
  });

  test('shutdown comes after everything else', () => {
    const down = { shuttingDown: true };
    assert.equal(verdict(podOf(), down), 'NodeShutdown: Pod was rejected as the node is shutting down.');
    assert.match(verdict(podOf({ nodeName: 'other' }), down), /^NodeName/);
  });

  const affinity =
    "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";

  test('node affinity is for good once the labels are known, and waits before', () => {
    assert.equal(verdict(podOf({ nodeSelector: { zone: 'a' } })), 'admitted');
    const elsewhere = podOf({ nodeSelector: { zone: 'b' } });
    assert.equal(verdict(elsewhere), affinity);
    const placement = { labels: { zone: 'a' }, taints: [], known: false };
    assert.equal(verdict(elsewhere, { placement }), `${affinity} (waits for node-object)`);
    assert.equal(verdict(podOf({ nodeSelector: { zone: 'a' } }), { placement }), 'admitted');
    // What can never be, is not waited for.
    assert.match(
      verdict(podOf({ nodeSelector: { zone: 'b' }, nodeName: 'other' }), { placement }),
      /^NodeName/,
    );
  });

  test('taints that evict keep pods out, static pods excepted', () => {
    const taint = { key: 'k', value: '5', effect: 'NoExecute' };
    const placement = { labels: {}, taints: [{ ...taint, effect: 'NoSchedule' }, taint], known: true };
    const tainted =
      "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
    assert.equal(verdict(podOf(), { placement }), tainted);
    assert.equal(
      verdict(podOf({ tolerations: [{ key: 'k', operator: 'Exists' }] }), { placement }),
      'admitted',
    );
    const above = podOf({ tolerations: [{ key: 'k', operator: 'Gt', value: '4' }] });
    assert.equal(verdict(above, { placement }), tainted);
    assert.equal(verdict(above, { placement, comparedTaints: true }), 'admitted');
    assert.equal(
      verdict(podOf({}, { annotations: { 'kubernetes.io/config.source': 'file' } }), { placement }),
      'admitted',
    );
  });

  test('devices that were there before are waited for', () => {
    const missing = { missingDevices: new Set(['example.com/fpga']) };
    const wanting = asking({ 'example.com/fpga': '1' });
    assert.equal(
      verdict(wanting, missing),
      'UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy ' +
        'devices example.com/fpga, which is unexpected (waits for device-plugin)',
    );
    assert.equal(verdict(asking({ 'example.com/fpga': '0' }), missing), 'admitted');
    assert.equal(verdict(wanting), 'admitted', 'what nobody ever offered is somebody else’s matter');
    assert.equal(
      verdict(asking({ 'example.com/gpu': '1' }), { missingDevices: new Set(['example.com/gpu']) }),
      'admitted',
    );
  });

  test('features this node declares not to have', () => {
    const starting = podOf(
      main({
        restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [1] } }],
      }),
    );
    const feature = 'RestartAllContainersOnContainerExits';
    assert.equal(verdict(starting), 'admitted');
    assert.equal(
      verdict(starting, { undeclaredFeatures: [feature] }),
      `PodFeatureUnsupported: Pod requires node features that are not available: ${feature}`,
    );
    assert.equal(verdict(podOf(), { undeclaredFeatures: [feature] }), 'admitted');

    const users = 'UserNamespacesHostNetworkSupport';
    const both = podOf({ hostNetwork: true, hostUsers: false });
    assert.equal(verdict(both), 'admitted');
    assert.equal(
      verdict(both, { undeclaredFeatures: [users] }),
      `PodFeatureUnsupported: Pod requires node features that are not available: ${users}`,
    );
    for (const spec of [{ hostNetwork: true }, { hostUsers: false }]) {
      assert.equal(verdict(podOf(spec), { undeclaredFeatures: [users] }), 'admitted');
    }
  });
});
