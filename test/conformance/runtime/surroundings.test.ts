/** What a container is started with and sees around it: command, variables, names, addresses. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { demoImages } from '../../../scripts/machine/demo-images.ts';
import type { Container, EnvVar, Pod } from '../../../src/kubernetes/types.ts';
import { idle, shellPod } from '../../e2e/agent.ts';
import { conditionOf, containerOf, Scenarios } from './scenarios.ts';

const scenarios = new Scenarios({ configuration: { clusterDomain: 'cluster.local' } });
const { agent } = scenarios;

function main(more: Partial<Container> = {}): Container {
  return { name: 'main', image: agent.image, command: ['sh', '-c', idle], ...more };
}
function pod(name: string, spec: Partial<Pod['spec']> = {}, own: Partial<Container> = {}): string {
  return scenarios.pod(name, shellPod(name, '', { containers: [main(own)], ...spec }));
}
const run = async (name: string, ...command: string[]) =>
  (await agent.exec(await agent.ready(name), 'main', ...command)).trim();

/** Waits until the manifest has been refused; answers the log's words about it. */
async function refused(name: string): Promise<string> {
  let words = '';
  await agent.eventually(`${name} refused`, async () => {
    const lines = agent.log.split('\n');
    const at = lines.findIndex((line) => line.includes(`${name}.json`) && /Cannot use/.test(line));
    words = lines.slice(at, at + 4).join('\n');
    return at >= 0;
  });
  assert.equal(await agent.pod(name), undefined);
  return words;
}

const addresses = Object.values(networkInterfaces()).flatMap((list) =>
  (list ?? []).map(({ address }) => address),
);

describe('command and arguments', () => {
  const commandLine = async (name: string) =>
    (await run(name, 'cat', '/proc/1/cmdline')).split('\0').filter((word) => word !== '');
  const { command: _, ...imageOnly } = main();

  const asImage = scenarios.pod('as-image', shellPod('as-image', '', { containers: [imageOnly] }));
  it('[sig-node] Containers should use the image defaults if command and args are blank [NodeConformance] [Conformance]', async () => {
    assert.deepEqual(await commandLine(asImage), ['/bin/pause']);
  });

  const args = ['sh', '-c', idle];
  const asArgs = scenarios.pod('as-args', shellPod('as-args', '', { containers: [{ ...imageOnly, args }] }));
  it("[sig-node] Containers should be able to override the image's default arguments (container cmd) [NodeConformance] [Conformance]", async () => {
    assert.deepEqual(await commandLine(asArgs), args);
  });

  // Left alone, this image is a server.
  const entry = pod('as-entry', {}, { image: demoImages.web, command: ['sh', '-c', idle] });
  it("[sig-node] Containers should be able to override the image's default command (container entrypoint) [NodeConformance] [Conformance]", async () => {
    assert.deepEqual(await commandLine(entry), args);
  });

  const both = pod('as-both', {}, { command: ['sh', '-c'], args: [idle, 'name', 'more'] });
  it("[sig-node] Containers should be able to override the image's default command and arguments [NodeConformance] [Conformance]", async () => {
    assert.deepEqual(await commandLine(both), ['sh', '-c', idle, 'name', 'more']);
  });
});

