import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../../src/kubernetes/types.ts';
import { type ApiServer, startApiServer } from '../fixtures/apiserver/start-api-server.ts';
import { idle, isRunning, shellPod } from './agent.ts';
import { ClusterAgent, conditionOf, mirrorMark } from './cluster-agent.ts';

/** The warnings of a cluster without DNS are no matter here. */
const plain = { dnsPolicy: 'Default' };

const restarts = (pod: Pod | undefined) => pod?.status?.containerStatuses?.[0]?.restartCount;
const containerId = (pod: Pod | undefined) => pod?.status?.containerStatuses?.[0]?.containerID;

describe('a member of a cluster', () => {
  let server: ApiServer;
  let agent: ClusterAgent;
  /** What the agent has asked for, in the words of an audit log. */
  const asked = () => server.requests.filter(({ user }) => user === 'system:node:node');
  const said = () =>
    asked()
      .map(({ verb, path, status }) => `${verb} ${path} ${status}`)
      .join('\n');

  before(async () => {
    server = await startApiServer();
    agent = new ClusterAgent(server);
    agent.write('fixed', shellPod('fixed', idle, plain));
    await agent.start();
    await agent.nodeReady();
  });
  after(async () => {
    await agent.dispose();
    await server.close();
  });

  it('registers its node with few requests, and asks for nothing but leases when nothing happens', async () => {
    await agent.podReady('fixed-node');
    const node = server.admin.get('nodes', 'node');
    const { status } = node as unknown as {
      status: {
        addresses: { type: string; address: string }[];
        capacity: Record<string, string>;
        daemonEndpoints: unknown;
        nodeInfo: Record<string, string>;
        images: { names: string[] }[];
      };
    };
    assert.ok(status.addresses.some(({ type, address }) => type === 'Hostname' && address === 'node'));
    assert.equal(status.capacity['pods'], '110');
    assert.deepEqual(status.daemonEndpoints, { kubeletEndpoint: { Port: agent.port } });
    assert.match(status.nodeInfo['containerRuntimeVersion'] ?? '', /^containerd:\/\//);
    await agent.eventually('the images of the node told', async () =>
      JSON.stringify(server.admin.get('nodes', 'node')).includes('busybox'),
    );
    // The status of the mirror and what belongs to it have gone out by then.
    await pause(1500);
    const once = asked().filter(({ resource }) => resource !== 'leases');
    assert.ok(once.length <= 19, said());
    server.requests.length = 0;
    await pause(3000);
    assert.deepEqual(
      asked().filter(({ resource }) => resource !== 'leases'),
      [],
      said(),
    );
    assert.ok(asked().length <= 1, said());
  });

  it('runs a pod and ends it with at most 11 requests', async () => {
    server.requests.length = 0;
    agent.create(shellPod('web', idle, plain));
    await agent.podReady('web');
    server.admin.delete('pods', 'default/web');
    await agent.podGone('web');
    const own = asked().filter(({ resource }) => !['leases', 'nodes'].includes(resource));
    assert.ok(own.length <= 11, said());
    assert.ok(own.length >= 7, said());
  });

  it('does what kubectl asks for, and kubectl shows what it did', async () => {
    const manifest = shellPod('by-kubectl', idle, { ...plain, nodeName: 'node' });
    writeFileSync(agent.path('pod.json'), JSON.stringify(manifest));
    await agent.kubectl('create', '-f', agent.path('pod.json'));
    await agent.podReady('by-kubectl');
    assert.match(await agent.kubectl('get', 'pod', 'by-kubectl'), /by-kubectl +1\/1 +Running +0/);
    assert.match(await agent.kubectl('get', 'nodes'), /node +Ready/);
    await agent.eventually('the events told', async () =>
      /Started .*kubelet +Container started/.test(await agent.kubectl('describe', 'pod', 'by-kubectl')),
    );
    await agent.kubectl('delete', 'pod', 'by-kubectl');
    assert.equal(agent.object('by-kubectl'), undefined);
  });

  it('keeps a mirror of each static pod', async () => {
    const mirror = await agent.podReady('fixed-node');
    assert.ok(mirror.metadata.annotations?.[mirrorMark]);
    assert.equal(mirror.metadata.ownerReferences?.[0]?.name, 'node');
    server.admin.delete('pods', 'default/fixed-node', { gracePeriodSeconds: 0 });
    const again = await agent.untilObject(
      'fixed-node',
      (pod) => pod !== undefined && pod.metadata.uid !== mirror.metadata.uid,
    );
    assert.equal(again?.metadata.annotations?.[mirrorMark], mirror.metadata.annotations?.[mirrorMark]);
    const told = await agent.podReady('fixed-node');
    assert.equal(containerId(told), containerId(mirror), 'the pod itself runs on');

    agent.write('passing', shellPod('passing', idle, plain));
    await agent.podReady('passing-node');
    agent.remove('passing');
    await agent.podGone('passing-node');
  });

  it('gives containers config maps, secrets and services, and brings changes into running pods', async () => {
    const { admin } = server;
    admin.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings' },
      data: { color: 'blue' },
    });
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key' } };
    admin.create({ ...secret, data: { password: Buffer.from('hunter2').toString('base64') } });
    agent.create({
      ...shellPod('reader', idle, {
        ...plain,
        volumes: [
          { name: 'settings', configMap: { name: 'settings' } },
          {
            name: 'labels',
            downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] },
          },
        ],
        containers: [
          {
            name: 'main',
            image: agent.image,
            command: ['sh', '-c', idle],
            env: [
              { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'key', key: 'password' } } },
              { name: 'ADDRESS', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
            ],
            volumeMounts: [
              { name: 'settings', mountPath: '/settings' },
              { name: 'labels', mountPath: '/labels' },
            ],
          },
        ],
      }),
      metadata: { name: 'reader', labels: { size: 'small' } },
    });
    const pod = await agent.podReady('reader');
    const read = (path: string) => agent.exec(pod, 'main', 'cat', path);
    const environment = await agent.exec(pod, 'main', 'env');
    assert.match(environment, /^PASSWORD=hunter2$/m);
    assert.match(environment, /^KUBERNETES_SERVICE_HOST=10\.96\.0\.1$/m);
    assert.match(environment, new RegExp(`^ADDRESS=${pod.status?.hostIP}$`, 'm'));
    assert.match(await read('/var/run/secrets/kubernetes.io/serviceaccount/token'), /^ey/);
    assert.equal(await read('/settings/color'), 'blue');

    admin.patch('configmaps', 'default/settings', { data: { color: 'red' } });
    const changed = Date.now();
    await agent.eventually('the change in the pod', async () => (await read('/settings/color')) === 'red');
    const took = Date.now() - changed;
    assert.ok(took < 2000, `${took} ms`);
    admin.patch('pods', 'default/reader', { metadata: { labels: { size: 'large' } } });
    await agent.eventually('the label in the pod', async () => (await read('/labels/l')).includes('large'));
  });

  it('starts pods at once when what they waited for is there', async () => {
    const from = (name: string) => ({
      env: [{ name: 'X', valueFrom: { configMapKeyRef: { name, key: 'x' } } }],
    });
    agent.create(
      shellPod('waits-for-files', idle, {
        ...plain,
        volumes: [{ name: 'late', configMap: { name: 'late' } }],
        containers: [
          {
            name: 'main',
            image: agent.image,
            command: ['sh', '-c', idle],
            volumeMounts: [{ name: 'late', mountPath: '/late' }],
          },
        ],
      }),
    );
    agent.create(
      shellPod('waits-for-words', idle, {
        ...plain,
        containers: [{ name: 'main', image: agent.image, command: ['sh', '-c', idle], ...from('late') }],
      }),
    );
    const waiting = (pod: Pod | undefined) => pod?.status?.containerStatuses?.[0]?.state?.waiting;
    await agent.untilObject(
      'waits-for-words',
      (pod) => waiting(pod)?.reason === 'CreateContainerConfigError',
    );
    // The tries so far came 1, 2, 4 seconds after each other: the next one by itself is some 8 seconds off.
    await pause(7500);
    const tries = (pod: string, action: string) =>
      agent.log
        .split('\n')
        .filter((line) => line.includes(`"Acting for pod" pod="default/${pod}" action="${action}"`)).length;
    const before = [tries('waits-for-files', 'set-up-volumes'), tries('waits-for-words', 'create-container')];
    server.admin.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'late' },
      data: { x: '1' },
    });
    const created = Date.now();
    await agent.eventually(
      'both tried again',
      async () =>
        tries('waits-for-files', 'set-up-volumes') > before[0]! &&
        tries('waits-for-words', 'create-container') > before[1]!,
    );
    const took = Date.now() - created;
    assert.ok(took < 2000, `${took} ms`);
    await Promise.all([agent.podReady('waits-for-files'), agent.podReady('waits-for-words')]);
  });

  it('takes a pod that was made again under its name for another one', async () => {
    agent.create(shellPod('twice', idle, plain));
    const first = await agent.podReady('twice');
    server.admin.delete('pods', 'default/twice', { gracePeriodSeconds: 0 });
    agent.create(shellPod('twice', idle, plain));
    const second = await agent.podReady('twice');
    assert.notEqual(second.metadata.uid, first.metadata.uid);
    assert.notEqual(containerId(second), containerId(first));
    await agent.eventually('the first one gone', async () => {
      const instances = await agent.instances(first.metadata.uid);
      return instances.length === 0;
    });
  });

  it('tells how a pod has ended', async () => {
    agent.create(shellPod('task', 'exit 3', { ...plain, restartPolicy: 'Never' }));
    const pod = await agent.untilObject('task', (object) => object?.status?.phase === 'Failed');
    assert.equal(pod?.status?.containerStatuses?.[0]?.state?.terminated?.exitCode, 3);
    server.admin.delete('pods', 'default/task');
    await agent.podGone('task');
  });

  it('is killed, comes back, and nobody notices', async () => {
    const before = await agent.podReady('reader');
    agent.write('leaving', shellPod('leaving', idle, plain));
    await agent.podReady('leaving-node');
    const node = server.admin.get('nodes', 'node');
    const since = (object: unknown) => {
      const { status } = object as { status: { conditions: { type: string; lastTransitionTime: string }[] } };
      return status.conditions.find(({ type }) => type === 'Ready')?.lastTransitionTime;
    };
    let wasNotReady = false;
    const watching = setInterval(() => {
      wasNotReady ||= conditionOf(server.admin.get('nodes', 'node'), 'Ready') !== 'True';
    }, 20);
    await agent.kill('SIGKILL');
    agent.remove('leaving');
    await agent.start();
    server.admin.patch('configmaps', 'default/settings', { data: { color: 'green' } });
    await agent.eventually(
      'a change brought into a pod of the agent before',
      async () => (await agent.exec(before, 'main', 'cat', '/settings/color')) === 'green',
    );
    clearInterval(watching);
    assert.equal(wasNotReady, false);
    assert.equal(since(server.admin.get('nodes', 'node')), since(node));
    const after = agent.object('reader');
    assert.equal(containerId(after), containerId(before));
    assert.equal(restarts(after), 0);
    assert.equal(conditionOf(after, 'Ready'), 'True');
    assert.equal((await agent.instances(before.metadata.uid)).length, 1);
    // The manifest went while nobody looked: so do the pod and its mirror.
    await agent.podGone('leaving-node');
  });

  it('starts without the API server: what ran runs on, and static pods start', async () => {
    const before = await agent.podReady('reader');
    const back = await server.faults.refuseConnections();
    await agent.kill('SIGKILL');
    agent.write('early', shellPod('early', idle, plain));
    await agent.start();
    await agent.ready('early');
    await pause(500);
    assert.deepEqual((await agent.instances(before.metadata.uid)).map(isRunning), [true]);
    await back();
    await agent.podReady('early-node');
    assert.equal(containerId(agent.object('reader')), containerId(before));
    agent.remove('early');
    await agent.podGone('early-node');
  });

  it('loses nothing in outages while 30 pods start and stop', async () => {
    const names = Array.from({ length: 30 }, (_, n) => `many-${n}`);
    const outage = async () => {
      const back = await server.faults.refuseConnections();
      await pause(2000);
      await back();
    };
    // Without a network of their own they come up quickly; what is tested is not the network.
    const light = {
      hostNetwork: true,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 2,
    };
    for (const name of names) agent.create(shellPod(name, idle, { ...plain, ...light }));
    await Promise.race(names.map((name) => agent.podReady(name)));
    await outage();
    const pods = await Promise.all(names.map((name) => agent.podReady(name)));
    for (const pod of pods) {
      assert.equal(restarts(pod), 0);
      assert.equal((await agent.instances(pod.metadata.uid)).length, 1, pod.metadata.name);
    }
    for (const name of names) server.admin.delete('pods', `default/${name}`);
    await Promise.race(names.map((name) => agent.podGone(name)));
    await outage();
    await Promise.all(names.map((name) => agent.podGone(name)));
    for (const pod of pods) {
      await agent.eventually(
        `${pod.metadata.name} gone from the runtime`,
        async () => (await agent.instances(pod.metadata.uid)).length === 0,
      );
    }
  });

  it('puts up with an API server that is slow, busy and forgetful', async () => {
    const { faults } = server;
    faults.tooManyRequests(1, { resource: 'pods', times: 3 });
    faults.slow(300, { verb: 'patch' });
    faults.loseAnswers({ resource: 'pods', verb: 'patch', times: 2 });
    agent.create(shellPod('patient', idle, plain));
    faults.dropWatches();
    await agent.podReady('patient');
    faults.forgetHistory();
    faults.dropWatches('pods');
    faults.gone({ resource: 'pods', verb: 'watch', times: 1 });
    server.admin.delete('pods', 'default/patient');
    await agent.podGone('patient');
    faults.clear();
    assert.equal(conditionOf(server.admin.get('nodes', 'node'), 'Ready'), 'True');
  });
});

