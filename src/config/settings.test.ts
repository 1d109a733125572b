import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfiguration } from './load-configuration.ts';
import { resolveSettings } from './settings.ts';

const none = () => {
  throw new Error('no files here');
};
function settings(...argv: string[]) {
  const result = loadConfiguration(argv, { cwd: '/', readFile: none, readDirectory: none });
  assert.ok(result.ok, JSON.stringify(result));
  return resolveSettings(result);
}

test('the pod ranges of a node that stands alone', () => {
  assert.deepEqual(settings('--pod-cidr=10.1.0.0/24,fd00::/64').podCidrs, ['10.1.0.0/24', 'fd00::/64']);
});

test('defaults in numbers', () => {
  assert.deepEqual(settings(), {
    rootDirectory: '/var/lib/kubelet',
    hostnameOverride: undefined,
    runOnce: false,
    cluster: undefined,
    podCidrs: [],
    staticPods: { path: undefined, url: undefined, urlHeaders: {}, fileCheckMs: 20_000, httpCheckMs: 20_000 },
    resyncMs: 60_000,
    maxPods: 110,
    podsPerCore: 0,
    restartBackOff: { initialMs: 10_000, maxMs: 300_000 },
    runtime: {
      endpoint: 'unix:///run/containerd/containerd.sock',
      imageEndpoint: 'unix:///run/containerd/containerd.sock',
      requestTimeoutMs: 120_000,
      maxParallelImagePulls: Infinity,
      pullRate: { perSecond: 5, burst: 10 },
    },
    images: {
      credentialProviders: undefined,
      verification: { policy: 'NeverVerifyPreloadedImages', allowlist: [] },
      collection: { highPercent: 85, lowPercent: 80, minAgeMs: 120_000, maxAgeMs: 0 },
    },
    localStorage: { isolation: true, statsPeriodMs: 60_000 },
    deadContainers: { perContainer: 1, total: -1, minAgeMs: 0 },
    cgroups: {
      driver: 'cgroupfs',
      root: '/',
      perQos: true,
      enforcePods: true,
      kubeReserved: {},
      systemReserved: {},
      reservedCpus: undefined,
      evictionHard: {
        'memory.available': '100Mi',
        'nodefs.available': '10%',
        'nodefs.inodesFree': '5%',
        'imagefs.available': '15%',
        'imagefs.inodesFree': '5%',
      },
      memoryQos: undefined,
      podPidsLimit: undefined,
      cpuCfsQuota: true,
      cpuCfsPeriodUs: 100_000,
      swap: 'NoSwap',
      singleProcessOomKill: undefined,
      failOnSwap: true,
      failOnCgroupV1: true,
    },
    dns: { resolvConf: '/etc/resolv.conf', clusterDns: [], clusterDomain: undefined },
    podLogsDirectory: '/var/log/pods',
    logRotation: { maxBytes: 10 * 1024 * 1024, maxFiles: 5, workers: 1, everyMs: 10_000 },
    streamIdleMs: 14_400_000,
    seccompDefault: false,
    allowedUnsafeSysctls: [],
    stats: { housekeepingMs: 10_000, runtimeCgroup: undefined, systemCgroup: undefined },
    userIdsPerPod: 65_536,
    healthz: { address: '127.0.0.1', port: 10248 },
    nodeServer: {
      address: '0.0.0.0',
      port: 10250,
      certificateDirectory: '/var/lib/kubelet/pki',
      serving: { kind: 'self-signed' },
      tls: { minVersion: '', cipherSuites: [], curves: [] },
      access: {
        clientCaFile: undefined,
        anonymous: true,
        tokens: { enabled: false, cacheTtlMs: 120_000 },
        authorization: { mode: 'AlwaysAllow' },
      },
      debuggingHandlers: true,
      handlers: {
        flags: true,
        status: true,
        verbosity: true,
        profiling: true,
        systemLogs: true,
        systemLogQueries: false,
      },
      reloads: { clientCa: true, serving: true },
    },
    readOnlyServer: { address: '0.0.0.0', port: 10255 },
    log: { format: 'text', verbosity: 0, vmodule: [] },
  });
});