describe('variables', () => {
  const env: EnvVar[] = [
    { name: 'FOO', value: 'foo-value' },
    { name: 'BAR', value: 'bar-value' },
    { name: 'BOTH', value: '$(FOO);;$(BAR)' },
    { name: 'LOOP', value: idle },
  ];
  const composed = pod('composed', {}, { env });
  it('[sig-node] Variable Expansion should allow composing env vars into new env vars [NodeConformance] [Conformance]', async () => {
    assert.match(await run(composed, 'env'), /^BOTH=foo-value;;bar-value$/m);
  });
  const command = pod('in-command', {}, { env, command: ['sh', '-c', '$(LOOP)', '$(FOO)'] });
  it("[sig-node] Variable Expansion should allow substituting values in a container's command [NodeConformance] [Conformance]", async () => {
    assert.ok((await run(command, 'cat', '/proc/1/cmdline')).startsWith(`sh\0-c\0${idle}\0foo-value`));
  });
  const args = pod('in-args', {}, { env, command: ['sh', '-c'], args: ['$(LOOP)', '$(BOTH)', '$$(BOTH)'] });
  it("[sig-node] Variable Expansion should allow substituting values in a container's args [NodeConformance] [Conformance]", async () => {
    const words = (await run(args, 'cat', '/proc/1/cmdline')).split('\0');
    assert.deepEqual(words.slice(2, 5), [idle, 'foo-value;;bar-value', '$(BOTH)']);
  });

  const field = (name: string, fieldPath: string): EnvVar => ({
    name,
    valueFrom: { fieldRef: { fieldPath } },
  });
  const resource = (name: string, of: string): EnvVar => ({
    name,
    valueFrom: { resourceFieldRef: { resource: of } },
  });
  const told = [
    field('POD_NAME', 'metadata.name'),
    field('POD_NAMESPACE', 'metadata.namespace'),
    field('POD_UID', 'metadata.uid'),
    field('POD_IP', 'status.podIP'),
    field('HOST_IP', 'status.hostIP'),
    field('HOST_IPS', 'status.hostIPs'),
  ];
  const values = async (name: string) =>
    Object.fromEntries(
      (await run(name, 'env')).split('\n').map((line) => {
        const at = line.indexOf('=');
        return [line.slice(0, at), line.slice(at + 1)];
      }),
    );
  const downward = pod('downward', {}, { env: told });
  it('[sig-node] Downward API should provide pod name, namespace and IP address as env vars [NodeConformance] [Conformance]', async () => {
    const seen = await agent.ready(downward);
    const { POD_NAME, POD_NAMESPACE, POD_IP } = await values(downward);
    assert.deepEqual([POD_NAME, POD_NAMESPACE, POD_IP], [`${downward}-node`, 'default', seen.status?.podIP]);
  });
  it('[sig-node] Downward API should provide pod UID as env vars [NodeConformance] [Conformance]', async () => {
    assert.equal((await values(downward))['POD_UID'], (await agent.ready(downward)).metadata.uid);
  });
  it('[sig-node] Downward API should provide host IP as an env var [NodeConformance] [Conformance]', async () => {
    assert.ok(addresses.includes((await values(downward))['HOST_IP'] ?? ''));
  });
  it('[sig-node] Downward API should provide hostIPs as an env var [NodeConformance] [Conformance]', async () => {
    const { HOST_IP, HOST_IPS = '' } = await values(downward);
    assert.equal(HOST_IPS.split(',')[0], HOST_IP);
    for (const ip of HOST_IPS.split(',')) assert.ok(addresses.includes(ip));
  });
  const onHost = pod('downward-host', { hostNetwork: true }, { env: told });
  it('[sig-node] Downward API should provide host IP and pod IP as an env var if pod uses host network [LinuxOnly] [NodeConformance]', async () => {
    const { HOST_IP = '', POD_IP } = await values(onHost);
    assert.ok(addresses.includes(HOST_IP));
    assert.equal(POD_IP, HOST_IP);
  });

  const amounts = [
    resource('CPU_LIMIT', 'limits.cpu'),
    resource('MEMORY_LIMIT', 'limits.memory'),
    resource('CPU_REQUEST', 'requests.cpu'),
    resource('MEMORY_REQUEST', 'requests.memory'),
  ];
  const limited = pod(
    'limited',
    {},
    {
      env: amounts,
      resources: { requests: { cpu: '250m', memory: '32Mi' }, limits: { cpu: '1250m', memory: '64Mi' } },
    },
  );
  it("[sig-node] Downward API should provide container's limits.cpu/memory and requests.cpu/memory as env vars [NodeConformance] [Conformance]", async () => {
    const { CPU_LIMIT, MEMORY_LIMIT, CPU_REQUEST, MEMORY_REQUEST } = await values(limited);
    assert.deepEqual([CPU_LIMIT, MEMORY_LIMIT], ['2', String(64 * 2 ** 20)]);
    assert.deepEqual([CPU_REQUEST, MEMORY_REQUEST], ['1', String(32 * 2 ** 20)]);
  });
  const unlimited = pod('unlimited', {}, { env: amounts });
  it('[sig-node] Downward API should provide default limits.cpu/memory from node allocatable [NodeConformance] [Conformance]', async () => {
    const { CPU_LIMIT, MEMORY_LIMIT } = await values(unlimited);
    assert.equal(Number(CPU_LIMIT), Number(await run(unlimited, 'nproc')));
    const total = /^MemTotal:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
    assert.ok(Number(MEMORY_LIMIT) > 0 && Number(MEMORY_LIMIT) <= Number(total) * 1024);
  });
});