describe('a node that joins with a bootstrap token', () => {
  let server: ApiServer;
  let agent: ClusterAgent;
  before(async () => {
    server = await startApiServer();
    server.addToken('abc.def', {
      name: 'system:bootstrap:abc',
      groups: ['system:bootstrappers', 'system:authenticated'],
    });
    agent = new ClusterAgent(server);
  });
  after(async () => {
    await agent.dispose();
    await server.close();
  });

  it('waits for its certificate with its static pods running, renews it, and gets one to serve with', async () => {
    server.signer.client = 'manual';
    server.signer.lifeMs = 20_000;
    writeFileSync(agent.path('bootstrap'), server.kubeconfigFor('bootstrap', { token: 'abc.def' }));
    agent.write('fixed', shellPod('fixed', idle, plain));
    agent.joinWith(
      `--kubeconfig=${agent.path('joined')}`,
      `--bootstrap-kubeconfig=${agent.path('bootstrap')}`,
      `--cert-dir=${agent.path('pki')}`,
      '--rotate-certificates=true',
      '--rotate-server-certificates=true',
    );
    await agent.start();
    await agent.ready('fixed');
    const requests = () =>
      server.admin
        .list('certificatesigningrequests')
        .map((object) => object as unknown as { metadata: { name: string }; spec: { signerName: string } });
    await agent.eventually('a certificate asked for', async () => requests().length === 1);
    assert.equal(server.admin.get('nodes', 'node'), undefined);
    const [request] = requests();
    await agent.kubectl('certificate', 'approve', request!.metadata.name);
    server.signer.client = 'auto';
    await agent.nodeReady();
    await agent.podReady('fixed-node');
    await agent.eventually('certificates renewed and signed for serving', async () => {
      const signers = requests().map(({ spec }) => spec.signerName);
      const count = (name: string) => signers.filter((signer) => signer === name).length;
      return (
        count('kubernetes.io/kube-apiserver-client-kubelet') >= 2 &&
        count('kubernetes.io/kubelet-serving') >= 1
      );
    });
    // The first certificate has run out by the time this pod is ready, if it is.
    agent.create(shellPod('after', idle, plain));
    await agent.podReady('after');
  });
});
