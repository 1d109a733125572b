/** The node among its peers: lease, statistics, configuration and certificates of its own API. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { PodStats, Summary } from '../../../../src/stats/summary-types.ts';
import { CertificateAuthority, type KeyedCertificate } from '../../../fixtures/apiserver/certificates.ts';
import { execSession } from '../../../fixtures/streams/exec-session.ts';
import { ClusterScenarios } from './cluster-scenarios.ts';

const day = 86_400_000;
const life = { notBefore: Date.now() - day, notAfter: Date.now() + day };
const clientOf = (authority: CertificateAuthority) =>
  authority.issue({
    subject: { commonName: 'kube-apiserver-kubelet-client', organizations: ['system:masters'] },
    usages: ['client'],
    ...life,
  });
const servers = ['first', 'second'].map((commonName) =>
  new CertificateAuthority(commonName, Date.now()).issue({
    subject: { commonName },
    names: ['127.0.0.1'],
    usages: ['server'],
    ...life,
  }),
);
const [firstServer, secondServer] = servers as [KeyedCertificate, KeyedCertificate];
const later = new CertificateAuthority('later', Date.now());

const configuration = {
  nodeLeaseDurationSeconds: 4,
  nodeStatusUpdateFrequency: '1s',
  nodeStatusReportFrequency: '10m',
  // Other tests pull images into the same runtime.
  nodeStatusMaxImages: 0,
};
let client: KeyedCertificate;
const scenarios: ClusterScenarios = new ClusterScenarios({}, (agent, server) => {
  client = clientOf(server.authority);
  writeFileSync(agent.path('client-ca.crt'), server.ca);
  writeFileSync(agent.path('tls.crt'), firstServer.certificate);
  writeFileSync(agent.path('tls.key'), firstServer.key);
  return {
    configuration: {
      ...configuration,
      // The API server comes by the address that the node tells it.
      address: '0.0.0.0',
      authentication: { x509: { clientCAFile: agent.path('client-ca.crt') } },
      tlsCertFile: agent.path('tls.crt'),
      tlsPrivateKeyFile: agent.path('tls.key'),
    },
  };
});

/** Puts a file in another one's place at once. */
function replace(name: string, content: string): void {
  const { agent } = scenarios;
  writeFileSync(agent.path(`${name}.new`), content);
  renameSync(agent.path(`${name}.new`), agent.path(name));
}

interface Answer {
  readonly status: number;
  readonly text: string;
  /** The common name of the server's certificate. */
  readonly server: string;
}

async function get(path: string, as = client): Promise<Answer> {
  const sent = request({
    host: '127.0.0.1',
    port: scenarios.agent.port,
    path,
    cert: as.certificate,
    key: as.key,
    rejectUnauthorized: false,
    agent: false,
  }).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const server = String((answer.socket as TLSSocket).getPeerCertificate().subject.CN);
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) text += chunk;
  return { status: answer.statusCode ?? 0, text, server };
}

const leaseOf = () => scenarios.server.admin.get('leases', 'kube-node-lease/node');

describe('the lease of the node', () => {
  it('[sig-node] NodeLease [NodeConformance] NodeLease the kubelet should create and update a lease in the kube-node-lease namespace', async () => {
    await scenarios.agent.eventually('there', async () => leaseOf() !== undefined);
    const lease = leaseOf();
    assert.equal(lease?.spec?.holderIdentity, 'node');
    assert.equal(lease.spec.leaseDurationSeconds, configuration.nodeLeaseDurationSeconds);
    const before = Date.parse(String(lease.spec.renewTime));
    await scenarios.agent.eventually(
      'renewed',
      async () => Date.parse(String(leaseOf()?.spec?.renewTime)) > before,
    );
    assert.equal(leaseOf()?.metadata.uid, lease.metadata.uid);
  });

  it('[sig-node] NodeLease [NodeConformance] NodeLease should have OwnerReferences set', () => {
    const node = scenarios.server.admin.get('nodes', 'node');
    const [owner, ...others] = leaseOf()?.metadata.ownerReferences ?? [];
    assert.deepEqual(others, []);
    const { apiVersion, kind, name, uid } = owner ?? {};
    assert.deepEqual(
      { apiVersion, kind, name, uid },
      { apiVersion: 'v1', kind: 'Node', name: 'node', uid: node?.metadata.uid },
    );
  });

  it('[sig-node] NodeLease [NodeConformance] NodeLease the kubelet should report node status infrequently', async () => {
    const { agent, server } = scenarios;
    // What the start brings with it, images and volumes, has been told when the node has been still for a while.
    const reports = () =>
      server.requests.filter(({ resource, verb }) => resource === 'nodes' && verb === 'patch');
    const renewals = () =>
      server.requests.filter(({ resource, verb }) => resource === 'leases' && verb === 'update');
    await agent.eventually('still', async () => Date.now() - (reports().at(-1)?.at ?? 0) > 3000);
    const [told, renewed] = [reports().length, renewals().length];
    // The status is looked at once a second meanwhile, and nothing has changed.
    await agent.eventually('renewed four times', async () => renewals().length >= renewed + 4);
    assert.equal(reports().length, told);
  });
});