describe('the name of the host', () => {
  const hosts = async (name: string) => {
    const seen = await agent.ready(name);
    const lines = (await agent.exec(seen, 'main', 'cat', '/etc/hosts')).split('\n');
    return lines
      .find((line) => line.startsWith(`${seen.status?.podIP}\t`))
      ?.split('\t')
      .slice(1);
  };
  const full = (name: string) => `${name}-node.web.default.svc.cluster.local`;

  const plain = pod('plain');
  it('[sig-node] Hostname of Pod [NodeConformance] a pod without subdomain field does not have FQDN', async () => {
    assert.equal(await run(plain, 'hostname'), 'plain-node');
    assert.deepEqual(await hosts(plain), ['plain-node']);
  });
  const alone = pod('alone', { setHostnameAsFQDN: true });
  it('[sig-node] Hostname of Pod [NodeConformance] a pod without FQDN is not affected by SetHostnameAsFQDN field', async () => {
    assert.equal(await run(alone, 'hostname'), 'alone-node');
    assert.deepEqual(await hosts(alone), ['alone-node']);
  });
  const sub = pod('sub', { subdomain: 'web' });
  it('[sig-node] Hostname of Pod [NodeConformance] a pod with subdomain field has FQDN, hostname is shortname', async () => {
    assert.equal(await run(sub, 'hostname'), 'sub-node');
    assert.deepEqual(await hosts(sub), [full('sub'), 'sub-node']);
  });
  const fqdn = pod('fqdn', { subdomain: 'web', setHostnameAsFQDN: true });
  it('[sig-node] Hostname of Pod [NodeConformance] a pod with subdomain field has FQDN, when setHostnameAsFQDN is set to true, the FQDN is set as hostname', async () => {
    assert.equal(await run(fqdn, 'hostname'), full('fqdn'));
    assert.equal((await hosts(fqdn))?.[0], full('fqdn'));
  });
  const long = pod('long', { hostname: 'h'.repeat(40), subdomain: 'web', setHostnameAsFQDN: true });
  it('[sig-node] Hostname of Pod [NodeConformance] a pod configured to set FQDN as hostname will remain in Pending state generating FailedCreatePodSandBox events when the FQDN is longer than 64 bytes', async () => {
    await agent.eventually('told', async () =>
      agent.log
        .split('\n')
        .some((line) => line.includes('default/long-node') && line.includes('FailedCreatePodSandBox')),
    );
    assert.equal((await agent.pod(long))?.status?.phase, 'Pending');
  });

  const overridden = pod('overridden', { hostnameOverride: 'other-name' });
  it('[sig-node] Override hostname of Pod [NodeConformance] [FeatureGate:HostnameOverride] a pod with only hostnameOverride field will have hostnameOverride as hostname', async () => {
    assert.equal(await run(overridden, 'hostname'), 'other-name');
  });
  const dotted = pod('dotted', { hostnameOverride: 'other.name.example' });
  it('[sig-node] Override hostname of Pod [NodeConformance] [FeatureGate:HostnameOverride] a pod has hostnameOverride field with value that is a valid DNS subdomain.', async () => {
    assert.equal(await run(dotted, 'hostname'), 'other.name.example');
  });
  const two = pod('two-names', { hostname: 'own-name', hostnameOverride: 'other-name' });
  it('[sig-node] Override hostname of Pod [NodeConformance] [FeatureGate:HostnameOverride] a pod with hostname and hostnameOverride fields will have hostnameOverride as hostname', async () => {
    assert.equal(await run(two, 'hostname'), 'other-name');
  });
  const withSub = pod('sub-override', { subdomain: 'web', hostnameOverride: 'other-name' });
  it('[sig-node] Override hostname of Pod [NodeConformance] [FeatureGate:HostnameOverride] a pod with subdomain and hostnameOverride fields will have hostnameOverride as hostname', async () => {
    assert.equal(await run(withSub, 'hostname'), 'other-name');
  });
  for (const [name, spec, title] of [
    [
      'override-on-host',
      { hostNetwork: true, hostnameOverride: 'other-name' },
      '[sig-node] Override hostname of Pod [NodeConformance] [FeatureGate:HostnameOverride] a pod with hostNetwork and hostnameOverride fields will fail to be created',
    ],
    [
      'override-no-name',
      { hostnameOverride: 'Not_A_Name' },
      '[sig-node] Override hostname of Pod [NodeConformance] [FeatureGate:HostnameOverride] a pod with non-RFC1123 subdomain string for hostnameOverride field will fail to be created',
    ],
    [
      'override-and-fqdn',
      { setHostnameAsFQDN: true, hostnameOverride: 'other-name' },
      '[sig-node] Override hostname of Pod [NodeConformance] [FeatureGate:HostnameOverride] a pod with setHostnameAsFQDN and hostnameOverride fields will fail to be created',
    ],
  ] as const) {
    pod(name, spec);
    it(title, async () => {
      assert.match(await refused(name), /hostnameOverride/);
    });
  }
});

