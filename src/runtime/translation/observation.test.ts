import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ContainerStatus, PodSandboxStatus } from '../generated/cri.ts';
import { millisecondsOf, observeContainer, observeSandbox } from './observation.ts';

const blank = new Uint8Array();

suite('observation', () => {
  test('nanoseconds become milliseconds; zero and the zero time of Go mean not yet', () => {
    assert.equal(millisecondsOf(1_767_225_600_123_456_789n), 1_767_225_600_123.456);
    assert.equal(millisecondsOf(0n), undefined);
    assert.equal(millisecondsOf(-62_135_596_800_000_000_000n), undefined);
  });

  test('a sandbox with its addresses in order', () => {
    const status = PodSandboxStatus.decode(blank);
    status.id = 's1';
    status.metadata = { name: 'web', namespace: 'shop', uid: 'u', attempt: 2 };
    status.createdAt = 5_000_000n;
    status.network = { ip: '10.0.0.2', additionalIps: [{ ip: 'fd00::2' }] };
    assert.deepEqual(observeSandbox(status), {
      id: 's1',
      state: 'Ready',
      attempt: 2,
      createdAt: 5,
      ips: ['10.0.0.2', 'fd00::2'],
      hostNetwork: false,
    });
  });

  test('a sandbox on the network of the host has no addresses of its own', () => {
    const status = PodSandboxStatus.decode(blank);
    status.state = 1;
    status.network = { ip: '', additionalIps: [] };
    status.linux = {
      namespaces: { options: { network: 2, pid: 1, ipc: 0, targetId: '', usernsOptions: undefined } },
    };
    const { state, ips, hostNetwork } = observeSandbox(status);
    assert.deepEqual({ state, ips, hostNetwork }, { state: 'NotReady', ips: [], hostNetwork: true });
  });

  test('an ended container', () => {
    const status = ContainerStatus.decode(blank);
    Object.assign(status, {
      id: 'c1',
      metadata: { name: 'main', attempt: 3 },
      state: 2,
      createdAt: 1_000_000n,
      startedAt: 2_000_000n,
      finishedAt: 3_000_000n,
      exitCode: 137,
      image: {
        image: 'sha256:1',
        userSpecifiedImage: 'nginx',
        annotations: {},
        runtimeHandler: '',
        imageRef: '',
      },
      imageRef: 'docker.io/library/nginx@sha256:2',
      reason: 'OOMKilled',
      annotations: { 'io.kubernetes.container.hash': 'abc' },
      logPath: '/var/log/pods/x/main/3.log',
      user: { linux: { uid: 1000n, gid: 2000n, supplementalGroups: [7n] } },
    });
    assert.deepEqual(observeContainer(status, 's1'), {
      id: 'c1',
      name: 'main',
      sandboxId: 's1',
      attempt: 3,
      state: 'Exited',
      createdAt: 1,
      startedAt: 2,
      finishedAt: 3,
      exitCode: 137,
      reason: 'OOMKilled',
      image: 'nginx',
      imageId: 'docker.io/library/nginx@sha256:2',
      hash: 'abc',
      annotations: { 'io.kubernetes.container.hash': 'abc' },
      logPath: '/var/log/pods/x/main/3.log',
      user: { uid: 1000, gid: 2000, supplementalGroups: [7] },
    });
  });

  test('a running container has no exit code and no end', () => {
    const status = ContainerStatus.decode(blank);
    status.state = 1;
    status.startedAt = 2_000_000n;
    const observed = observeContainer(status, 's1');
    assert.equal(observed.state, 'Running');
    assert.equal('exitCode' in observed || 'finishedAt' in observed, false);
  });
});
