import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ContainerConfig } from '../generated/cri.ts';
import { etcHostsMount, needsEtcHosts, terminationLogMount } from './mounts.ts';
import { container, main, podOf } from './translation-fixtures.ts';

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
