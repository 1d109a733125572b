/** What is told of containers that ran: exit codes, reasons, last words, logs. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { demoImages } from '../../../scripts/machine/demo-images.ts';
import type { Container, Pod } from '../../../src/kubernetes/types.ts';
import { idle, isReady, shellPod } from '../../e2e/agent.ts';
import { recorded } from './recorder.ts';
import { conditionOf, containerOf, reasonOf, Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;

function pod(name: string, script: string, own: Partial<Container> = {}, spec: Partial<Pod['spec']> = {}) {
  const container = { name: 'main', image: agent.image, command: ['sh', '-c', script], ...own };
  return scenarios.pod(name, shellPod(name, '', { containers: [container], ...spec }));
}
const once = { restartPolicy: 'Never' };
const endOf = (seen: Pod) => containerOf(seen, 'main')?.state?.terminated;

describe('last words', () => {
  for (const [name, script, own, phase, message, title] of [
    [
      'at-path',
      'printf DONE >/dev/own-log',
      { terminationMessagePath: '/dev/own-log', securityContext: { runAsUser: 0 } },
      'Succeeded',
      'DONE',
      '[sig-node] Container Runtime blackbox test on terminated container should report termination message if TerminationMessagePath is set [NodeConformance]',
    ],
    [
      'as-user',
      'printf DONE >/dev/termination-custom-log',
      { terminationMessagePath: '/dev/termination-custom-log', securityContext: { runAsUser: 1001 } },
      'Succeeded',
      'DONE',
      '[sig-node] Container Runtime blackbox test on terminated container should report termination message if TerminationMessagePath is set as non-root user and at a non-default path [NodeConformance] [Conformance]',
    ],
    [
      'from-log',
      'printf DONE; exit 1',
      { terminationMessagePolicy: 'FallbackToLogsOnError' },
      'Failed',
      'DONE',
      '[sig-node] Container Runtime blackbox test on terminated container should report termination message from log output if TerminationMessagePolicy FallbackToLogsOnError is set [NodeConformance] [Conformance]',
    ],
    [
      'no-words',
      'printf DONE',
      { terminationMessagePolicy: 'FallbackToLogsOnError' },
      'Succeeded',
      undefined,
      '[sig-node] Container Runtime blackbox test on terminated container should report termination message as empty when pod succeeds and TerminationMessagePolicy FallbackToLogsOnError is set [NodeConformance] [Conformance]',
    ],
    [
      'from-file',
      'printf OK >/dev/termination-log; printf DONE',
      { terminationMessagePolicy: 'FallbackToLogsOnError' },
      'Succeeded',
      'OK',
      '[sig-node] Container Runtime blackbox test on terminated container should report termination message from file when pod succeeds and TerminationMessagePolicy FallbackToLogsOnError is set [NodeConformance] [Conformance]',
    ],
  ] as const) {
    pod(name, script, own, once);
    it(title, async () => {
      assert.equal(endOf(await scenarios.phase(name, phase))?.message, message);
    });
  }
});

describe('ends', () => {
  const policies = { Always: 'ends-always', OnFailure: 'ends-onfailure', Never: 'ends-never' } as const;
  for (const [restartPolicy, name] of Object.entries(policies)) {
    // Fails the first time, succeeds the second time, and runs on the third time.
    const script = `n=$(cat /data/n || echo 0); echo $((n + 1)) >/data/n; [ $n = 0 ] && exit 1; [ $n = 1 ] && exit 0; ${idle}`;
    pod(
      name,
      script,
      { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
      { restartPolicy, volumes: [{ name: 'data', emptyDir: {} }] },
    );
  }
  it('[sig-node] Container Runtime blackbox test when starting a container that exits should run with the expected status [NodeConformance] [Conformance]', async () => {
    const always = await agent.until(
      policies.Always,
      'running for good',
      (seen) => isReady(seen) && containerOf(seen, 'main')?.restartCount === 2,
    );
    assert.equal(always.status?.phase, 'Running');
    const onFailure = await scenarios.phase(policies.OnFailure, 'Succeeded');
    assert.deepEqual([endOf(onFailure)?.exitCode, containerOf(onFailure, 'main')?.restartCount], [0, 1]);
    const never = await scenarios.phase(policies.Never, 'Failed');
    assert.deepEqual([endOf(never)?.exitCode, containerOf(never, 'main')?.restartCount], [1, 0]);
    for (const seen of [onFailure, never]) {
      assert.equal(containerOf(seen, 'main')?.ready, false);
      assert.equal(conditionOf(seen, 'Ready')?.status, 'False');
    }
  });

  // It ignores TERM, so that only KILL ends it when its probe fails.
  const livenessProbe = {
    exec: { command: ['false'] },
    periodSeconds: 1,
    failureThreshold: 1,
    timeoutSeconds: 20,
    terminationGracePeriodSeconds: 1,
  };
  pod('killed', "trap '' TERM; while :; do sleep 1; done", { livenessProbe }, once);
  it('[sig-node] Pod SIGKILL [LinuxOnly] [NodeConformance] The containers terminated forcefully by Sigkill should have the correct exit code(137) and reason (Error)', async () => {
    const end = endOf(await scenarios.phase('killed', 'Failed'));
    assert.deepEqual([end?.exitCode, end?.reason], [137, 'Error']);
  });

  const memory = { limits: { memory: '20Mi' } };
  pod('greedy', 'exec tail /dev/zero', { resources: memory }, once);
  it('[sig-node] OOMKiller [LinuxOnly] [NodeConformance] [Serial] The containers terminated by OOM killer should have the reason set to OOMKilled', async () => {
    const end = endOf(await scenarios.phase('greedy', 'Failed'));
    assert.deepEqual([end?.exitCode, end?.reason], [137, 'OOMKilled']);
  });

  pod('modest', `dd if=/dev/zero of=/dev/null bs=8M count=2; ${idle}`, { resources: memory });
  it('[sig-node] OOMKiller [LinuxOnly] [NodeConformance] [Serial] The containers should not be OOMKilled', async () => {
    const seen = await agent.ready('modest');
    assert.equal(containerOf(seen, 'main')?.restartCount, 0);
    assert.deepEqual(containerOf(seen, 'main')?.lastState, {});
  });

  pod('fails', 'exit 1');
  it('[sig-node] Kubelet when scheduling a busybox command that always fails in a pod should have an terminated reason [NodeConformance] [Conformance]', async () => {
    const seen = await agent.until('fails', 'failed', (now) =>
      Boolean(containerOf(now, 'main')?.state?.terminated ?? containerOf(now, 'main')?.lastState?.terminated),
    );
    const { state, lastState } = containerOf(seen, 'main') ?? {};
    assert.equal((state?.terminated ?? lastState?.terminated)?.reason, 'Error');
  });
  pod('fails-too', 'exit 1');
  it('[sig-node] Kubelet when scheduling a busybox command that always fails in a pod should be possible to delete [NodeConformance] [Conformance]', async () => {
    await agent.until('fails-too', 'failing', (seen) => (containerOf(seen, 'main')?.restartCount ?? 0) > 0);
    agent.remove('fails-too');
    await agent.gone('fails-too');
  });

  pod('nowhere', idle, { image: 'localhost:1/kubelet-ts/missing:1' });
  it('[sig-node] Container Runtime blackbox test when running a container with a new image [Serial] should not be able to pull image from invalid registry [NodeConformance]', async () => {
    const seen = await agent.until('nowhere', 'without its image', (now) =>
      /^(?:ErrImagePull|ImagePullBackOff)$/.test(reasonOf(now, 'main') ?? ''),
    );
    assert.equal(seen.status?.phase, 'Pending');
  });

  pod('read-only', idle, { securityContext: { readOnlyRootFilesystem: true } });
  it('[sig-node] Kubelet when scheduling a read only busybox container should not write to root filesystem [LinuxOnly] [NodeConformance] [Conformance]', async () => {
    const seen = await agent.ready('read-only');
    await assert.rejects(agent.exec(seen, 'main', 'sh', '-c', 'echo x >/file'), /Read-only file system/);
  });
  it('[sig-node] DefaultProcMount [LinuxOnly] [NodeConformance] will mask proc mounts by default', async () => {
    const seen = await agent.ready('read-only');
    assert.equal(await agent.exec(seen, 'main', 'cat', '/proc/timer_list'), '');
    await assert.rejects(
      agent.exec(seen, 'main', 'sh', '-c', 'echo x >/proc/sys/kernel/domainname'),
      /Read-only/,
    );
  });
});

describe('logs', () => {
  const talker = pod('talker', `echo one line; ${idle}`);
  const logOf = async () => {
    const { metadata } = await agent.ready(talker);
    const log = agent.path('logs', 'pods', `default_talker-node_${metadata.uid}`, 'main', '0.log');
    await agent.eventually('logged', async () => readFileSync(log, 'utf8').includes('\n'));
    return { log, metadata };
  };
  it('[sig-node] Kubelet when scheduling a busybox command in a pod should print the output to logs [NodeConformance] [Conformance]', async () => {
    assert.match(readFileSync((await logOf()).log, 'utf8'), / stdout F one line\n/);
  });
  it('[sig-node] ContainerLogPath [NodeConformance] Pod with a container printed log to stdout should print log to correct cri log path', async () => {
    const { log, metadata } = await logOf();
    const [instance] = await agent.instances(metadata.uid);
    assert.equal(instance?.logPath, log);
  });
  it('[sig-node] ContainerLogPath [NodeConformance] Pod with a container printed log to stdout should print log to correct log path', async () => {
    const { metadata } = await logOf();
    const [instance] = await agent.instances(metadata.uid);
    const link = `talker-node_default_main-${instance?.id}.log`;
    assert.ok(readdirSync(agent.path('logs', 'containers')).includes(link));
    assert.match(readFileSync(agent.path('logs', 'containers', link), 'utf8'), /one line/);
  });
});

describe('init containers', () => {
  const two = (code: number) =>
    ['init-1', 'init-2'].map((name, index) => recorded(name, { runsFor: 0.1, code: index === 0 ? code : 0 }));
  scenarios.recorded('inits-never', {
    ...once,
    initContainers: two(0),
    containers: [recorded('main', { runsFor: 0.1 })],
  });
  it('[sig-node] InitContainer [NodeConformance] should invoke init containers on a RestartNever pod [Conformance]', async () => {
    const seen = await scenarios.phase('inits-never', 'Succeeded');
    scenarios
      .timeline('inits-never')
      .inOrder('init-1 ended', 'init-2 starting', 'init-2 ended', 'main starting');
    for (const name of ['init-1', 'init-2']) assert.equal(containerOf(seen, name)?.ready, true);
    assert.equal(conditionOf(seen, 'Initialized')?.status, 'True');
  });
  scenarios.recorded('inits-always', { initContainers: two(0), containers: [recorded('main')] });
  it('[sig-node] InitContainer [NodeConformance] should invoke init containers on a RestartAlways pod [Conformance]', async () => {
    const seen = await agent.ready('inits-always');
    scenarios
      .timeline('inits-always')
      .inOrder('init-1 ended', 'init-2 starting', 'init-2 ended', 'main starting');
    for (const name of ['init-1', 'init-2'])
      assert.equal(containerOf(seen, name)?.state?.terminated?.exitCode, 0);
    assert.equal(conditionOf(seen, 'Initialized')?.status, 'True');
  });
  scenarios.recorded('inits-fail-never', { ...once, initContainers: two(1), containers: [recorded('main')] });
  it('[sig-node] InitContainer [NodeConformance] should not start app containers and fail the pod if init containers fail on a RestartNever pod [Conformance]', async () => {
    const seen = await scenarios.phase('inits-fail-never', 'Failed');
    assert.equal(containerOf(seen, 'init-1')?.state?.terminated?.exitCode, 1);
    for (const name of ['init-2', 'main']) {
      assert.ok(containerOf(seen, name)?.state?.waiting);
      scenarios.timeline('inits-fail-never').never(`${name} starting`);
    }
    assert.equal(conditionOf(seen, 'Initialized')?.status, 'False');
  });
  scenarios.recorded('inits-fail-always', { initContainers: two(1), containers: [recorded('main')] });
  it('[sig-node] InitContainer [NodeConformance] should not start app containers if init containers fail on a RestartAlways pod [Conformance]', async () => {
    const seen = await agent.until(
      'inits-fail-always',
      'failing',
      (now) => (containerOf(now, 'init-1')?.restartCount ?? 0) >= 2,
    );
    assert.equal(seen.status?.phase, 'Pending');
    assert.equal(conditionOf(seen, 'Initialized')?.reason, 'ContainersNotInitialized');
    for (const name of ['init-2', 'main']) scenarios.timeline('inits-fail-always').never(`${name} starting`);
  });
});

describe('manifests', () => {
  pod('comes-and-goes', idle);
  it('[sig-node] Pods should be submitted and removed [NodeConformance] [Conformance]', async () => {
    const seen = await agent.ready('comes-and-goes');
    assert.equal((await agent.instances(seen.metadata.uid)).length, 1);
    agent.remove('comes-and-goes');
    await agent.gone('comes-and-goes');
    assert.deepEqual(await agent.instances(seen.metadata.uid), []);
  });

  // The last tests of the file, since the agent ends in them.
  for (const [name, restartPolicy, title] of [
    [
      'loses-init',
      undefined,
      '[sig-node] StaticPod [Serial] when the static pod has init container should be ready after init container is removed and kubelet restarts [NodeConformance]',
    ],
    [
      'loses-sidecar',
      'Always',
      '[sig-node] StaticPod [Serial] when the static pod has sidecar container should be ready after sidecar container is removed and kubelet restarts [NodeConformance]',
    ],
  ] as const) {
    const first: Container = {
      name: 'first',
      image: demoImages.busybox,
      command: ['sh', '-c', restartPolicy ? idle : 'true'],
      ...(restartPolicy && { restartPolicy }),
    };
    pod(name, idle, {}, { initContainers: [first] });
    it(title, async () => {
      const before = await agent.ready(name);
      await agent.kill();
      agent.write(name, shellPod(name, idle));
      await agent.start();
      const seen = await agent.until(
        name,
        'ready again',
        (now) => isReady(now) && now.spec.initContainers === undefined,
      );
      assert.notEqual(seen.metadata.uid, before.metadata.uid);
      assert.equal(containerOf(seen, 'first'), undefined);
    });
  }
});