test('what was set', () => {
  const set = settings(
    '--hostname-override= Node1 ',
    '--healthz-port=0',
    '--serialize-image-pulls=true',
    '--registry-qps=0',
    '--image-credential-provider-config=/etc/providers',
    '--image-credential-provider-bin-dir=/opt/providers',
    '--maximum-dead-containers=9',
    '--minimum-container-ttl-duration=1m',
    '--feature-gates=KubeletEnsureSecretPulledImages=false,CustomCPUCFSQuotaPeriod=true',
    '--image-service-endpoint=unix:///i.sock',
    '--kube-reserved=cpu=250m,memory=1Gi,ephemeral-storage=2Gi,pid=1000',
    '--pods-per-core=10',
    '--cpu-cfs-quota-period=1.005ms',
    '--pod-max-pids=100',
    '--enforce-node-allocatable=none',
    '--resolv-conf=',
    '--allowed-unsafe-sysctls=kernel.msg*,net.core.somaxconn,kernel.sem',
    '--manifest-url=http://x/pods',
    '--manifest-url-header=a:b',
  );
  assert.equal(set.hostnameOverride, 'node1');
  assert.equal(set.healthz, undefined);
  assert.equal(set.runtime.maxParallelImagePulls, 1);
  assert.equal(set.runtime.pullRate, undefined);
  assert.deepEqual(set.images.credentialProviders, {
    path: '/etc/providers',
    binDirectory: '/opt/providers',
    tokensEnabled: true,
  });
  assert.equal(set.images.verification, undefined);
  assert.deepEqual(set.deadContainers, { perContainer: 1, total: 9, minAgeMs: 60_000 });
  assert.equal(set.runtime.imageEndpoint, 'unix:///i.sock');
  assert.deepEqual(set.cgroups.kubeReserved, {
    cpu: '250m',
    memory: '1Gi',
    'ephemeral-storage': '2Gi',
    pid: '1000',
  });
  assert.deepEqual([set.podsPerCore, set.cgroups.cpuCfsPeriodUs], [10, 1005]);
  assert.deepEqual([set.cgroups.podPidsLimit, set.cgroups.enforcePods], [100, false]);
  assert.equal(set.dns.resolvConf, undefined);
  assert.deepEqual(set.allowedUnsafeSysctls, ['kernel.msg*', 'net.core.somaxconn', 'kernel.sem']);
  assert.equal(set.userIdsPerPod, 65_536);
  assert.deepEqual(set.staticPods.urlHeaders, { a: ['b'] });
});

test('relative paths start where the agent was started', () => {
  const given = ['--root-dir=root', '--pod-manifest-path=m', '--resolv-conf=../r', '--cgroup-root=/x'];
  const providers = ['--image-credential-provider-config=p', '--image-credential-provider-bin-dir=b/'];
  const loaded = loadConfiguration([...given, ...providers], {
    cwd: '/srv/k',
    readFile: none,
    readDirectory: none,
  });
  assert.ok(loaded.ok);
  const set = resolveSettings(loaded, '/srv/k');
  assert.deepEqual(
    [set.rootDirectory, set.staticPods.path, set.dns.resolvConf, set.cgroups.root],
    ['/srv/k/root', '/srv/k/m', '/srv/r', '/x'],
  );
  const { path, binDirectory } = set.images.credentialProviders ?? {};
  assert.deepEqual([path, binDirectory], ['/srv/k/p', '/srv/k/b']);
});

test('the restart back-off follows its two gates', () => {
  const gates = (text: string) => settings(`--feature-gates=${text}`).restartBackOff;
  assert.deepEqual(gates('ReduceDefaultCrashLoopBackOffDecay=true'), { initialMs: 1000, maxMs: 300_000 });
  assert.deepEqual(gates('ReduceDefaultCrashLoopBackOffDecay=true,KubeletCrashLoopBackOffMax=false'), {
    initialMs: 1000,
    maxMs: 60_000,
  });
  assert.deepEqual(gates('KubeletCrashLoopBackOffMax=false'), { initialMs: 10_000, maxMs: 300_000 });
});

test('a member of a cluster', () => {
  assert.deepEqual(settings('--kubeconfig=/k').cluster, {
    kubeconfig: '/k',
    bootstrapKubeconfig: '',
    certificateDirectory: '/var/lib/kubelet/pki',
    restorePodsOffline: false,
    rotateCertificates: false,
    serverTlsBootstrap: false,
    api: { qps: 50, burst: 100 },
    events: { qps: 50, burst: 100 },
    node: {
      register: true,
      labels: {},
      taints: [],
      providerId: undefined,
      externalCloud: false,
      ip: '',
      machineIdFiles: ['/etc/machine-id', '/var/lib/dbus/machine-id'],
      bootIdFiles: ['/proc/sys/kernel/random/boot_id'],
      port: 10_250,
      updateFrequencyMs: 10_000,
      reportFrequencyMs: 300_000,
      leaseDurationSeconds: 40,
      maxImages: 50,
    },
    changeDetection: 'Watch',
  });
  const { cluster } = settings(
    '--kubeconfig=/k',
    '--bootstrap-kubeconfig=/b',
    '--cert-dir=/c',
    '--rotate-certificates=true',
    '--kube-api-qps=7',
    '--event-burst=9',
    '--node-labels=a=b',
    '--register-node=false',
    '--register-with-taints=k=v:NoSchedule',
    '--cloud-provider=external',
    '--provider-id=x://1',
    '--node-ip=10.0.0.1',
    '--node-status-update-frequency=4s',
  );
  assert.deepEqual(
    [cluster?.bootstrapKubeconfig, cluster?.certificateDirectory, cluster?.rotateCertificates],
    ['/b', '/c', true],
  );
  assert.deepEqual([cluster?.api.qps, cluster?.events.burst], [7, 9]);
  const { register, labels, taints, externalCloud, providerId, ip, updateFrequencyMs } = cluster!.node;
  assert.deepEqual(
    { register, labels, taints, externalCloud, providerId, ip, updateFrequencyMs },
    {
      register: false,
      labels: { a: 'b' },
      taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }],
      externalCloud: true,
      providerId: 'x://1',
      ip: '10.0.0.1',
      updateFrequencyMs: 4000,
    },
  );
});
