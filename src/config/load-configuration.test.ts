import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { describeConfigurationError } from './configuration-error.ts';
import { listFields } from './kubelet-configuration.ts';
import { type LoadedConfiguration, type LoadOptions, loadConfiguration } from './load-configuration.ts';
import { shownConfiguration } from './shown-configuration.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

/** A file system of `path → text`; `null` marks a directory that a symbolic link leads to. */
function disk(files: Record<string, string | null>): LoadOptions {
  return {
    cwd: '/srv',
    readFile(path) {
      const text = files[path];
      if (typeof text !== 'string') throw new Error(`ENOENT: ${path}`);
      return text;
    },
    readDirectory(path) {
      const inside = Object.keys(files).filter((file) => file.startsWith(`${path}/`));
      if (inside.length === 0) throw new Error(`ENOENT: ${path}`);
      const names = new Map<string, boolean>();
      for (const file of inside) {
        const [name = '', ...deeper] = file.slice(path.length + 1).split('/');
        names.set(name, deeper.length > 0);
      }
      return [...names].map(([name, isDirectory]) => ({ name, isDirectory })).reverse();
    },
  };
}

function load(argv: string[], files: Record<string, string | null> = {}): LoadedConfiguration {
  const result = loadConfiguration(argv, disk(files));
  if (!result.ok) assert.fail(result.errors.map(describeConfigurationError).join('\n'));
  return result;
}

function errors(argv: string[], files: Record<string, string | null> = {}): string[] {
  const result = loadConfiguration(argv, disk(files));
  return result.ok ? [] : result.errors.map(describeConfigurationError);
}

const withFile = (text: string) => load(['--config=k.yaml'], { '/srv/k.yaml': HEAD + text }).configuration;
const fileErrors = (text: string) => errors(['--config=k.yaml'], { '/srv/k.yaml': HEAD + text });

test('without a file the old flag defaults hold, with one those of the API', () => {
  const old = load([]).configuration;
  assert.deepEqual(
    [
      old.authentication.anonymous.enabled,
      old.authentication.webhook.enabled,
      old.authorization.mode,
      old.readOnlyPort,
    ],
    [true, false, 'AlwaysAllow', 10255],
  );
  const fresh = withFile('');
  assert.deepEqual(
    [
      fresh.authentication.anonymous.enabled,
      fresh.authentication.webhook.enabled,
      fresh.authorization.mode,
      fresh.readOnlyPort,
    ],
    [false, true, 'Webhook', 0],
  );
  assert.equal(load(['--config-dir=d'], { '/srv/d/a.conf': HEAD }).configuration.readOnlyPort, 10255);
});

test('every field with a default has one', () => {
  const { configuration } = load([]);
  for (const [path, described] of listFields()) {
    if (path.includes('[]') || described.default === undefined || described.members) continue;
    const value = path
      .split('.')
      .reduce<unknown>((holder, part) => (holder as Record<string, unknown>)?.[part], configuration);
    assert.notEqual(value, undefined, path);
  }
});

test('defaults < file < drop-ins in walk order < flags', () => {
  const files = {
    '/srv/k.yaml': `${HEAD}maxPods: 1\npodsPerCore: 1\nregistryBurst: 1\noomScoreAdj: 1\n`,
    '/srv/d/20.conf': `${HEAD}maxPods: 3\nregistryBurst: 3\npodsPerCore: 3\n`,
    '/srv/d/10/a.conf': `${HEAD}maxPods: 2\nregistryBurst: 2\n`,
    '/srv/d/20.conf.bak': 'not read',
    '/srv/d/.conf': `${HEAD}registryBurst: 9\nclusterDomain: early\n`,
    '/srv/d/README.md': 'not read',
  };
  const { configuration } = load(['--config=k.yaml', '--config-dir=/srv/d', '--pods-per-core=4'], files);
  assert.deepEqual(
    [
      configuration.maxPods,
      configuration.registryBurst,
      configuration.podsPerCore,
      configuration.oomScoreAdj,
      configuration.clusterDomain,
    ],
    [3, 3, 4, 1, 'early'],
  );
});