describe('statistics', () => {
  const script =
    'dd if=/dev/zero of=/data/file bs=1M count=2 2>/dev/null; echo said; trap exit TERM; while :; do :; done';
  const busy = scenarios.pod('busy', {
    volumes: [{ name: 'data', emptyDir: {} }],
    containers: [
      scenarios.idler('main', {
        command: ['sh', '-c', script],
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
        resources: { limits: { cpu: '200m', memory: '32Mi' } },
      }),
    ],
  });

  it('[sig-node] ContainerMetrics [LinuxOnly] [NodeConformance] when querying /metrics/cadvisor should report container metrics', async () => {
    await scenarios.agent.podReady(busy);
    /** The value of a metric of this container, or of the pod where `container` is empty. */
    const value = (text: string, metric: string, container = 'main') => {
      const labels = `[^}]*container="${container}"[^}]*pod="${busy}"`;
      return Number(new RegExp(`^${metric}\\{${labels}[^}]*\\} (\\S+)`, 'm').exec(text)?.[1]);
    };
    let text = '';
    await scenarios.agent.eventually(
      'the work of the container measured',
      async () => {
        ({ text } = await get('/metrics/cadvisor'));
        return value(text, 'container_cpu_usage_seconds_total') > 0;
      },
      () =>
        text
          .split('\n')
          .filter((line) => line.includes(busy))
          .join('\n'),
    );
    const memory = value(text, 'container_memory_working_set_bytes');
    assert.ok(memory > 0 && memory <= 32 * 2 ** 20, `${memory}`);
    assert.equal(value(text, 'container_spec_memory_limit_bytes'), 32 * 2 ** 20);
    assert.ok(value(text, 'container_start_time_seconds') > Date.now() / 1000 - 3600);
    assert.ok(value(text, 'container_network_transmit_bytes_total', '') >= 0);
  });

  it('[sig-node] Summary API [NodeConformance] when querying /stats/summary should report resource usage through the stats api', async () => {
    await scenarios.agent.podReady(busy);
    let summary: Summary | undefined;
    const podOf = (of: Summary | undefined): PodStats | undefined =>
      of?.pods.find(({ podRef }) => podRef.name === busy);
    await scenarios.agent.eventually(
      'the work of the pod measured',
      async () => {
        summary = JSON.parse((await get('/stats/summary')).text) as Summary;
        const stats = podOf(summary);
        return (stats?.cpu?.usageNanoCores ?? 0) > 0 && (stats?.volume?.[0]?.usedBytes ?? 0) >= 2 * 2 ** 20;
      },
      () => JSON.stringify(podOf(summary)),
    );
    assert.ok(summary);
    const { node } = summary;
    assert.equal(node.nodeName, 'node');
    const between = (what: string, low: number, is: number | undefined, high: number) =>
      assert.ok(is !== undefined && is >= low && is <= high, `${what} is ${is}, not from ${low} to ${high}`);
    const [MiB, TiB] = [2 ** 20, 2 ** 40];
    between('processor time of the node', 1e6, node.cpu?.usageCoreNanoSeconds, 1e18);
    between('memory of the node', 10 * MiB, node.memory?.workingSetBytes, TiB);
    between('disk of the node', MiB, node.fs?.capacityBytes, 1000 * TiB);
    between('disk left', 0, node.fs?.availableBytes, node.fs?.capacityBytes ?? 0);
    between('disk of images', MiB, node.runtime?.imageFs?.capacityBytes, 1000 * TiB);
    between('process limit', 100, node.rlimit?.maxpid, 1e9);
    const stats = podOf(summary);
    const [container] = stats?.containers ?? [];
    assert.equal(container?.name, 'main');
    between('processor of the container', 1e6, container.cpu?.usageNanoCores, 2e9);
    between('memory of the container', 1000, container.memory?.workingSetBytes, 32 * MiB);
    between('log of the container', 1, container.logs?.usedBytes, MiB);
    between('root of the container', 1, container.rootfs?.capacityBytes, 1000 * TiB);
    between(
      'memory of the pod',
      container.memory?.workingSetBytes ?? 0,
      stats?.memory?.workingSetBytes,
      64 * MiB,
    );
    between('traffic of the pod', 0, stats?.network?.rxBytes, 100 * MiB);
    between('volume of the pod', 2 * MiB, stats?.volume?.[0]?.usedBytes, 4 * MiB);
    between('processes of the pod', 1, stats?.process_stats?.process_count, 100);
  });
});

