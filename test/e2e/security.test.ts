/** What a pod's security settings do to real processes, and which pods the node refuses. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { demoImages } from '../../scripts/machine/demo-images.ts';
import type { Container, Pod } from '../../src/kubernetes/types.ts';
import { Agent, idle, shellPod } from './agent.ts';

type Spec = Partial<Pod['spec']>;

const agent = new Agent({ configuration: { allowedUnsafeSysctls: ['kernel.msg*'] } });
before(() => agent.start());
after(() => agent.dispose());

const waiting = (pod: Pod) => pod.status?.containerStatuses?.[0]?.state?.waiting;

/** One container with these settings, in a pod with those. */
function secured(name: string, own: Container['securityContext'], spec: Spec = {}, image = agent.image) {
  return shellPod(name, '', {
    containers: [{ name: 'main', image, command: ['sh', '-c', idle], ...(own && { securityContext: own }) }],
    ...spec,
  });
}

async function started(name: string, own: Container['securityContext'], spec: Spec = {}, image?: string) {
  agent.write(name, secured(name, own, spec, image));
  return await agent.ready(name);
}

/** A line of the `status` of the container's first process. */
async function processStatus(pod: Pod, field: string): Promise<string> {
  const status = await agent.exec(pod, 'main', 'cat', '/proc/1/status');
  return new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
}

async function refused(name: string, spec: Spec, annotations?: Record<string, string>): Promise<string> {
  const manifest = secured(name, undefined, spec);
  agent.write(name, { ...manifest, metadata: { name, ...(annotations && { annotations }) } });
  const pod = await agent.until(name, 'refused', ({ status }) => status?.phase === 'Failed');
  assert.deepEqual(await agent.instances(pod.metadata.uid), []);
  return `${pod.status?.reason}: ${pod.status?.message}`;
}

describe('users and groups', () => {
  it('[sig-node] Security Context should support pod.Spec.SecurityContext.RunAsUser And pod.Spec.SecurityContext.RunAsGroup [LinuxOnly] [Conformance]', async () => {
    const pod = await started('of-pod', undefined, {
      securityContext: { runAsUser: 1001, runAsGroup: 2002, fsGroup: 3003, supplementalGroups: [4004] },
    });
    assert.match(
      await agent.exec(pod, 'main', 'id'),
      /^uid=1001 gid=2002 groups=(?:2002,)?(?:3003,4004|4004,3003)$/m,
    );
  });

  it('[sig-node] Security Context should support container.SecurityContext.RunAsUser And container.SecurityContext.RunAsGroup [LinuxOnly] [Conformance]', async () => {
    const pod = await started(
      'of-container',
      { runAsUser: 1001, runAsGroup: 2002 },
      { securityContext: { runAsUser: 1, runAsGroup: 2 } },
    );
    assert.match(await agent.exec(pod, 'main', 'id'), /^uid=1001 gid=2002/);
  });

  it('[sig-node] Security Context When creating a container with runAsUser should run the container with uid 65534 [LinuxOnly] [NodeConformance] [Conformance]', async () => {
    const pod = await started('nobody', { runAsUser: 65_534 });
    assert.equal((await agent.exec(pod, 'main', 'id', '-u')).trim(), '65534');
  });

  it('[sig-node] Security Context When creating a container with runAsUser should run the container with uid 0 [LinuxOnly] [NodeConformance]', async () => {
    const pod = await started('root', { runAsUser: 0 }, {}, demoImages.numericUser);
    assert.equal((await agent.exec(pod, 'main', 'id', '-u')).trim(), '0');
  });

  it('[sig-node] Security Context When creating a container with runAsNonRoot [NodeConformance] should run with an explicit non-root user ID [LinuxOnly]', async () => {
    const pod = await started('explicit', { runAsNonRoot: true, runAsUser: 1234 });
    assert.equal((await agent.exec(pod, 'main', 'id', '-u')).trim(), '1234');
  });

  it('[sig-node] Security Context When creating a container with runAsNonRoot [NodeConformance] should run with an image specified user ID', async () => {
    const pod = await started('of-image', { runAsNonRoot: true }, {}, demoImages.numericUser);
    assert.equal((await agent.exec(pod, 'main', 'id', '-u')).trim(), '1000');
  });

  const mayNot: [title: string, own: Container['securityContext'], image: string, message: RegExp][] = [
    [
      '[sig-node] Security Context When creating a container with runAsNonRoot [NodeConformance] should not run with an explicit root user ID [LinuxOnly]',
      { runAsNonRoot: true, runAsUser: 0 },
      demoImages.busybox,
      /^container's runAsUser breaks non-root policy \(pod: "/,
    ],
    [
      '[sig-node] Security Context When creating a container with runAsNonRoot [NodeConformance] should not run without a specified user ID',
      { runAsNonRoot: true },
      demoImages.busybox,
      /^container has runAsNonRoot and image will run as root/,
    ],
    [
      'an image whose user has only a name is no proof',
      { runAsNonRoot: true },
      demoImages.namedUser,
      /^container has runAsNonRoot and image has non-numeric user \(app\)/,
    ],
  ];
  for (const [index, [title, own, image, message]] of mayNot.entries()) {
    it(title, async () => {
      const name = `may-not-${index}`;
      agent.write(name, secured(name, own, {}, image));
      const pod = await agent.until(name, 'held back', (seen) => Boolean(waiting(seen)?.message));
      assert.equal(waiting(pod)?.reason, 'CreateContainerConfigError');
      assert.match(waiting(pod)?.message ?? '', message);
      assert.deepEqual(await agent.instances(pod.metadata.uid), []);
    });
  }
});