test('drop-ins merge maps, replace lists, and take back with null', () => {
  const { configuration } = load(['--config=k.yaml', '--config-dir=d'], {
    '/srv/k.yaml': `${HEAD}clusterDNS: [1.1.1.1]\nkubeReserved: {cpu: "1", memory: 1Gi}\nmaxPods: 5\nevictionSoft: {memory.available: 5%}\nevictionSoftGracePeriod: {memory.available: 1m}\n`,
    '/srv/d/a.conf': `${HEAD}clusterDNS: [8.8.8.8, 9.9.9.9]\nkubeReserved: {cpu: null, pid: "100"}\nmaxPods: null\nevictionHard: {memory.available: 1Gi}\n`,
  });
  assert.deepEqual(configuration.clusterDNS, ['8.8.8.8', '9.9.9.9']);
  assert.deepEqual(configuration.kubeReserved, { memory: '1Gi', pid: '100' });
  assert.equal(configuration.maxPods, 110);
  assert.equal(configuration.evictionHard['memory.available'], '1Gi');
  assert.equal(configuration.evictionHard['nodefs.available'], '10%');
});

test('eviction thresholds: defaults only when the file names none, or asks for them', () => {
  assert.equal(Object.keys(withFile('').evictionHard).length, 5);
  assert.deepEqual(withFile('evictionHard: {}').evictionHard, {});
  assert.deepEqual(withFile('evictionHard: {memory.available: 1Gi}').evictionHard, {
    'memory.available': '1Gi',
  });
  const merged = withFile(
    'evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true',
  ).evictionHard;
  assert.deepEqual([merged['memory.available'], merged['nodefs.inodesFree']], ['1Gi', '5%']);
  assert.deepEqual(load(['--eviction-hard=memory.available<2Gi']).configuration.evictionHard, {
    'memory.available': '2Gi',
  });
});

test('zero means "not given" where it cannot be told apart, but not in a flag', () => {
  assert.equal(withFile('maxPods: 0\nsyncFrequency: 0s\nclusterDomain: ""').maxPods, 110);
  assert.equal(withFile('healthzPort: 0').healthzPort, 0);
  assert.equal(withFile('evictionPressureTransitionPeriod: 0s').evictionPressureTransitionPeriod, '5m');
  assert.equal(load(['--max-pods=0']).configuration.maxPods, 0);
});

test('defaults that follow other fields', () => {
  assert.equal(withFile('nodeStatusUpdateFrequency: 30s').nodeStatusReportFrequency, '30s');
  assert.equal(withFile('').nodeStatusReportFrequency, '5m');
  assert.equal(load(['--node-status-update-frequency=30s']).configuration.nodeStatusReportFrequency, '5m');
  assert.equal(withFile('maxParallelImagePulls: 3').serializeImagePulls, false);
  assert.equal(withFile('').crashLoopBackOff.maxContainerRestartPeriod, '5m');
  const off = withFile(
    'featureGates: {KubeletCrashLoopBackOffMax: false, KubeletEnsureSecretPulledImages: false}',
  );
  assert.equal(off.crashLoopBackOff.maxContainerRestartPeriod, undefined);
  assert.equal(off.imagePullCredentialsVerificationPolicy, undefined);
});

test('relative paths start at the file, not in drop-ins', () => {
  const { configuration } = load(['--config=etc/k.yaml', '--config-dir=d'], {
    '/srv/etc/k.yaml': `${HEAD}staticPodPath: pods\nauthentication: {x509: {clientCAFile: ../ca}}\nresolvConf: ""\n`,
    '/srv/d/a.conf': `${HEAD}volumePluginDir: plugins\n`,
  });
  assert.equal(configuration.staticPodPath, '/srv/etc/pods');
  assert.equal(configuration.authentication.x509.clientCAFile, '/srv/ca');
  assert.equal(configuration.resolvConf, '');
  assert.equal(configuration.volumePluginDir, 'plugins');
});