describe('streams', () => {
  const shell = scenarios.pod('shell');
  it('[sig-node] Pods should support remote command execution over websockets [NodeConformance] [Conformance]', async () => {
    await scenarios.agent.podReady(shell);
    const { server } = scenarios;
    server.proxy.webSockets = 'pass';
    const query = new URLSearchParams({ container: 'main', stdout: '1', stderr: '1' });
    for (const word of ['sh', '-c', 'echo "remote execution test on $(hostname)"'])
      query.append('command', word);
    const url = `${server.url}/api/v1/namespaces/default/pods/${shell}/exec?${query.toString()}`;
    const outcome = await execSession(url, { cert: client.certificate, key: client.key });
    assert.equal(outcome.stdout, `remote execution test on ${shell}\n`);
    assert.equal((JSON.parse(outcome.status) as { status: string }).status, 'Success');
  });
});

describe('files that change under the node', () => {
  it('[sig-node] ReloadKubeletClientCAFileTest [NodeConformance] [Serial] certificate reload should reload certificates from disk', async () => {
    const stranger = clientOf(later);
    assert.equal((await get('/pods', stranger)).status, 401);
    replace('client-ca.crt', later.certificate);
    await scenarios.agent.eventually(
      'the new authority trusted',
      async () => (await get('/pods', stranger)).status === 200,
    );
    // The former authority is trusted no more.
    assert.equal((await get('/pods')).status, 401);
    replace('client-ca.crt', `${scenarios.server.ca}\n${later.certificate}`);
    await scenarios.agent.eventually('both trusted', async () => (await get('/pods')).status === 200);
  });

  it('[sig-node] KubletTLS [Serial] [NodeConformance] certificate reload should reload certificates from disk', async () => {
    assert.equal((await get('/healthz')).server, 'first');
    replace('tls.key', secondServer.key);
    replace('tls.crt', secondServer.certificate);
    await scenarios.agent.eventually(
      'the new certificate shown',
      async () => (await get('/healthz')).server === 'second',
    );
    assert.equal((await get('/healthz')).status, 200);
  });
});

describe('the configuration', () => {
  const configz = async () =>
    (JSON.parse((await get('/configz')).text) as { kubeletconfig: Record<string, unknown> }).kubeletconfig;

  it('[sig-node] Kubelet Endpoints [NodeConformance] [Serial] should return APIVersion and Kind fields in /configz', async () => {
    const { apiVersion, kind } = await configz();
    assert.deepEqual([apiVersion, kind], ['kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration']);
  });

  it('[sig-node] Kubelet Endpoints [NodeConformance] [Serial] when config is updated should be reflected in /configz', async () => {
    assert.equal((await configz())['maxPods'], 110);
    await scenarios.restart((before) => ({
      ...before,
      configuration: { ...before.configuration, maxPods: 77 },
    }));
    await scenarios.agent.eventually(
      'the API of the node',
      async () => (await get('/healthz')).status === 200,
    );
    assert.equal((await configz())['maxPods'], 77);
    assert.equal((await configz())['nodeLeaseDurationSeconds'], configuration.nodeLeaseDurationSeconds);
  });
});
