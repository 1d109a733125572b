import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../src/kubernetes/types.ts';
import { Agent, idle, isReady, shellPod } from './agent.ts';

const terminated = (pod: Pod) => pod.status?.containerStatuses?.[0]?.state?.terminated;

describe('a pod from a manifest', () => {
  const agent = new Agent();
  before(() => agent.start());
  after(() => agent.dispose());

  it('runs with its name, address, hosts file, DNS and environment', async () => {
    agent.write(
      'surroundings',
      shellPod('surroundings', idle, {
        hostAliases: [{ ip: '10.1.2.3', hostnames: ['far', 'away'] }],
        dnsPolicy: 'None',
        dnsConfig: {
          nameservers: ['10.9.9.9'],
          searches: ['example.org'],
          options: [{ name: 'ndots', value: '2' }],
        },
        containers: [
          {
            name: 'main',
            image: agent.image,
            command: ['sh', '-c', '$(LOOP)'],
            env: [
              { name: 'LOOP', value: idle },
              { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
              { name: 'BOTH', value: '$(POD_NAME)/$$(POD_NAME)' },
            ],
          },
        ],
      }),
    );
    const pod = await agent.ready('surroundings');
    const ip = pod.status?.podIP ?? '';
    assert.match(ip, /^\d+\.\d+\.\d+\.\d+$/);
    assert.equal(await agent.exec(pod, 'main', 'hostname'), 'surroundings-node\n');
    const hosts = await agent.exec(pod, 'main', 'cat', '/etc/hosts');
    assert.ok(hosts.startsWith('# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n'));
    assert.ok(hosts.includes(`${ip}\tsurroundings-node\n`));
    assert.ok(hosts.endsWith('# Entries added by HostAliases.\n10.1.2.3\tfar\taway\n'));
    const resolv = await agent.exec(pod, 'main', 'cat', '/etc/resolv.conf');
    assert.deepEqual(resolv.trim().split('\n').sort(), [
      'nameserver 10.9.9.9',
      'options ndots:2',
      'search example.org',
    ]);
    const environment = await agent.exec(pod, 'main', 'env');
    assert.match(environment, /^POD_NAME=surroundings-node$/m);
    assert.match(environment, new RegExp(`^POD_IP=${ip}$`, 'm'));
    assert.match(environment, /^BOTH=surroundings-node\/\$\(POD_NAME\)$/m);
  });

  it('writes its log where collectors look for it', async () => {
    agent.write('talker', shellPod('talker', `echo hello out; echo hello err >&2; ${idle}`));
    const pod = await agent.ready('talker');
    const { uid } = pod.metadata;
    const log = agent.path('logs', 'pods', `default_talker-node_${uid}`, 'main', '0.log');
    await agent.eventually('logged', async () => readFileSync(log, 'utf8').split('\n').length > 2);
    // Two streams have no order between them.
    for (const line of [/ stdout F hello out$/m, / stderr F hello err$/m])
      assert.match(readFileSync(log, 'utf8'), line);
    const [link] = readdirSync(agent.path('logs', 'containers')).filter((name) =>
      name.startsWith('talker-node_default_main-'),
    );
    assert.match(readFileSync(agent.path('logs', 'containers', link ?? ''), 'utf8'), /hello out/);
  });

  it('lets its containers share volumes of disk, memory and the host', async () => {
    mkdirSync(agent.path('shared'));
    writeFileSync(agent.path('shared', 'given'), 'from the host');
    const mounts = [
      { name: 'disk', mountPath: '/disk' },
      { name: 'memory', mountPath: '/memory' },
      { name: 'host', mountPath: '/host' },
      { name: 'disk', mountPath: '/part', subPath: 'a/b' },
      { name: 'host', mountPath: '/read-only', readOnly: true },
    ];
    agent.write(
      'volumes',
      shellPod('volumes', '', {
        volumes: [
          { name: 'disk', emptyDir: {} },
          { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
          { name: 'host', hostPath: { path: agent.path('shared'), type: 'Directory' } },
        ],
        containers: ['one', 'two'].map((name) => ({
          name,
          image: agent.image,
          command: ['sh', '-c', idle],
          volumeMounts: mounts,
        })),
      }),
    );
    const pod = await agent.ready('volumes');
    await agent.exec(
      pod,
      'one',
      'sh',
      '-c',
      'echo deep >/part/file; echo fast >/memory/file; echo host >/host/made',
    );
    assert.equal(
      await agent.exec(pod, 'two', 'cat', '/disk/a/b/file', '/memory/file', '/host/given'),
      'deep\nfast\nfrom the host',
    );
    assert.equal(readFileSync(agent.path('shared', 'made'), 'utf8'), 'host\n');
    await assert.rejects(agent.exec(pod, 'two', 'touch', '/read-only/x'), /Read-only/);
    assert.match(await agent.exec(pod, 'one', 'df', '-k', '/memory'), /tmpfs\s+1024 /);

    agent.remove('volumes');
    await agent.gone('volumes');
    assert.equal(
      readFileSync('/proc/self/mountinfo', 'utf8').includes(pod.metadata.uid),
      false,
      'no mount is left',
    );
    assert.equal(existsSync(agent.path('root', 'pods', pod.metadata.uid)), false);
    assert.equal(readFileSync(agent.path('shared', 'made'), 'utf8'), 'host\n', 'what is on the host stays');
  });

  it('stands in its cgroup with its limits', async () => {
    agent.write(
      'limits',
      shellPod('limits', idle, {
        containers: [
          {
            name: 'main',
            image: agent.image,
            command: ['sh', '-c', idle],
            resources: { requests: { cpu: '100m', memory: '16Mi' }, limits: { cpu: '250m', memory: '32Mi' } },
          },
        ],
      }),
    );
    const pod = await agent.ready('limits');
    assert.equal(pod.status?.qosClass, 'Burstable');
    const cgroup = join(agent.cgroupRoot, 'kubepods/burstable', `pod${pod.metadata.uid}`);
    const isV2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
    const read = (controller: string, file: string) =>
      readFileSync(join('/sys/fs/cgroup', isV2 ? '' : controller, cgroup, file), 'utf8').trim();
    if (isV2) {
      assert.deepEqual(
        [read('', 'memory.max'), read('', 'cpu.max'), read('', 'cpu.weight')],
        ['33554432', '25000 100000', '4'],
      );
    } else {
      assert.equal(read('memory', 'memory.limit_in_bytes'), '33554432');
      assert.equal(read('cpu', 'cpu.cfs_quota_us'), '25000');
      assert.equal(read('cpu', 'cpu.shares'), '102');
    }
    const oomScore = Number(await agent.exec(pod, 'main', 'cat', '/proc/1/oom_score_adj'));
    assert.ok(oomScore > 2 && oomScore < 1000, `oom_score_adj is ${oomScore}`);
    const [container] = await agent.instances(pod.metadata.uid);
    assert.ok(existsSync(join('/sys/fs/cgroup', isV2 ? '' : 'memory', cgroup, container?.id ?? '')));

    agent.remove('limits');
    await agent.gone('limits');
    assert.equal(existsSync(join('/sys/fs/cgroup', isV2 ? '' : 'memory', cgroup)), false);
  });

  it('restarts what ends, with its last words in the status', async () => {
    agent.write(
      'restarts',
      shellPod('restarts', `echo went wrong >/dev/termination-log; test -e /tmp/x || exit 3; ${idle}`),
    );
    const pod = await agent.until('restarts', 'waiting to restart', ({ status }) => {
      const main = status?.containerStatuses?.[0];
      return main?.restartCount === 1 && main.state?.waiting?.reason === 'CrashLoopBackOff';
    });
    const ended = pod.status?.containerStatuses?.[0]?.lastState?.terminated;
    assert.deepEqual([ended?.exitCode, ended?.reason, ended?.message], [3, 'Error', 'went wrong\n']);
    assert.match(
      pod.status?.containerStatuses?.[0]?.state?.waiting?.message ?? '',
      /^back-off 10s restarting/,
    );
  });

  it('succeeds or fails for good when its policy says so', async () => {
    agent.write('job', shellPod('job', 'exit 0', { restartPolicy: 'Never' }));
    agent.write('broken', shellPod('broken', 'exit 7', { restartPolicy: 'Never' }));
    await agent.until('job', 'succeeded', ({ status }) => status?.phase === 'Succeeded');
    const broken = await agent.until('broken', 'failed', ({ status }) => status?.phase === 'Failed');
    assert.equal(terminated(broken)?.exitCode, 7);
  });

  it('is stopped when its time is up', async () => {
    agent.write('deadline', shellPod('deadline', idle, { activeDeadlineSeconds: 3 }));
    const pod = await agent.until('deadline', 'failed', ({ status }) => status?.phase === 'Failed');
    assert.equal(pod.status?.reason, 'DeadlineExceeded');
  });

  it('gets TERM, and KILL when its grace period is over', async () => {
    agent.write(
      'stubborn',
      shellPod('stubborn', "trap '' TERM; while :; do sleep 1; done", { terminationGracePeriodSeconds: 1 }),
    );
    await agent.ready('stubborn');
    agent.remove('stubborn');
    await agent.gone('stubborn');
  });

  it('runs init containers in order, then the others', async () => {
    agent.write(
      'ordered',
      shellPod('ordered', '', {
        volumes: [{ name: 'order', emptyDir: {} }],
        initContainers: ['first', 'second'].map((name) => ({
          name,
          image: agent.image,
          command: ['sh', '-c', `echo ${name} >>/order/file`],
          volumeMounts: [{ name: 'order', mountPath: '/order' }],
        })),
        containers: [
          {
            name: 'main',
            image: agent.image,
            command: ['sh', '-c', idle],
            volumeMounts: [{ name: 'order', mountPath: '/order' }],
          },
        ],
      }),
    );
    const pod = await agent.ready('ordered');
    assert.equal(await agent.exec(pod, 'main', 'cat', '/order/file'), 'first\nsecond\n');
  });

  it('is replaced when its manifest changes', async () => {
    agent.write('changes', shellPod('changes', idle));
    const before = await agent.ready('changes');
    agent.write('changes', shellPod('changes', `true; ${idle}`));
    const next = await agent.until(
      'changes',
      'replaced',
      (pod) => pod.metadata.uid !== before.metadata.uid && isReady(pod),
    );
    assert.deepEqual(await agent.instances(before.metadata.uid), []);
    assert.equal((await agent.instances(next.metadata.uid)).length, 1);
  });

  it('keeps running while its manifest is broken, and other pods do not notice', async () => {
    agent.write('sound', shellPod('sound', idle));
    const before = await agent.ready('sound');
    agent.write('sound', '{"kind": "Pod", "spec": ');
    await agent.eventually('reported', async () => /Cannot use a pod manifest.*sound\.json/.test(agent.log));
    const after = await agent.ready('sound');
    assert.equal(
      after.status?.containerStatuses?.[0]?.containerID,
      before.status?.containerStatuses?.[0]?.containerID,
    );
  });
});