test('feature gates merge gate by gate; seccomp default is on when either asks', () => {
  const { gates, configuration } = load(
    ['--config=k.yaml', '--feature-gates=MemoryQoS=false,PodsAPI=true', '--seccomp-default=false'],
    {
      '/srv/k.yaml': `${HEAD}featureGates: {MemoryQoS: true, EventedPLEG: true}\nseccompDefault: true\n`,
    },
  );
  assert.deepEqual(configuration.featureGates, { MemoryQoS: false, EventedPLEG: true, PodsAPI: true });
  assert.deepEqual(
    [gates.enabled('MemoryQoS'), gates.enabled('EventedPLEG'), gates.enabled('PodsAPI')],
    [false, true, true],
  );
  assert.equal(configuration.seccompDefault, true);
});

test('run-once exists', () => {
  assert.equal(load(['--runonce']).configuration.runOnce, true);
  assert.equal(withFile('runOnce: true').runOnce, true);
});

test('run-once is for a node that stands alone, and says so beside a kubeconfig instead of waiting', () => {
  const files = { '/srv/k.yaml': `${HEAD}runOnce: true\n` };
  for (const flags of [['--runonce'], ['--config=k.yaml']]) {
    const found = errors([...flags, '--kubeconfig=/etc/kubernetes/kubelet.conf'], files);
    assert.match(found.join(), /--kubeconfig.*excludes --runonce .*leave --kubeconfig and/);
  }
});

test('all mistakes of flags, files and drop-ins together, each with its place', () => {
  const found = errors(
    ['--config=k.yaml', '--config-dir=d', '--port=0', '--podz=3', 'extra', '--feature-gates=NodeSwap=false'],
    {
      '/srv/k.yaml': `${HEAD}maxPod: 5\nmaxPods: "20"\nauthentication:\n  anonymous:\n    enable: true\nclusterDNS:\n- 1.1.1.1\n- x\n`,
      '/srv/d/a.conf': `${HEAD}\nevictionSoft:\n  memory.available: 5%\n`,
      '/srv/d/b.conf': `${HEAD}a: 1\na: 2\n`,
      '/srv/d/c.conf': 'maxPods: 5\n',
      '/srv/d/e.conf': '',
    },
  );
  assert.deepEqual(found, [
    'unknown flag --podz; did you mean --port?',
    'unknown argument "extra"',
    '--feature-gates: featureGates.NodeSwap: cannot be set to false: the gate is locked to true',
    '--port: port: must be 1 to 65535, not 0',
    'k.yaml:3: maxPod: unknown field; did you mean maxPods?',
    'k.yaml:4: maxPods: must be a whole number, not "20"',
    'k.yaml:7: authentication.anonymous.enable: unknown field; did you mean enabled?',
    'k.yaml:8: clusterDNS: must be a list of IP addresses, not ["1.1.1.1","x"]',
    'd/b.conf:4: column 1: duplicate key "a"',
    'd/c.conf:1: apiVersion: must be kubelet.config.k8s.io/v1beta1',
    'd/c.conf:1: kind: must be KubeletConfiguration',
    'd/e.conf: is empty; apiVersion and kind are required',
    'd/a.conf:5: evictionSoft[memory.available]: needs a grace period: set evictionSoftGracePeriod for memory.available',
  ]);
});

test('files that cannot be read, directories that are not there, wrong documents', () => {
  assert.match(errors(['--config=no'])[0]!, /^no: cannot be read: ENOENT/);
  assert.match(errors(['--config-dir=no'])[0]!, /^no: cannot be read: ENOENT/);
  assert.match(errors(['--config-dir=d'], { '/srv/d/link.conf': null })[0]!, /link\.conf: cannot be read/);
  assert.match(fileErrors('---\na: 1')[0]!, /k.yaml:4: holds more than one document/);
  assert.deepEqual(errors(['--config=k.yaml'], { '/srv/k.yaml': '- a' }), [
    'k.yaml: must hold one KubeletConfiguration object',
  ]);
  assert.deepEqual(fileErrors('cacheTTL: 1s'), [
    'k.yaml:3: cacheTTL: unknown field; did you mean authentication.webhook.cacheTTL?',
  ]);
});

