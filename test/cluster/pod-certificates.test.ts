/**
 * Certificates of pods from the API to the files, over a real connection: as a node that may ask only for what
 * runs on it, from a signer that answers, refuses, or has answered before the agent was started again.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type MembershipOptions, membershipOf } from '../../src/agent/cluster/join-cluster.ts';
import type { Membership } from '../../src/agent/cluster/membership.ts';
import type { MachineFacts } from '../../src/agent/node-facts.ts';
import { systemClock } from '../../src/concurrency/clock.ts';
import { loadConfiguration } from '../../src/config/load-configuration.ts';
import { resolveSettings } from '../../src/config/settings.ts';
import type { Pod } from '../../src/kubernetes/types.ts';
import { unmountAtOrBelow } from '../../src/linux/mounts.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import { MetricsRegistry } from '../../src/telemetry/metrics-registry.ts';
import { PodVolumes } from '../../src/volumes/pod-volumes.ts';
import { createVolumeKinds } from '../../src/volumes/volume-kinds.ts';
import { FixtureClient } from '../fixtures/apiserver/fixture-client.ts';
import { type ApiServer, startApiServer } from '../fixtures/apiserver/start-api-server.ts';

const { signal } = new AbortController();
const collection = '/apis/certificates.k8s.io/v1beta1/namespaces/default/podcertificaterequests';
const facts = {
  hostname: 'node',
  addresses: ['192.0.2.1'],
  hugePages: [],
  swaps: [],
} as Partial<MachineFacts>;

let server: ApiServer;
let directory: string;
let events: string[];
let gates: readonly string[];
let end: AbortController;
let running: Promise<void>;
let joined: Membership | undefined;

beforeEach(async () => {
  server = await startApiServer();
  directory = mkdtempSync(path.join(tmpdir(), 'kubelet-ts-certificates-'));
  writeFileSync(path.join(directory, 'kubeconfig'), server.kubeconfigFor('system:node:node'));
  events = [];
  end = new AbortController();
  running = Promise.resolve();
  gates = ['PodCertificateRequest'];
  server.admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node' } });
});
afterEach(async () => {
  await stop();
  await server.close();
  await unmountAtOrBelow(directory);
  rmSync(directory, { recursive: true, force: true });
});

/** The volumes of a node that has just started. */
async function start(): Promise<PodVolumes> {
  const loaded = loadConfiguration(
    [`--kubeconfig=${path.join(directory, 'kubeconfig')}`, '--node-ip=127.0.0.1'],
    {
      cwd: '/',
      readFile: () => {
        throw new Error('no files here');
      },
      readDirectory: () => [],
    },
  );
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const membership: MembershipOptions = {
    settings: resolveSettings(loaded),
    featureEnabled: (gate) => gates.includes(gate),
    nodeName: 'node',
    facts: { cpus: 2, memory: 2 ** 33, maxProcesses: 1000, ...facts } as MachineFacts,
    events: {
      event: (_object, _type, reason, message) => void events.push(`${reason} ${message}`),
    },
    clock: systemClock,
    logger: silentLogger,
    metrics: new MetricsRegistry(),
  };
  end = new AbortController();
  joined = membershipOf(membership);
  running = joined.run(end.signal);
  const isRegistered = (node: unknown) => (node as Pod | undefined)?.status !== undefined;
  await server.admin.watchUntil('nodes', 'node', isRegistered, { timeoutMs: 30_000 });
  return new PodVolumes({
    rootDirectory: directory,
    kinds: createVolumeKinds({
      nodeAllocatableMemory: () => 2 ** 20,
      contents: joined.objects.volumeContents,
    }),
  });
}

async function stop(): Promise<void> {
  end.abort(new Error('the test is over'));
  await running.catch(() => {});
  joined?.close();
  joined = undefined;
}

/** A pod on this node, bound by the scheduler, as the API server has it. */
function create(source: object): Pod {
  server.admin.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      nodeName: 'node',
      automountServiceAccountToken: false,
      containers: [{ name: 'c', image: 'x', volumeMounts: [{ name: 'tls', mountPath: '/tls' }] }],
      volumes: [
        {
          name: 'tls',
          projected: {
            sources: [{ podCertificate: { signerName: 'example.com/web', keyType: 'ECDSAP384', ...source } }],
          },
        },
      ],
    },
  });
  return server.admin.get('pods', 'default/web') as unknown as Pod;
}
const shown = (pod: Pod, name: string) =>
  readFileSync(
    path.join(directory, 'pods', pod.metadata.uid, 'volumes/kubernetes.io~projected/tls', name),
    'utf8',
  );
