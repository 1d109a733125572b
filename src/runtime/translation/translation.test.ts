import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Container, Pod, PodSpec } from '../../kubernetes/types.ts';
import { ContainerConfig, PodSandboxConfig } from '../generated/cri.ts';
import { type ContainerConfigInput, containerConfig } from './container-config.ts';
import { cpuQuota, cpuShares, type NodeResourceSettings, pageSizeName } from './linux-resources.ts';
import { etcHostsMount, needsEtcHosts, terminationLogMount } from './mounts.ts';
import { type SandboxConfigInput, sandboxConfig } from './sandbox-config.ts';

const mebi = 2 ** 20;
const gibi = 2 ** 30;
const main: Container = { name: 'main', image: 'nginx:1' };

function podOf(spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'u-1', ...metadata },
    spec: {
      containers: [main],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      ...spec,
    },
  };
}

const cpuQuotaSettings = { enabled: true, periodUs: 100_000 };

function sandbox(spec: Partial<PodSpec> = {}, input: Partial<SandboxConfigInput> = {}): PodSandboxConfig {
  return sandboxConfig({
    pod: podOf(spec),
    attempt: 0,
    hostname: 'web',
    logDirectory: '/var/log/pods/shop_web_u-1',
    dns: { servers: ['10.0.0.10'], searches: ['shop.svc'], options: ['ndots:5'] },
    cgroupParent: '/kubepods/pod-u-1',
    cpuQuota: cpuQuotaSettings,
    ...input,
  });
}

const node: NodeResourceSettings = {
  cgroupVersion: 2,
  nodeMemoryBytes: 8 * gibi,
  cpuQuota: cpuQuotaSettings,
  hugePageSizes: [],
  swap: { controllerAvailable: true, behavior: 'NoSwap', totalBytes: 4 * gibi },
  singleProcessOomKill: false,
};

interface Given extends Partial<Omit<ContainerConfigInput, 'pod' | 'container'>> {
  spec?: Partial<PodSpec>;
  metadata?: Partial<Pod['metadata']>;
}

function container(own: Partial<Container> = {}, given: Given = {}): ContainerConfig {
  const { spec, metadata, ...input } = given;
  const one = { ...main, ...own };
  return containerConfig({
    pod: podOf({ containers: [one], ...spec }, metadata),
    container: one,
    restartCount: 0,
    imageRef: 'sha256:1',
    imageUser: {},
    environment: new Map(),
    mounts: [],
    resources: node,
    security: { rootDirectory: '/var/lib/kubelet', seccompDefault: false, thermalThrottlePaths: [] },
    ...input,
  });
}

const securityOf = (own: Container['securityContext'], given: Given = {}) => {
  const config = container(own ? { securityContext: own } : {}, given);
  assert.ok(config.linux?.securityContext);
  return config.linux.securityContext;
};
const resourcesOf = (resources: Container['resources'], given: Given = {}) => {
  const config = container(resources ? { resources } : {}, given);
  assert.ok(config.linux?.resources);
  return config.linux.resources;
};

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