/** One line for each rule: what breaks it, and what the message must name. */
const breaches: [string, RegExp][] = [
  ['address: localhost', /address: must be an IP address/],
  ['healthzPort: 70000', /healthzPort: must be 0 to 65535/],
  ['oomScoreAdj: -1001', /oomScoreAdj/],
  ['imageGCHighThresholdPercent: 101', /imageGCHighThresholdPercent: must be 0 to 100/],
  ['imageGCLowThresholdPercent: 85', /must be below imageGCHighThresholdPercent \(85\)/],
  ['imageMaximumGCAge: 1m', /must be longer than imageMinimumGCAge/],
  ['containerLogMaxFiles: 1', /containerLogMaxFiles: must be 2 or more/],
  ['containerLogMaxSize: "0x"', /containerLogMaxSize/],
  ['containerLogMonitorInterval: 2s', /must be 3s or longer/],
  ['cpuCFSQuotaPeriod: 2s\nfeatureGates: {CustomCPUCFSQuotaPeriod: true}', /must be 1ms to 1s/],
  ['cpuCFSQuotaPeriod: 50ms', /needs the feature gate CustomCPUCFSQuotaPeriod/],
  ['crashLoopBackOff: {maxContainerRestartPeriod: 301s}', /must be 1s to 300s/],
  [
    'crashLoopBackOff: {maxContainerRestartPeriod: 10s}\nfeatureGates: {KubeletCrashLoopBackOffMax: false}',
    /needs the feature gate/,
  ],
  ['logging: {flushFrequency: -1}', /logging.flushFrequency: must be longer than 0s/],
  ['logging: {format: yaml}', /must be one of text, json/],
  ['logging: {options: {json: {splitStream: true}}}', /needs the feature gate LoggingAlphaOptions/],
  ['logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}', /works only with the text format/],
  ['logging: {vmodule: [{filePattern: "a=b", verbosity: 1}]}', /vmodule\[0\].filePattern/],
  ['logging: {vmodule: [{filePattern: a}]}', /vmodule\[0\].verbosity: is required/],
  ['maxParallelImagePulls: 2\nserializeImagePulls: true', /needs serializeImagePulls: false/],
  ['memoryThrottlingFactor: 0', /above 0, at most 1/],
  ['podLogsDir: /var/../log', /podLogsDir/],
  ['podLogsDir: /var/lög', /podLogsDir/],
  ['podCIDR: 10.0.0.0', /podCIDR/],
  ['clusterDomain: a..b', /clusterDomain/],
  ['staticPodURL: ftp://x', /staticPodURL/],
  ['kubeletCgroups: kube', /kubeletCgroups/],
  ['reservedSystemCPUs: 3-1', /reservedSystemCPUs/],
  ['reservedSystemCPUs: "0"\nkubeReservedCgroup: /x', /cannot be used together with reservedSystemCPUs/],
  ['systemCgroups: /x', /needs cgroupRoot/],
  ['tracing: {samplingRatePerMillion: 1000001}', /samplingRatePerMillion/],
  ['tracing: {endpoint: "http://x"}', /tracing.endpoint/],
  ['userNamespaces: {idsPerPod: 65537}', /idsPerPod/],
  ['tlsCipherSuites: [NOPE]', /tlsCipherSuites/],
  ['tlsCurvePreferences: [1]', /tlsCurvePreferences/],
  ['tlsMinVersion: TLS13', /tlsMinVersion/],
  ['tlsCertFile: /a', /tlsCertFile: needs tlsPrivateKeyFile/],
  [
    'serverTLSBootstrap: true\nfeatureGates: {RotateKubeletServerCertificate: false}',
    /needs the feature gate/,
  ],
  ['evictionHard: {memory: 1Gi}', /unknown eviction signal/],
  ['evictionHard: {memory.available: 101%}', /must be 0% to 100%/],
  ['evictionHard: {memory.available: -1}', /write it in quotes/],
  ['evictionHard: {memory.available: "-1"}', /must not be negative/],
  ['evictionSoft: {memory.available: 1Gi}', /needs a grace period/],
  ['evictionSoftGracePeriod: {memory.available: x}', /must be a duration/],
  ['evictionMinimumReclaim: {memory.available: x}', /must be a quantity or a percentage/],
  ['kubeReserved: {gpu: "1"}', /cannot be reserved/],
  ['systemReserved: {cpu: "-1"}', /must not be negative/],
  ['enforceNodeAllocatable: [none, pods]', /none must stand alone/],
  ['enforceNodeAllocatable: [pods, pods]', /listed twice/],
  ['enforceNodeAllocatable: [nope]', /unknown level/],
  ['enforceNodeAllocatable: [kube-reserved]', /needs kubeReservedCgroup/],
  [
    'enforceNodeAllocatable: [system-reserved, system-reserved-compressible]\nsystemReservedCgroup: /s',
    /exclude each other/,
  ],
  ['cgroupsPerQOS: false', /cgroupsPerQOS: false needs enforceNodeAllocatable/],
  ['cpuManagerPolicyOptions: {full-pcpus-only: "true"}', /needs cpuManagerPolicy: static/],
  ['cpuManagerPolicy: static\ncpuManagerPolicyOptions: {nope: "true"}', /unknown option/],
  [
    'cpuManagerPolicy: static\ncpuManagerPolicyOptions: {align-by-socket: "true"}',
    /CPUManagerPolicyAlphaOptions/,
  ],
  [
    'cpuManagerPolicy: static\nfeatureGates: {CPUManagerPolicyAlphaOptions: true}\ncpuManagerPolicyOptions: {distribute-cpus-across-cores: "true", full-pcpus-only: "true"}',
    /cannot be used together with full-pcpus-only/,
  ],
  ['topologyManagerPolicyOptions: {max-allowable-numa-nodes: "7"}', /whole number from 8/],
  ['topologyManagerPolicyOptions: {nope: "1"}', /unknown option/],
  ['memoryManagerPolicy: Static', /Static needs reservedMemory/],
  [
    'memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]',
    /adds up to 1Gi, but .* is 100Mi/,
  ],
  [
    'reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 0, limits: {memory: 1Gi}}]',
    /given twice/,
  ],
  ['reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]', /must be memory or hugepages/],
  ['qosReserved: {memory: 50%}', /needs the feature gate QOSReserved/],
  ['qosReserved: {cpu: 50%}\nfeatureGates: {QOSReserved: true}', /only memory/],
  ['memoryReservationPolicy: TieredReservation', /needs the feature gate MemoryQoS/],
  ['memorySwap: {swapBehavior: Unlimited}', /swapBehavior/],
  ['registerWithTaints: [{key: a, effect: Never}]', /must be one of NoSchedule/],
  ['registerWithTaints: [{key: "a b", effect: NoExecute}]', /registerWithTaints\[0\].key/],
  ['registerWithTaints: [{key: a, effect: NoExecute}, {key: a, effect: NoExecute}]', /listed twice/],
  ['registerWithTaints: [{key: a, effect: NoExecute, timeAdded: x}]', /must not be given/],
  ['shutdownGracePeriod: 500ms', /0s, or 1s and longer/],
  [
    'shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 2s',
    /must not be longer than shutdownGracePeriod/,
  ],
  [
    'shutdownGracePeriod: 1s\nshutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 1}]',
    /excludes/,
  ],
  ['preloadedImagesVerificationAllowlist: [a]', /NeverVerifyAllowlistedImages/],
  [
    'imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: ["a:1"]',
    /no tag/,
  ],
  ['enableSystemLogQuery: true\nenableSystemLogHandler: false', /needs enableSystemLogHandler/],
  ['showHiddenMetricsForVersion: "1.30"', /1\.35/],
  ['allowedUnsafeSysctls: ["a*b"]', /allowedUnsafeSysctls/],
  ['allowedUnsafeSysctls: ["kernel.panic"]', /allowedUnsafeSysctls.*of what pods have to themselves/],
  ['allowedUnsafeSysctls: ["kernel.*"]', /allowedUnsafeSysctls/],
  ['syncFrequency: -1s', /syncFrequency: must be longer than 0s/],
  ['maxOpenFiles: 9007199254740993', /too large to be read exactly/],
  ['featureGates: {Nope: true}', /unknown feature gate/],
  ['featureGates: {MemoryQoS: "true"}', /must be true or false/],
  ['clusterDNS: {a: 1}', /must be a list/],
  ['authentication: []', /authentication: must be an object/],
];
for (const [text, message] of breaches) {
  test(`refuses ${text.replaceAll('\n', '; ')}`, () => {
    const found = fileErrors(text);
    assert.ok(
      found.some((error) => message.test(error)),
      found.join('\n') || 'no error',
    );
    assert.equal(found.length, 1, found.join('\n'));
    assert.match(found[0]!, /^k\.yaml:\d+: /);
  });
}