describe('privileges', () => {
  it('[sig-node] Security Context When creating a pod with privileged should run the container as unprivileged when false [LinuxOnly] [NodeConformance] [Conformance]', async () => {
    const pod = await started('unprivileged', { privileged: false });
    await assert.rejects(agent.exec(pod, 'main', 'mount', '-t', 'tmpfs', 'none', '/mnt'), /exited with/);
  });

  it('[sig-node] PrivilegedPod [NodeConformance] should enable privileged commands [LinuxOnly]', async () => {
    const pod = await started('privileged', { privileged: true });
    await agent.exec(pod, 'main', 'sh', '-c', 'mkdir /tmp/m && mount -t tmpfs none /tmp/m && umount /tmp/m');
  });

  it('gives and takes capabilities', async () => {
    const pod = await started('capable', { capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } });
    assert.equal(BigInt(`0x${await processStatus(pod, 'CapEff')}`), 1n << 10n);
  });

  it('[sig-node] Security Context when creating containers with AllowPrivilegeEscalation should not allow privilege escalation when false [LinuxOnly] [NodeConformance] [Conformance]', async () => {
    const pod = await started('no-escalation', { allowPrivilegeEscalation: false, runAsUser: 1000 });
    assert.equal(await processStatus(pod, 'NoNewPrivs'), '1');
  });

  it('[sig-node] Security Context when creating containers with AllowPrivilegeEscalation should allow privilege escalation when true [LinuxOnly] [NodeConformance]', async () => {
    const pod = await started('escalation', { allowPrivilegeEscalation: true, runAsUser: 1000 });
    assert.equal(await processStatus(pod, 'NoNewPrivs'), '0');
  });

  it('[sig-node] Security Context when creating containers with AllowPrivilegeEscalation should allow privilege escalation when not explicitly set and uid != 0 [LinuxOnly] [NodeConformance]', async () => {
    const pod = await started('unsaid', { runAsUser: 1000 });
    assert.equal(await processStatus(pod, 'NoNewPrivs'), '0');
  });

  it('[sig-node] Security Context When creating a pod with readOnlyRootFilesystem should run the container with readonly rootfs when readOnlyRootFilesystem=true [LinuxOnly] [NodeConformance]', async () => {
    const pod = await started('read-only', { readOnlyRootFilesystem: true });
    await assert.rejects(agent.exec(pod, 'main', 'touch', '/file'), /Read-only file system/);
  });

  it('[sig-node] Security Context When creating a pod with readOnlyRootFilesystem should run the container with writable rootfs when readOnlyRootFilesystem=false [NodeConformance] [Conformance]', async () => {
    const pod = await started('writable', { readOnlyRootFilesystem: false });
    await agent.exec(pod, 'main', 'touch', '/file');
  });

  it('filters system calls: not at all, as the runtime does, by a file of the node', async () => {
    mkdirSync(agent.path('root', 'seccomp', 'own'), { recursive: true });
    const profile = {
      defaultAction: 'SCMP_ACT_ALLOW',
      syscalls: [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', errnoRet: 38 }],
    };
    writeFileSync(agent.path('root', 'seccomp', 'own', 'no-mkdir.json'), JSON.stringify(profile));
    const localhost = { type: 'Localhost', localhostProfile: 'own/no-mkdir.json' };
    const [none, byRuntime, byFile] = await Promise.all([
      started('unfiltered', undefined),
      started('filtered', undefined, { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } }),
      started('by-file', { seccompProfile: localhost }),
    ]);
    assert.equal(await processStatus(none, 'Seccomp'), '0');
    assert.equal(await processStatus(byRuntime, 'Seccomp'), '2');
    await assert.rejects(agent.exec(byFile, 'main', 'mkdir', '/tmp/x'), /Function not implemented/);
    await agent.exec(byFile, 'main', 'touch', '/tmp/x');
  });

  it('hides what the kernel tells only the node', async () => {
    const pod = await started('masked', undefined);
    assert.equal(await agent.exec(pod, 'main', 'cat', '/proc/timer_list'), '');
    await assert.rejects(
      agent.exec(pod, 'main', 'sh', '-c', 'echo x >/proc/sys/kernel/domainname'),
      /Read-only/,
    );
  });
});