describe('/etc/hosts', () => {
  const hostAliases = [{ ip: '123.45.67.89', hostnames: ['foo', 'bar'] }];
  const managed = '# Kubernetes-managed hosts file';
  const aliased = pod('aliased', { hostAliases });
  it('[sig-node] Kubelet when scheduling an agnhost Pod with hostAliases should write entries to /etc/hosts [NodeConformance] [Conformance]', async () => {
    assert.match(await run(aliased, 'cat', '/etc/hosts'), /^123\.45\.67\.89\tfoo\tbar$/m);
  });
  const onHost = pod('aliased-host', { hostAliases, hostNetwork: true });
  it('[sig-node] Kubelet with pods in a privileged namespace when scheduling an agnhost Pod with hostAliases and hostNetwork should write entries to /etc/hosts when hostNetwork is enabled [NodeConformance]', async () => {
    assert.match(await run(onHost, 'cat', '/etc/hosts'), /^123\.45\.67\.89\tfoo\tbar$/m);
  });

  const own = pod(
    'own-hosts',
    { volumes: [{ name: 'hosts', hostPath: { path: '/etc/hosts', type: 'File' } }] },
    { volumeMounts: [{ name: 'hosts', mountPath: '/etc/hosts' }] },
  );
  it('[sig-node] KubeletManagedEtcHosts should test kubelet managed /etc/hosts file [NodeConformance] [Conformance]', async () => {
    assert.ok((await run(aliased, 'cat', '/etc/hosts')).startsWith(managed));
    assert.ok(!(await run(own, 'cat', '/etc/hosts')).includes(managed), 'a mount of its own is left alone');
  });
});