suite('container configuration', () => {
  test('names, labels, annotations, image and log path', () => {
    const config = container(
      {
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        ports: [{ containerPort: 80, protocol: 'TCP', name: 'http' }],
        lifecycle: { preStop: { exec: { command: ['true'] } } },
        workingDir: '/srv',
        stdin: true,
        tty: true,
      },
      {
        restartCount: 4,
        metadata: { deletionGracePeriodSeconds: 7 },
        annotations: { note: 'kept', 'io.kubernetes.container.hash': 'forged' },
        additions: { annotations: { device: 'd' } },
      },
    );
    assert.deepEqual(config.metadata, { name: 'main', attempt: 4 });
    assert.equal(config.image?.image, 'sha256:1');
    assert.equal(config.image?.userSpecifiedImage, 'nginx:1');
    assert.equal(config.logPath, 'main/4.log');
    assert.deepEqual(
      [config.workingDir, config.stdin, config.stdinOnce, config.tty],
      ['/srv', true, false, true],
    );
    assert.deepEqual(config.labels, {
      'io.kubernetes.pod.name': 'web',
      'io.kubernetes.pod.namespace': 'shop',
      'io.kubernetes.pod.uid': 'u-1',
      'io.kubernetes.container.name': 'main',
    });
    const { 'io.kubernetes.container.hash': hash, ...annotations } = config.annotations;
    assert.match(hash ?? '', /^[0-9a-f]{1,8}$/);
    assert.notEqual(hash, 'forged');
    assert.deepEqual(annotations, {
      note: 'kept',
      device: 'd',
      'io.kubernetes.container.restartCount': '4',
      'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
      'io.kubernetes.container.terminationMessagePolicy': 'File',
      'io.kubernetes.pod.terminationGracePeriod': '30',
      'io.kubernetes.pod.deletionGracePeriod': '7',
      'io.kubernetes.container.preStopHandler': '{"exec":{"command":["true"]}}',
      'io.kubernetes.container.ports': '[{"name":"http","containerPort":80,"protocol":"TCP"}]',
    });
  });

  test('command and arguments are expanded with the environment', () => {
    const config = container(
      { command: ['run', '$(A)', '$(DEVICE)'], args: ['$(B)', '$$(A)'] },
      { environment: new Map([['A', 'é']]), additions: { environment: [['DEVICE', 'gpu0']] } },
    );
    assert.deepEqual(config.command, ['run', 'é', 'gpu0']);
    assert.deepEqual(config.args, ['$(B)', '$(A)']);
    assert.deepEqual(
      config.envs.map(({ key, value }) => [key, value.toString('utf8')]),
      [
        ['A', 'é'],
        ['DEVICE', 'gpu0'],
      ],
    );
  });

  test('mounts and devices', () => {
    const config = container(
      {},
      {
        mounts: [
          { containerPath: 'data', hostPath: '/h', readOnly: true, recursiveReadOnly: true },
          { containerPath: '/b', hostPath: '/b', propagation: 'Bidirectional', selinuxRelabel: true },
          { containerPath: '/c', hostPath: '/c', propagation: 'HostToContainer' },
          { containerPath: '/i', hostPath: '', image: { reference: 'sha256:9', subPath: 'x' } },
        ],
        devices: [{ hostPath: '/dev/sda', containerPath: '/dev/x', permissions: 'r' }],
        additions: {
          mounts: [{ containerPath: '/lib', hostPath: '/opt/lib' }],
          devices: [{ hostPath: '/dev/gpu', containerPath: '/dev/gpu', permissions: 'mrw' }],
          cdiDevices: ['vendor.com/gpu=0'],
        },
      },
    );
    assert.deepEqual(
      config.mounts.map(({ containerPath, readonly, recursiveReadOnly, propagation, selinuxRelabel }) => [
        containerPath,
        readonly,
        recursiveReadOnly,
        propagation,
        selinuxRelabel,
      ]),
      [
        ['/data', true, true, 0, false],
        ['/b', false, false, 2, true],
        ['/c', false, false, 1, false],
        ['/i', false, false, 0, false],
        ['/lib', false, false, 0, false],
      ],
    );
    assert.equal(config.mounts[3]?.image?.image, 'sha256:9');
    assert.equal(config.mounts[3]?.imageSubPath, 'x');
    assert.deepEqual(
      config.devices.map(({ hostPath, permissions }) => [hostPath, permissions]),
      [
        ['/dev/gpu', 'mrw'],
        ['/dev/sda', 'r'],
      ],
    );
    assert.deepEqual(config.cdiDevices, [{ name: 'vendor.com/gpu=0' }]);
  });

  test('hosts file and termination log', () => {
    const pod = podOf();
    assert.equal(needsEtcHosts(pod.spec, main, []), false);
    assert.equal(needsEtcHosts(pod.spec, main, ['10.0.0.2']), true);
    assert.equal(needsEtcHosts({ ...pod.spec, hostNetwork: true }, main, []), true);
    const taken = { volumeMounts: [{ name: 'v', mountPath: '/etc/hosts' }] };
    assert.equal(needsEtcHosts(pod.spec, taken, ['10.0.0.2']), false);
    assert.deepEqual(etcHostsMount('/p/etc-hosts', true), {
      containerPath: '/etc/hosts',
      hostPath: '/p/etc-hosts',
      selinuxRelabel: true,
    });
    assert.equal(terminationLogMount({}, '/p/x', false), undefined);
    assert.equal(terminationLogMount({ terminationMessagePath: '/t' }, '/p/x', false)?.containerPath, '/t');
  });

  test('an ephemeral container joins the processes of its target', () => {
    const options = container({}, { targetId: 'c-1' }).linux?.securityContext?.namespaceOptions;
    assert.deepEqual([options?.pid, options?.targetId], [3, 'c-1']);
  });

  test('a stop signal is sent only when the gate is on', () => {
    const lifecycle = { stopSignal: 'SIGUSR1' };
    assert.equal(container({ lifecycle }, { stopSignals: true }).stopSignal, 29);
    assert.equal(container({ lifecycle }).stopSignal, 0);
    assert.equal(container({ lifecycle: { stopSignal: 'toString' } }, { stopSignals: true }).stopSignal, 0);
  });

  test('the wire carries it unchanged', () => {
    const config = container(
      { securityContext: { capabilities: { add: ['NET_ADMIN'] }, runAsUser: 5 } },
      { environment: new Map([['A', 'b']]) },
    );
    assert.deepEqual(ContainerConfig.decode(ContainerConfig.encode(config).finish()), config);
  });
});