describe('namespaces', () => {
  const two = (name: string, spec: Spec) =>
    shellPod(name, '', {
      ...spec,
      containers: ['main', 'other'].map((container) => ({
        name: container,
        image: agent.image,
        command: ['sh', '-c', idle],
      })),
    });

  it('[sig-node] Security Context [NodeConformance] [LinuxOnly] Container PID namespace sharing containers in pods using isolated PID namespaces should all receive PID 1', async () => {
    agent.write('isolated', two('isolated', {}));
    const pod = await agent.ready('isolated');
    for (const container of ['main', 'other']) {
      assert.match(await agent.exec(pod, container, 'cat', '/proc/1/cmdline'), /^sh\0-c\0trap/);
    }
  });

  it('[sig-node] Security Context [NodeConformance] [LinuxOnly] Container PID namespace sharing processes in containers sharing a pod namespace should be able to see each other', async () => {
    agent.write('sharing', two('sharing', { shareProcessNamespace: true }));
    const pod = await agent.ready('sharing');
    const processes = await agent.exec(pod, 'main', 'ps', '-o', 'args');
    assert.equal(processes.split('\n').filter((line) => line.includes('trap exit TERM')).length, 2);
    assert.doesNotMatch(await agent.exec(pod, 'main', 'cat', '/proc/1/cmdline'), /trap/);
  });

  it("shares the node's namespaces when asked to", async () => {
    const pod = await started('on-node', undefined, { hostPID: true, hostIPC: true, hostNetwork: true });
    for (const namespace of ['pid', 'ipc', 'net', 'uts']) {
      const inside = await agent.exec(pod, 'main', 'readlink', `/proc/self/ns/${namespace}`);
      assert.equal(inside.trim(), readlinkSync(`/proc/self/ns/${namespace}`));
    }
  });

  it('has a user namespace of its own where the runtime can, and tells where it cannot', async () => {
    const { runtimeHandlers } = await agent.runtime.status({ verbose: false });
    const isAble = runtimeHandlers.some(({ name, features }) => name === '' && features?.userNamespaces);
    const manifest = shellPod('mapped', idle, {
      hostUsers: false,
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: [
        {
          name: 'main',
          image: agent.image,
          command: ['sh', '-c', `echo bye >/dev/termination-log; echo x >/data/file; ${idle}`],
          volumeMounts: [{ name: 'data', mountPath: '/data' }],
          securityContext: { procMount: 'Unmasked' },
        },
      ],
    });
    agent.write('mapped', manifest);
    if (!isAble) {
      await agent.eventually('refused by the runtime', async () =>
        agent.log.includes('does not support user namespaces; it takes a runtime that does'),
      );
      const pod = await agent.pod('mapped');
      assert.equal(pod?.status?.phase, 'Pending');
      return;
    }
    const pod = await agent.ready('mapped');
    const { uid } = pod.metadata;
    const file = readFileSync(agent.path('root', 'pods', uid, 'userns'), 'utf8');
    const { uidMappings } = JSON.parse(file) as { uidMappings: { hostId: number; length: number }[] };
    const map = (await agent.exec(pod, 'main', 'cat', '/proc/self/uid_map')).trim().split(/\s+/).map(Number);
    assert.deepEqual(map, [0, uidMappings[0]?.hostId, uidMappings[0]?.length]);
    assert.equal(
      (await agent.exec(pod, 'main', 'stat', '-c', '%u', '/data/file', '/etc/hosts')).trim(),
      '0\n0',
    );
    await agent.kill();
    await agent.start();
    assert.equal((await agent.ready('mapped')).status?.containerStatuses?.[0]?.restartCount, 0);
    assert.equal(readFileSync(agent.path('root', 'pods', uid, 'userns'), 'utf8'), file);
  });
});