describe('the network', () => {
  const server = scenarios.pod(
    'server',
    shellPod('server', '', { containers: [{ name: 'main', image: demoImages.web }] }),
  );
  const client = pod('client');
  it('[sig-network] Networking Granular Checks: Pods should function for intra-pod communication: http [NodeConformance] [Conformance]', async () => {
    const { status } = await agent.ready(server);
    await agent.eventually('answered', async () =>
      (await run(client, 'wget', '-q', '-O', '-', `http://${status?.podIP}:8080/`)).includes('Hello'),
    );
  });
  it('[sig-network] Networking Granular Checks: Pods should function for node-pod communication: http [LinuxOnly] [NodeConformance] [Conformance]', async () => {
    const { status } = await agent.ready(server);
    await agent.eventually('answered', async () =>
      (await (await fetch(`http://${status?.podIP}:8080/`)).text()).includes('Hello'),
    );
  });

  // busybox has no program that answers datagrams, so a pod is lent the program that runs this test.
  const lent = ['/lib', '/lib64', '/usr'].filter((path) => existsSync(path));
  const withProgram = (name: string, script: string) =>
    pod(
      name,
      {
        volumes: [...lent, dirname(process.execPath)].map((path, index) => ({
          name: `lent-${index}`,
          hostPath: { path },
        })),
      },
      {
        command: ['/lent/node', '-e', script],
        volumeMounts: [...lent, '/lent'].map((mountPath, index) => ({
          name: `lent-${index}`,
          mountPath,
          readOnly: true,
        })),
      },
    );
  const answering = withProgram(
    'datagrams',
    `const socket = require('node:dgram').createSocket('udp4');
     process.on('SIGTERM', () => process.exit());
     socket.on('message', (text, { port, address }) => socket.send('heard ' + text, port, address));
     socket.bind(8081);`,
  );
  const asking = withProgram(
    'datagram-client',
    "process.on('SIGTERM', () => process.exit()); setInterval(() => {}, 1e6)",
  );
  /** Sends a datagram until an answer comes. */
  const ask = (address: string) => `
    const socket = require('node:dgram').createSocket('udp4');
    const timer = setInterval(() => socket.send('hello', 8081, '${address}'), 200);
    socket.on('message', (text) => { console.log(String(text)); clearInterval(timer); socket.close(); });`;
  it('[sig-network] Networking Granular Checks: Pods should function for intra-pod communication: udp [NodeConformance] [Conformance]', async () => {
    const { status } = await agent.ready(answering);
    assert.equal(await run(asking, '/lent/node', '-e', ask(status?.podIP ?? '')), 'heard hello');
  });
  it('[sig-network] Networking Granular Checks: Pods should function for node-pod communication: udp [LinuxOnly] [NodeConformance] [Conformance]', async () => {
    const { status } = await agent.ready(answering);
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', ask(status?.podIP ?? '')]);
    assert.equal(stdout.trim(), 'heard hello');
  });

  for (const [name, code, phase, title] of [
    [
      'ip-of-success',
      0,
      'Succeeded',
      '[sig-node] Pod IPs [NodeConformance] when pod gets terminated should contain podIPs in status for succeeded pod',
    ],
    [
      'ip-of-failure',
      1,
      'Failed',
      '[sig-node] Pod IPs [NodeConformance] when pod gets terminated should contain podIPs in status for failed pod',
    ],
  ] as const) {
    pod(name, { restartPolicy: 'Never' }, { command: ['sh', '-c', `exit ${code}`] });
    it(title, async () => {
      const { status } = await scenarios.phase(name, phase);
      assert.match(status?.podIP ?? '', /^\d+\.\d+\.\d+\.\d+$/);
      assert.deepEqual(status?.podIPs, [{ ip: status?.podIP }]);
    });
  }
});