suite('container security', () => {
  test('what nobody says', () => {
    const security = securityOf(undefined);
    assert.deepEqual(security.runAsUser, { value: 0n });
    assert.deepEqual(security.seccomp, { profileType: 1, localhostRef: '' });
    assert.equal(security.capabilities, undefined);
    assert.equal(security.apparmor, undefined);
    assert.equal(security.noNewPrivs, false);
    assert.equal(security.maskedPaths.length, 12);
    assert.deepEqual(security.readonlyPaths, [
      '/proc/bus',
      '/proc/fs',
      '/proc/irq',
      '/proc/sys',
      '/proc/sysrq-trigger',
    ]);
  });

  test('the container wins over the pod, the pod over the image', () => {
    const imageUser = { uid: 3n };
    const spec = { securityContext: { runAsUser: 2, runAsGroup: 20, seLinuxOptions: { type: 'p' } } };
    assert.deepEqual(securityOf(undefined, { imageUser }).runAsUser, { value: 3n });
    assert.deepEqual(securityOf(undefined, { imageUser, spec }).runAsUser, { value: 2n });
    const own = securityOf(
      { runAsUser: 1, runAsGroup: 10, seLinuxOptions: { type: 'c' } },
      { imageUser, spec },
    );
    assert.deepEqual(
      [own.runAsUser, own.runAsGroup, own.selinuxOptions?.type],
      [{ value: 1n }, { value: 10n }, 'c'],
    );
    const named = securityOf(undefined, { imageUser: { username: 'nginx' } });
    assert.deepEqual([named.runAsUser, named.runAsUsername], [undefined, 'nginx']);
    assert.equal(securityOf({ runAsUser: 1 }, { imageUser: { username: 'nginx' } }).runAsUsername, '');
  });

  test('runAsNonRoot is kept', () => {
    const refused: [Container['securityContext'], Given, RegExp][] = [
      [
        { runAsNonRoot: true, runAsUser: 0 },
        {},
        /^container's runAsUser breaks non-root policy \(pod: "web_shop\(u-1\)", container: main\)$/,
      ],
      [{ runAsNonRoot: true }, {}, /image will run as root/],
      [{ runAsNonRoot: true }, { imageUser: { uid: 0n } }, /image will run as root/],
      [undefined, { spec: { securityContext: { runAsNonRoot: true } } }, /image will run as root/],
      [
        { runAsNonRoot: true },
        { imageUser: { username: 'app' } },
        /image has non-numeric user \(app\), cannot verify user is non-root/,
      ],
    ];
    for (const [own, given, message] of refused) {
      assert.throws(() => securityOf(own, given), { name: 'ContainerConfigError', message });
    }
    securityOf({ runAsNonRoot: true, runAsUser: 1 });
    securityOf({ runAsNonRoot: true }, { imageUser: { uid: 7n } });
    securityOf({ runAsNonRoot: false }, { spec: { securityContext: { runAsNonRoot: true } } });
  });

  test('seccomp', () => {
    const seccomp = (
      profile: { type: string; localhostProfile?: string } | undefined,
      seccompDefault = false,
    ) =>
      securityOf(profile ? { seccompProfile: profile } : undefined, {
        security: { rootDirectory: '/r', seccompDefault, thermalThrottlePaths: [] },
        spec: {},
      }).seccomp;
    assert.equal(seccomp(undefined, true)?.profileType, 0);
    assert.equal(seccomp({ type: 'RuntimeDefault' })?.profileType, 0);
    assert.equal(seccomp({ type: 'Unconfined' }, true)?.profileType, 1);
    assert.deepEqual(seccomp({ type: 'Localhost', localhostProfile: 'a/b.json' }), {
      profileType: 2,
      localhostRef: '/r/seccomp/a/b.json',
    });
    assert.throws(() => seccomp({ type: 'Localhost' }), { name: 'ContainerConfigError' });
    const spec = { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } };
    assert.equal(securityOf(undefined, { spec }).seccomp?.profileType, 0);
  });

  test('AppArmor', () => {
    const apparmor = (type: string, localhostProfile?: string) => {
      const { apparmor, apparmorProfile } = securityOf({
        appArmorProfile: { type, ...(localhostProfile ? { localhostProfile } : {}) },
      });
      return [apparmor?.profileType, apparmor?.localhostRef, apparmorProfile];
    };
    assert.deepEqual(apparmor('RuntimeDefault'), [0, '', 'runtime/default']);
    assert.deepEqual(apparmor('Unconfined'), [1, '', 'unconfined']);
    assert.deepEqual(apparmor('Localhost', 'p'), [2, 'p', 'localhost/p']);
    assert.throws(() => apparmor('Localhost'), { name: 'ContainerConfigError' });
  });

  test('the rest', () => {
    const security = securityOf({
      privileged: true,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      procMount: 'Unmasked',
      capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
    });
    assert.equal(security.privileged && security.noNewPrivs && security.readonlyRootfs, true);
    assert.deepEqual([security.maskedPaths, security.readonlyPaths], [[], []]);
    assert.deepEqual(security.capabilities, {
      addCapabilities: ['NET_ADMIN'],
      dropCapabilities: ['ALL'],
      addAmbientCapabilities: [],
    });
    const thermalThrottlePaths = ['/sys/devices/system/cpu/cpu0/thermal_throttle'];
    const hidden = securityOf(undefined, {
      security: { rootDirectory: '/', seccompDefault: false, thermalThrottlePaths },
    });
    assert.equal(hidden.maskedPaths.at(-1), thermalThrottlePaths[0]);
    assert.deepEqual(securityOf(undefined, { volumeGids: [5] }).supplementalGroups, [5n]);
  });
});