test('a demanding but right configuration passes', () => {
  const { warnings, ineffective } = load(
    ['--config=k.yaml', '--node-labels=node.kubernetes.io/a=b,x=', '--node-ip=10.0.0.1,fd00::1'],
    {
      '/srv/k.yaml': `${HEAD}
evictionSoft: {nodefs.available: 15%}
evictionSoftGracePeriod: {nodefs.available: 1m30s}
enforceNodeAllocatable: [pods, kube-reserved]
kubeReservedCgroup: /kube
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 612Mi}}]
kubeReserved: {memory: 512Mi, cpu: 100m}
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", distribute-cpus-across-numa: "false"}
logging: {format: json, flushFrequency: 5000000000, verbosity: 2}
shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 10}]
tracing: {endpoint: "localhost:4317", samplingRatePerMillion: 10}
registerWithTaints: [{key: a/b, value: c, effect: NoSchedule}]
tlsCipherSuites: [TLS_AES_128_GCM_SHA256]
`,
    },
  );
  assert.deepEqual(warnings, []);
  assert.ok(ineffective.includes('memoryManagerPolicy') && !ineffective.includes('--node-ip'));
});

test('flags without a field have rules too', () => {
  assert.deepEqual(
    errors([
      '--node-labels=kubernetes.io/x=y,a=b c',
      '--node-ip=1.1.1.1,2.2.2.2',
      '--exit-on-lock-contention',
      '--bootstrap-kubeconfig=/b',
      '--cloud-provider=aws',
      '--hostname-override=a_b',
      '--image-credential-provider-bin-dir=/x',
    ]).map((error) => error.split(':')[0]),
    [
      '--node-labels',
      '--node-labels',
      '--node-ip',
      '--hostname-override',
      '--cloud-provider',
      '--bootstrap-kubeconfig',
      '--exit-on-lock-contention',
      '--image-credential-provider-bin-dir',
    ],
  );
});