describe('cgroups', () => {
  const isV2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
  const groupOf = (...parts: string[]) =>
    join('/sys/fs/cgroup', isV2 ? '' : 'memory', agent.cgroupRoot, ...parts);
  const same = { cpu: '100m', memory: '32Mi' };
  const classes = {
    Guaranteed: pod('guaranteed', {}, { resources: { requests: same, limits: same } }),
    Burstable: pod('burstable', {}, { resources: { requests: same } }),
    BestEffort: pod('best-effort'),
  };

  for (const [qos, parent, title] of [
    [
      'Guaranteed',
      [],
      '[sig-node] Kubelet Cgroup Manager Pod containers [NodeConformance] On scheduling a Guaranteed Pod Pod containers should have been created under the cgroup-root',
    ],
    [
      'Burstable',
      ['burstable'],
      '[sig-node] Kubelet Cgroup Manager Pod containers [NodeConformance] On scheduling a Burstable Pod Pod containers should have been created under the Burstable cgroup',
    ],
    [
      'BestEffort',
      ['besteffort'],
      '[sig-node] Kubelet Cgroup Manager Pod containers [NodeConformance] On scheduling a BestEffort Pod Pod containers should have been created under the BestEffort cgroup',
    ],
  ] as const) {
    it(title, async () => {
      const { metadata } = await agent.ready(classes[qos]);
      const [container] = await agent.instances(metadata.uid);
      assert.ok(existsSync(groupOf('kubepods', ...parent, `pod${metadata.uid}`, container?.id ?? '')));
    });
  }
  it('[sig-node] Kubelet Cgroup Manager QOS containers On enabling QOS cgroup hierarchy Top level QoS containers should have been created [NodeConformance]', () => {
    for (const name of ['burstable', 'besteffort']) assert.ok(existsSync(groupOf('kubepods', name)));
  });
  const laden = pod(
    'laden',
    { overhead: { cpu: '50m', memory: '16Mi' } },
    { resources: { limits: { cpu: '100m', memory: '32Mi' } } },
  );
  it('[sig-node] Kubelet PodOverhead handling [LinuxOnly] [NodeConformance] PodOverhead cgroup accounting On running pod with PodOverhead defined Pod cgroup should be sum of overhead and resource limits', async () => {
    const { metadata } = await agent.ready(laden);
    const read = (controller: string, file: string) => {
      const group = join('/sys/fs/cgroup', isV2 ? '' : controller, agent.cgroupRoot, 'kubepods');
      return readFileSync(join(group, `pod${metadata.uid}`, file), 'utf8').trim();
    };
    assert.equal(read('memory', isV2 ? 'memory.max' : 'memory.limit_in_bytes'), String(48 * 2 ** 20));
    assert.equal(read('cpu', isV2 ? 'cpu.max' : 'cpu.cfs_quota_us').split(' ')[0], '15000');
  });
  it('[sig-node] Pods Extended Pods Set QOS Class should be set on Pods with matching resource requests and limits for memory and cpu [Conformance]', async () => {
    for (const [qos, name] of Object.entries(classes)) {
      assert.equal((await agent.ready(name)).status?.qosClass, qos);
    }
  });
});

describe('conditions and admission', () => {
  const all = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'];
  const inOrder = (seen: Pod) => {
    const times = all.map((type) => {
      const condition = conditionOf(seen, type);
      assert.equal(condition?.status, 'True', type);
      return Date.parse(condition?.lastTransitionTime ?? '');
    });
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
  };
  const simple = pod('simple');
  it('[sig-node] Pod conditions managed by Kubelet without PodReadyToStartContainersCondition condition [NodeConformance] a pod without init containers should report all conditions set in expected order after the pod is up', async () => {
    inOrder(await agent.ready(simple));
  });
  const withInit = pod('with-init', {
    initContainers: [main({ name: 'init', command: ['sh', '-c', 'sleep 2'] })],
  });
  it('[sig-node] Pod conditions managed by Kubelet without PodReadyToStartContainersCondition condition [NodeConformance] a pod with init containers should report all conditions set in expected order after the pod is up', async () => {
    const before = await agent.until(withInit, 'initializing', (seen) =>
      Boolean(containerOf(seen, 'init')?.state?.running ?? containerOf(seen, 'init')?.state?.terminated),
    );
    assert.equal(conditionOf(before, 'PodScheduled')?.status, 'True');
    inOrder(await agent.ready(withInit));
  });

  const foreign = pod('foreign', { os: { name: 'windows' } });
  it("[sig-node] PodOSRejection [NodeConformance] Kubelet [LinuxOnly] should reject pod when the node OS doesn't match pod's OS", async () => {
    const { status, metadata } = await scenarios.phase(foreign, 'Failed');
    assert.equal(status?.reason, 'PodOSNotSupported');
    assert.deepEqual(await agent.instances(metadata.uid), []);
  });
});