describe('sysctls', () => {
  const with_ = (...sysctls: [name: string, value: string][]): Spec => ({
    securityContext: { sysctls: sysctls.map(([name, value]) => ({ name, value })) },
  });

  it('[sig-node] Sysctls [LinuxOnly] [NodeConformance] should support sysctls [Environment:NotInUserNS] [Conformance]', async () => {
    const pod = await started(
      'sysctls',
      undefined,
      with_(['kernel.shm_rmid_forced', '1'], ['kernel.msgmax', '9000']),
    );
    const values = await agent.exec(
      pod,
      'main',
      'cat',
      '/proc/sys/kernel/shm_rmid_forced',
      '/proc/sys/kernel/msgmax',
    );
    assert.equal(values, '1\n9000\n');
  });

  it('[sig-node] Sysctls [LinuxOnly] [NodeConformance] should support sysctls with slashes as separator', async () => {
    const pod = await started('slashes', undefined, with_(['kernel/shm_rmid_forced', '1']));
    assert.equal(await agent.exec(pod, 'main', 'cat', '/proc/sys/kernel/shm_rmid_forced'), '1\n');
  });

  it('[sig-node] Sysctls [LinuxOnly] [NodeConformance] should not launch unsafe, but not explicitly enabled sysctls on the node', async () => {
    assert.equal(
      await refused('unsafe', with_(['kernel.shmmax', '10000000'])),
      'SysctlForbidden: Pod was rejected: forbidden sysctl: "kernel.shmmax" not allowlisted',
    );
  });
});

describe('admission', () => {
  it('refuses a port of the node that another pod has', async () => {
    const listening = (): Spec => ({
      containers: [
        {
          name: 'main',
          image: agent.image,
          command: ['sh', '-c', idle],
          ports: [{ containerPort: 80, hostPort: 45_801 }],
        },
      ],
    });
    agent.write('first', secured('first', undefined, listening()));
    await agent.ready('first');
    const answer =
      "NodePorts: Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
    assert.equal(await refused('second', listening()), answer);
  });

  it('refuses more than the node has, also after a restart of the agent', async () => {
    const resources = { requests: { cpu: '4096' } };
    const large: Spec = { containers: [{ name: 'main', image: agent.image, resources }] };
    const answer = /^UnexpectedAdmissionError: .*preemption: error finding a set of pods to preempt/;
    assert.match(await refused('large', large), answer);
    await agent.kill();
    await agent.start();
    const pod = await agent.until('large', 'refused', ({ status }) => status?.phase === 'Failed');
    assert.match(`${pod.status?.reason}: ${pod.status?.message}`, answer);
    const ready = await agent.ready('first');
    assert.equal(ready.status?.containerStatuses?.[0]?.restartCount, 0, 'what runs is not asked again');
  });

  it('refuses AppArmor profiles where the kernel has none', async (context) => {
    const hasAppArmor = (() => {
      try {
        return readFileSync('/sys/module/apparmor/parameters/enabled', 'utf8').startsWith('Y');
      } catch {
        return false;
      }
    })();
    if (hasAppArmor) {
      context.skip('this kernel has AppArmor');
      return;
    }
    const answer = 'AppArmor: Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host';
    const field = { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } };
    assert.equal(await refused('armored', field), answer);
    const annotation = { 'container.apparmor.security.beta.kubernetes.io/main': 'runtime/default' };
    assert.equal(await refused('annotated', {}, annotation), answer);
  });
});