suite('container resources', () => {
  test('shares and quota', () => {
    const table: [number, number, number][] = [
      [0, 2, 0],
      [1, 2, 1000],
      [10, 10, 1000],
      [100, 102, 10_000],
      [1500, 1536, 150_000],
      [1_000_000, 262_144, 100_000_000],
    ];
    for (const [milli, shares, quota] of table) {
      assert.deepEqual([cpuShares(milli), cpuQuota(milli, 100_000)], [shares, quota]);
    }
  });

  test('shares and quota never leave their bounds and never fall as the request grows', () => {
    fc.assert(
      fc.property(
        fc.nat(10_000_000),
        fc.nat(1000),
        fc.integer({ min: 1000, max: 1_000_000 }),
        (milli, more, period) => {
          assert.ok(cpuShares(milli) >= 2 && cpuShares(milli) <= 262_144);
          assert.ok(cpuShares(milli + more) >= cpuShares(milli));
          assert.ok(cpuQuota(milli + more, period) >= cpuQuota(milli, period));
          assert.ok(milli === 0 || cpuQuota(milli, period) >= 1000);
        },
      ),
    );
  });

  test('a limit without a request counts for both, a request of zero stays', () => {
    assert.equal(resourcesOf({ limits: { cpu: '1' } }).cpuShares, 1024n);
    assert.equal(resourcesOf({ limits: { cpu: '1' }, requests: { cpu: '0' } }).cpuShares, 2n);
  });

  test('pod-level limits bound a container without its own', () => {
    const spec = { resources: { limits: { cpu: '2', memory: '1Gi' } } };
    const bounded = resourcesOf(undefined, { spec });
    assert.deepEqual([bounded.cpuQuota, bounded.memoryLimitInBytes], [200_000n, BigInt(gibi)]);
    assert.equal(resourcesOf({ limits: { cpu: '1' } }, { spec }).cpuQuota, 100_000n);
  });

  test('no quota when it is off or the CPUs are exclusive', () => {
    const limits = { limits: { cpu: '1' } };
    const off = resourcesOf(limits, {
      resources: { ...node, cpuQuota: { enabled: false, periodUs: 100_000 } },
    });
    assert.deepEqual([off.cpuQuota, off.cpuPeriod, off.cpuShares], [0n, 0n, 1024n]);
    const pinned = resourcesOf(limits, { assignment: { cpus: '2-3', mems: '0', exclusive: true } });
    assert.deepEqual([pinned.cpuQuota, pinned.cpusetCpus, pinned.cpusetMems], [0n, '2-3', '0']);
    const short = resourcesOf(limits, {
      resources: { ...node, cpuQuota: { enabled: true, periodUs: 10_000 } },
    });
    assert.deepEqual([short.cpuQuota, short.cpuPeriod], [10_000n, 10_000n]);
  });

  test('the OOM score', () => {
    assert.equal(resourcesOf(undefined).oomScoreAdj, 1000n);
    assert.equal(resourcesOf({ requests: { memory: '1Gi' } }).oomScoreAdj, 875n);
    const both = { cpu: '1', memory: '1Gi' };
    assert.equal(resourcesOf({ requests: both, limits: both }).oomScoreAdj, -997n);
  });

  test('swap and OOM group on cgroup v2', () => {
    assert.deepEqual(resourcesOf(undefined).unified, { 'memory.oom.group': '1', 'memory.swap.max': '0' });
    const bare = { ...node, singleProcessOomKill: true, swap: { ...node.swap, controllerAvailable: false } };
    assert.deepEqual(resourcesOf(undefined, { resources: bare }).unified, {});
    assert.equal(resourcesOf({ limits: { memory: '64Mi' } }).memorySwapLimitInBytes, 0n);
  });

  test('limited swap follows the memory request of Burstable containers', () => {
    const resources: NodeResourceSettings = {
      ...node,
      swap: { controllerAvailable: true, behavior: 'LimitedSwap', totalBytes: 4 * gibi },
    };
    const swap = (own: Container['resources'], spec: Partial<PodSpec> = {}) =>
      resourcesOf(own, { resources, spec }).unified['memory.swap.max'];
    assert.equal(swap({ requests: { memory: '2Gi' } }), String(gibi));
    assert.equal(swap({ requests: { memory: '2Gi' } }, { priority: 2_000_000_000 }), '0');
    assert.equal(swap({ requests: { memory: '2Gi' }, limits: { memory: '2Gi' } }), '0');
    assert.equal(swap({ requests: { cpu: '1' } }), '0');
    assert.equal(swap(undefined), '0');
  });

  test('cgroup v1 has no unified keys, and no swap beside memory', () => {
    const resources: NodeResourceSettings = { ...node, cgroupVersion: 1 };
    const limited = resourcesOf({ limits: { memory: '64Mi' } }, { resources });
    assert.deepEqual(limited.unified, {});
    assert.equal(limited.memorySwapLimitInBytes, BigInt(64 * mebi));
    const unaccounted = { ...resources, swap: { ...node.swap, controllerAvailable: false } };
    assert.equal(
      resourcesOf({ limits: { memory: '64Mi' } }, { resources: unaccounted }).memorySwapLimitInBytes,
      0n,
    );
  });

  test('huge pages: every size of the node, zero where not asked', () => {
    const resources = { ...node, hugePageSizes: [2 * mebi, gibi] };
    assert.deepEqual(resourcesOf({ limits: { 'hugepages-2Mi': '4Mi' } }, { resources }).hugepageLimits, [
      { pageSize: '2MB', limit: BigInt(4 * mebi) },
      { pageSize: '1GB', limit: 0n },
    ]);
    assert.equal(pageSizeName(64 * 1024), '64KB');
  });

  test('MemoryQoS', () => {
    const memoryQos = {
      throttlingFactor: 0.9,
      reservation: 'TieredReservation',
      nodeAllocatableBytes: 4 * gibi,
      pageSizeBytes: 4096,
    } as const;
    const unified = (
      own: Container['resources'],
      settings: NodeResourceSettings['memoryQos'] = memoryQos,
    ) => {
      const {
        'memory.oom.group': _group,
        'memory.swap.max': _swap,
        ...rest
      } = resourcesOf(own, { resources: { ...node, memoryQos: settings } }).unified;
      return rest;
    };
    const high = (request: number, bound: number) =>
      String(Math.floor((request + (bound - request) * 0.9) / 4096) * 4096);
    assert.deepEqual(unified({ requests: { memory: '1Gi' }, limits: { memory: '2Gi' } }), {
      'memory.low': String(gibi),
      'memory.high': high(gibi, 2 * gibi),
    });
    assert.deepEqual(unified(undefined), { 'memory.high': high(0, 4 * gibi) });
    const both = { cpu: '1', memory: '1Gi' };
    assert.deepEqual(unified({ requests: both, limits: both }), { 'memory.min': String(gibi) });
    assert.deepEqual(unified({ requests: both, limits: both }, { ...memoryQos, reservation: 'None' }), {});
  });
});