test('deprecated flags are named, with the field that does the same', () => {
  assert.deepEqual(load(['--max-pods=5', '--v=2', '--containerd=x']).warnings, [
    '--max-pods is deprecated; set maxPods in the --config file',
    '--containerd is deprecated',
  ]);
});

test('property: no file makes it throw', () => {
  const paths = [...listFields().keys()].filter((path) => !path.includes('[]'));
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('1s', '0', '-1', '5%', 'static', 'x', -1, 0, 1e9, true),
  );
  const entry = fc.tuple(fc.constantFrom(...paths), value);
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 8 }), fc.string(), (entries, tail) => {
      const raw: Record<string, unknown> = {
        apiVersion: 'kubelet.config.k8s.io/v1beta1',
        kind: 'KubeletConfiguration',
      };
      for (const [path, item] of entries) {
        const parts = path.split('.');
        let holder = raw;
        for (const part of parts.slice(0, -1)) {
          if (typeof holder[part] !== 'object' || holder[part] === null) holder[part] = {};
          holder = holder[part] as Record<string, unknown>;
        }
        holder[parts.at(-1)!] = item;
      }
      const text = JSON.stringify(raw);
      for (const content of [text, text + tail, HEAD + tail]) {
        const result = loadConfiguration(
          ['--config=/k', '--config-dir=/d'],
          disk({ '/k': content, '/d/a.conf': content }),
        );
        if (!result.ok)
          for (const error of result.errors) assert.notEqual(describeConfigurationError(error), '');
      }
    }),
    { numRuns: 300 },
  );
});

test('a configuration is shown with durations in the one form that Go prints', () => {
  const configuration = withFile('syncFrequency: 10m\nshutdownGracePeriod: 90s\nclusterDomain: 10m\n');
  const shown = shownConfiguration(configuration) as typeof configuration;
  assert.equal(shown.syncFrequency, '10m0s');
  assert.equal(shown.shutdownGracePeriod, '1m30s');
  assert.equal(shown.authorization.webhook.cacheAuthorizedTTL, '5m0s');
  assert.equal(shown.clusterDomain, '10m');
  assert.equal(configuration.syncFrequency, '10m');
});
