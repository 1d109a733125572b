import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { PodSpec } from '../../kubernetes/types.ts';
import { PodSandboxConfig } from '../generated/cri.ts';
import { container, main, mebi, podOf, sandbox } from './translation-fixtures.ts';

suite('sandbox configuration', () => {
  test('a plain pod', () => {
    const pod = podOf({}, { labels: { app: 'web' }, annotations: { note: 'x' } });
    assert.deepEqual(sandbox({}, { pod, attempt: 3 }), {
      metadata: { name: 'web', namespace: 'shop', uid: 'u-1', attempt: 3 },
      hostname: 'web',
      logDirectory: '/var/log/pods/shop_web_u-1',
      dnsConfig: { servers: ['10.0.0.10'], searches: ['shop.svc'], options: ['ndots:5'] },
      portMappings: [],
      labels: {
        app: 'web',
        'io.kubernetes.pod.name': 'web',
        'io.kubernetes.pod.namespace': 'shop',
        'io.kubernetes.pod.uid': 'u-1',
      },
      annotations: { note: 'x' },
      linux: {
        cgroupParent: '/kubepods/pod-u-1',
        securityContext: {
          namespaceOptions: {
            network: 0,
            pid: 1,
            ipc: 0,
            targetId: '',
            usernsOptions: { mode: 2, uids: [], gids: [] },
          },
          selinuxOptions: undefined,
          runAsUser: undefined,
          runAsGroup: undefined,
          readonlyRootfs: false,
          supplementalGroups: [],
          supplementalGroupsPolicy: 0,
          privileged: false,
          seccomp: { profileType: 0, localhostRef: '' },
          seccompProfilePath: '',
          apparmor: undefined,
        },
        sysctls: {},
        overhead: {
          cpuPeriod: 0n,
          cpuQuota: 0n,
          cpuShares: 0n,
          memoryLimitInBytes: 0n,
          oomScoreAdj: 0n,
          cpusetCpus: '',
          cpusetMems: '',
          hugepageLimits: [],
          unified: {},
          memorySwapLimitInBytes: 0n,
        },
        resources: {
          cpuPeriod: 100_000n,
          cpuQuota: 0n,
          cpuShares: 2n,
          memoryLimitInBytes: 0n,
          oomScoreAdj: 0n,
          cpusetCpus: '',
          cpusetMems: '',
          hugepageLimits: [],
          unified: {},
          memorySwapLimitInBytes: 0n,
        },
      },
    });
  });

  test('a label of the pod cannot claim another identity', () => {
    const pod = podOf({}, { labels: { 'io.kubernetes.pod.uid': 'stolen' } });
    assert.equal(sandbox({}, { pod }).labels['io.kubernetes.pod.uid'], 'u-1');
  });

  test("the host's namespaces", () => {
    const config = sandbox({ hostNetwork: true, hostPID: true, hostIPC: true });
    assert.equal(config.hostname, '');
    const { network, pid, ipc } = config.linux?.securityContext?.namespaceOptions ?? {};
    assert.deepEqual({ network, pid, ipc }, { network: 2, pid: 2, ipc: 2 });
    assert.equal(sandbox({ shareProcessNamespace: true }).linux?.securityContext?.namespaceOptions?.pid, 0);
  });

  test('a user namespace of its own', () => {
    const userNamespace = { hostId: 65_536, length: 65_536 };
    const range = { hostId: 65_536, containerId: 0, length: 65_536 };
    const options = (spec: Partial<PodSpec>) =>
      sandbox(spec, { userNamespace }).linux?.securityContext?.namespaceOptions?.usernsOptions;
    assert.deepEqual(options({ hostUsers: false }), { mode: 0, uids: [range], gids: [range] });
    assert.deepEqual(options({ hostUsers: true }), { mode: 2, uids: [], gids: [] });
    const mount = { containerPath: '/a', hostPath: '/b' };
    const inside = container({}, { spec: { hostUsers: false }, userNamespace, mounts: [mount] });
    assert.deepEqual(inside.mounts[0]?.uidMappings, [range]);
    assert.deepEqual(inside.linux?.securityContext?.namespaceOptions?.usernsOptions?.gids, [range]);
  });

  test('ports of regular containers only, each once', () => {
    const ports = [
      { containerPort: 80, hostPort: 8080, protocol: 'TCP', hostIP: '127.0.0.1' },
      { containerPort: 80, hostPort: 8080, protocol: 'TCP', hostIP: '127.0.0.1' },
      { containerPort: 53, protocol: 'UDP' },
      { containerPort: 9, protocol: 'SCTP' },
      { containerPort: 90 },
    ];
    const config = sandbox({
      containers: [{ ...main, ports }],
      initContainers: [{ name: 'i', ports: [{ containerPort: 1 }], restartPolicy: 'Always' }],
    });
    assert.deepEqual(config.portMappings, [
      { protocol: 0, containerPort: 80, hostPort: 8080, hostIp: '127.0.0.1' },
      { protocol: 1, containerPort: 53, hostPort: 0, hostIp: '' },
      { protocol: 2, containerPort: 9, hostPort: 0, hostIp: '' },
      { protocol: 0, containerPort: 90, hostPort: 0, hostIp: '' },
    ]);
  });

  test('the security context of the pod', () => {
    const linux = sandbox(
      {
        initContainers: [{ name: 'i', securityContext: { privileged: true } }],
        securityContext: {
          runAsUser: 1000,
          runAsGroup: 2000,
          fsGroup: 3000,
          supplementalGroups: [4000],
          supplementalGroupsPolicy: 'Strict',
          seLinuxOptions: { level: 's0:c1' },
          seccompProfile: { type: 'Unconfined' },
          sysctls: [
            { name: 'net.ipv4.ip_forward', value: '1' },
            { name: 'net/ipv4/conf/eth0.5/rp_filter', value: '2' },
          ],
        },
      },
      { volumeGids: [3500] },
    ).linux;
    const security = linux?.securityContext;
    assert.deepEqual(linux?.sysctls, { 'net.ipv4.ip_forward': '1', 'net.ipv4.conf.eth0/5.rp_filter': '2' });
    assert.deepEqual(security?.supplementalGroups, [3000n, 3500n, 4000n]);
    assert.deepEqual(security?.runAsUser, { value: 1000n });
    assert.deepEqual(security?.runAsGroup, { value: 2000n });
    assert.deepEqual(security?.selinuxOptions, { user: '', role: '', type: '', level: 's0:c1' });
    assert.deepEqual(security?.seccomp, { profileType: 0, localhostRef: '' });
    assert.equal(security?.supplementalGroupsPolicy, 1);
    assert.equal(security?.privileged, true);
  });

  test('totals leave the overhead out, and tell it apart', () => {
    const resources = { requests: { cpu: '500m' }, limits: { cpu: '1', memory: '64Mi' } };
    const spec = { containers: [{ ...main, resources }], overhead: { cpu: '250m', memory: '32Mi' } };
    const linux = sandbox(spec).linux;
    assert.equal(linux?.resources?.cpuShares, 512n);
    assert.equal(linux?.resources?.cpuQuota, 100_000n);
    assert.equal(linux?.resources?.memoryLimitInBytes, BigInt(64 * mebi));
    assert.equal(linux?.overhead?.cpuShares, 256n);
    assert.equal(linux?.overhead?.cpuQuota, 25_000n);
    assert.equal(linux?.overhead?.memoryLimitInBytes, BigInt(32 * mebi));
    assert.equal(sandbox(spec, { hasExclusiveCpus: true }).linux?.resources?.cpuQuota, 0n);
    assert.equal(
      sandbox(spec, { cpuQuota: { enabled: false, periodUs: 1 } }).linux?.resources?.cpuPeriod,
      0n,
    );
  });

  test('the wire carries it unchanged', () => {
    const config = sandbox({ securityContext: { runAsUser: 1, sysctls: [{ name: 'a.b', value: 'c' }] } });
    assert.deepEqual(PodSandboxConfig.decode(PodSandboxConfig.encode(config).finish()), config);
  });
});