const filed = () =>
  server.requests.filter(({ verb, resource }) => verb === 'create' && resource === 'podcertificaterequests');

describe('a certificate of a pod', () => {
  it('is signed, written with its key, and serves on when the agent has been started again', async () => {
    const pod = create({ credentialBundlePath: 'bundle.pem', certificateChainPath: 'chain.pem' });
    await (await start()).setUp(pod, signal);
    const bundle = shown(pod, 'bundle.pem');
    const leaf = new X509Certificate(bundle);
    assert.equal(leaf.subject, 'CN=default:default');
    assert.ok(leaf.checkPrivateKey(createPrivateKey(bundle)));
    assert.ok(leaf.verify(new X509Certificate(server.ca).publicKey));
    assert.equal(createPrivateKey(bundle).asymmetricKeyDetails?.namedCurve, 'secp384r1');
    assert.ok(bundle.endsWith(shown(pod, 'chain.pem')));
    assert.equal(filed().length, 1);
    await stop();

    const again = await start();
    await again.setUp(pod, signal);
    assert.equal(shown(pod, 'bundle.pem'), bundle);
    assert.equal(filed().length, 1);
  });

  for (const [mode, told] of [
    ['deny', 'Denied UnsupportedKeyType'],
    ['fail', 'Failed SignerBroken'],
  ] as const) {
    it(`keeps the pod from starting when the signer's answer is ${mode}`, async () => {
      server.podSigner.mode = mode;
      const pod = create({ credentialBundlePath: 'bundle.pem' });
      const volumes = await start();
      const [condition, reason] = told.split(' ');
      for (let time = 0; time < 2; time++) {
        await assert.rejects(volumes.setUp(pod, signal), (error: Error) => {
          assert.match(
            error.message,
            /MountVolume.SetUp failed for volume "tls" : the signer "example.com\/web"/,
          );
          assert.match(error.message, new RegExp(`${reason}: `));
          return true;
        });
      }
      assert.deepEqual(
        events.filter((event) => event.startsWith(condition!)),
        [told],
      );
      assert.equal(filed().length, 1);
    });
  }

  it('is not to be had with the gate off', async () => {
    gates = [];
    const pod = create({ credentialBundlePath: 'bundle.pem' });
    await assert.rejects((await start()).setUp(pod, signal), /the feature gate PodCertificateRequest is off/);
    assert.deepEqual(filed(), []);
  });

  it('can be asked for only in the name of a pod of the node, as it is', async () => {
    const pod = create({ credentialBundlePath: 'bundle.pem' });
    await (await start()).setUp(pod, signal);
    const [request] = server.admin.list('podcertificaterequests') as unknown as { spec: object }[];
    const node = new FixtureClient(server.kubeconfigFor('system:node:node'));
    try {
      const ask = async (change: object) => {
        const { status, body } = await node.send('POST', collection, {
          apiVersion: 'certificates.k8s.io/v1beta1',
          kind: 'PodCertificateRequest',
          metadata: { generateName: 'req-' },
          spec: { ...request!.spec, ...change },
        });
        return `${status} ${status === 201 ? '' : String(body['message'])}`;
      };
      assert.equal(await ask({}), '201 ');
      assert.match(
        await ask({ nodeName: 'other' }),
        /^403 .*can only create PodCertificateRequests for itself/,
      );
      assert.match(await ask({ podName: 'other' }), /^403 .*not running on node/);
      assert.match(await ask({ podUID: 'x' }), /^403 .*podUID "x" does not match/);
      assert.match(await ask({ nodeUID: 'x' }), /^403 .*nodeUID "x" does not match/);
      assert.match(await ask({ serviceAccountUID: 'x' }), /^403 .*serviceAccountUID "x" does not match/);
      const tampered = Buffer.from(
        (request!.spec as { stubPKCS10Request: string }).stubPKCS10Request,
        'base64',
      );
      tampered[tampered.length - 1]! ^= 1;
      assert.match(await ask({ stubPKCS10Request: tampered.toString('base64') }), /^422 .*stubPKCS10Request/);
    } finally {
      node.close();
    }
  });
});
