/**
 * What other tools write for a kubelet, and what this project ships for systemd, has to be taken as it is:
 * flags and fields that kubeadm writes, in its shape, and the command lines of the units.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { diskFiles } from './disk-files.ts';
import { type LoadedConfiguration, loadConfiguration } from './load-configuration.ts';
import { resolveSettings } from './settings.ts';

const shipped = join(import.meta.dirname, '../../examples/systemd');

/** In the shape of /var/lib/kubelet/config.yaml: everything spelled out, durations of 0s, sorted. */
const kubeadmConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
`;

/** What kubeadm's drop-in and its files put into the environment of the unit. */
const kubeadmEnvironment = {
  KUBELET_KUBECONFIG_ARGS:
    '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf',
  KUBELET_CONFIG_ARGS: '--config=/var/lib/kubelet/config.yaml',
  KUBELET_KUBEADM_ARGS:
    '--container-runtime-endpoint=unix:///var/run/containerd/containerd.sock ' +
    '--node-ip=192.0.2.10 ' +
    '--register-with-taints=node-role.kubernetes.io/control-plane=:NoSchedule --hostname-override=cp-1',
  KUBELET_EXTRA_ARGS: '',
};

function load(argv: readonly string[], configuration: string): LoadedConfiguration {
  const readFile = (path: string) =>
    path.startsWith('/var/lib/kubelet/') ? configuration : diskFiles.readFile(path);
  const result = loadConfiguration(argv, { ...diskFiles, readFile, cwd: '/' });
  assert.ok(result.ok, JSON.stringify(!result.ok && result.errors));
  return result;
}

/** The arguments of every command of a unit file, with the environment filled in as systemd does. */
function commands(file: string, environment: Readonly<Record<string, string>>): string[][] {
  const text = readFileSync(join(shipped, file), 'utf8').replaceAll('\\\n', ' ');
  return [...text.matchAll(/^ExecStart(?:Pre)?=(.+)$/gm)].map(([, command = '']) =>
    command
      .replace(/\$(\w+)/g, (_, name: string) => environment[name] ?? assert.fail(`${name} is not set`))
      .split(/\s+/)
      .filter((word) => word !== ''),
  );
}

test('the configuration and the flags of kubeadm are taken, zeros standing for defaults', () => {
  const [command] = commands('kubelet.service.d/20-kubelet-ts.conf', kubeadmEnvironment);
  const loaded = load(command!.slice(1), kubeadmConfiguration);
  const settings = resolveSettings(loaded);
  assert.equal(settings.hostnameOverride, 'cp-1');
  assert.equal(settings.runtime.endpoint, 'unix:///var/run/containerd/containerd.sock');
  assert.equal(settings.cgroups.driver, 'systemd');
  assert.equal(settings.staticPods.path, '/etc/kubernetes/manifests');
  assert.equal(settings.staticPods.fileCheckMs, 20_000);
  assert.equal(settings.resyncMs, 60_000);
  const { cluster } = settings;
  assert.equal(cluster?.kubeconfig, '/etc/kubernetes/kubelet.conf');
  assert.equal(cluster.bootstrapKubeconfig, '/etc/kubernetes/bootstrap-kubelet.conf');
  assert.equal(cluster.rotateCertificates, true);
  assert.equal(cluster.node.ip, '192.0.2.10');
  assert.equal(cluster.node.updateFrequencyMs, 10_000);
  assert.deepEqual(cluster.node.taints, [
    { key: 'node-role.kubernetes.io/control-plane', value: '', effect: 'NoSchedule' },
  ]);
});

test('a flag that kubeadm wrote before 1.35 is refused as by a kubelet, with what to do', () => {
  const argv = ['--pod-infra-container-image=registry.k8s.io/pause:3.9'];
  const result = loadConfiguration(argv, { ...diskFiles, cwd: '/' });
  assert.match(
    JSON.stringify(result),
    /removed in Kubernetes 1\.35; take it out \(kubeadm: .*kubeadm-flags\.env/,
  );
});

test('the unit for nodes without kubeadm, with the configuration for k3s', () => {
  const configuration = readFileSync(join(shipped, 'k3s-node.yaml'), 'utf8');
  const [check, start] = commands('kubelet.service', { KUBELET_EXTRA_ARGS: '--hostname-override=worker-1' });
  assert.deepEqual(check?.slice(1, 3), ['config', 'validate']);
  const { cluster, hostnameOverride } = resolveSettings(load(start!.slice(1), configuration));
  assert.equal(hostnameOverride, 'worker-1');
  assert.equal(cluster?.kubeconfig, '/etc/kubernetes/kubelet.conf');
});

test('every file for systemd is read by a test', () => {
  const names = readdirSync(shipped, { recursive: true, withFileTypes: true });
  assert.deepEqual(
    names
      .filter((entry) => entry.isFile())
      .map(({ name }) => name)
      .sort(),
    ['20-kubelet-ts.conf', 'k3s-node.yaml', 'kubelet.service'],
  );
});
