/** What containers find in the volumes of the node: emptyDir, hostPath, parts of them. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { Container, Pod } from '../../../src/kubernetes/types.ts';
import { idle, shellPod } from '../../e2e/agent.ts';
import { containerOf, Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;
const group = 4321;

function idler(name: string, more: Partial<Container> = {}): Container {
  return { name, image: agent.image, command: ['sh', '-c', idle], ...more };
}

function pod(name: string, spec: Partial<Pod['spec']>): string {
  return scenarios.pod(name, shellPod(name, idle, spec));
}

const media = { default: {}, tmpfs: { medium: 'Memory' } } as const;
const volumes = (['default', 'tmpfs'] as const).map((name) => ({ name, emptyDir: media[name] }));
const mounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));

/** Owner, group, kind and mode of a file, and its content. */
const look = (seen: Pod, container: string, path: string) =>
  agent.exec(seen, container, 'sh', '-c', `stat -c '%u %g %A' ${path}; test -d ${path} || cat ${path}`);

describe('emptyDir', () => {
  const shared = pod('modes', {
    volumes,
    containers: [
      idler('root', { volumeMounts: mounts }),
      idler('non-root', { volumeMounts: mounts, securityContext: { runAsUser: 1001 } }),
    ],
  });

  for (const [user, mode, medium, title] of [
    [
      'root',
      '0644',
      'default',
      '[sig-storage] EmptyDir volumes should support (root,0644,default) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'root',
      '0666',
      'default',
      '[sig-storage] EmptyDir volumes should support (root,0666,default) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'root',
      '0777',
      'default',
      '[sig-storage] EmptyDir volumes should support (root,0777,default) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'root',
      '0644',
      'tmpfs',
      '[sig-storage] EmptyDir volumes should support (root,0644,tmpfs) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'root',
      '0666',
      'tmpfs',
      '[sig-storage] EmptyDir volumes should support (root,0666,tmpfs) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'root',
      '0777',
      'tmpfs',
      '[sig-storage] EmptyDir volumes should support (root,0777,tmpfs) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'non-root',
      '0644',
      'default',
      '[sig-storage] EmptyDir volumes should support (non-root,0644,default) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'non-root',
      '0666',
      'default',
      '[sig-storage] EmptyDir volumes should support (non-root,0666,default) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'non-root',
      '0777',
      'default',
      '[sig-storage] EmptyDir volumes should support (non-root,0777,default) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'non-root',
      '0644',
      'tmpfs',
      '[sig-storage] EmptyDir volumes should support (non-root,0644,tmpfs) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'non-root',
      '0666',
      'tmpfs',
      '[sig-storage] EmptyDir volumes should support (non-root,0666,tmpfs) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'non-root',
      '0777',
      'tmpfs',
      '[sig-storage] EmptyDir volumes should support (non-root,0777,tmpfs) [LinuxOnly] [NodeConformance] [Conformance]',
    ],
  ] as const) {
    const modes = { '0644': '-rw-r--r--', '0666': '-rw-rw-rw-', '0777': '-rwxrwxrwx' };
    it(title, async () => {
      const seen = await agent.ready(shared);
      const file = `/${medium}/${user}-${mode}`;
      await agent.exec(seen, user, 'sh', '-c', `echo content >${file} && chmod ${mode} ${file}`);
      const uid = user === 'root' ? 0 : 1001;
      const group = user === 'root' ? '0' : '\\d+';
      const [facts = '', content] = (await look(seen, user, file)).split('\n');
      assert.match(facts, new RegExp(`^${uid} ${group} ${modes[mode]}$`));
      assert.equal(content, 'content');
      const inMount = (await agent.exec(seen, user, 'cat', '/proc/mounts')).split('\n');
      const kind = inMount.find((line) => line.split(' ')[1] === `/${medium}`)?.split(' ')[2];
      assert.equal(kind === 'tmpfs', medium === 'tmpfs');
    });
  }

  for (const [medium, title] of [
    [
      'default',
      '[sig-storage] EmptyDir volumes volume on default medium should have the correct mode [LinuxOnly] [NodeConformance] [Conformance]',
    ],
    [
      'tmpfs',
      '[sig-storage] EmptyDir volumes volume on tmpfs should have the correct mode [LinuxOnly] [NodeConformance] [Conformance]',
    ],
  ] as const) {
    it(title, async () => {
      const seen = await agent.ready(shared);
      // A tmpfs has the sticky bit of its own.
      assert.match(await look(seen, 'root', `/${medium}`), /^0 0 drwxrwxrw[xt]$/m);
    });
  }

  it('[sig-storage] EmptyDir volumes pod should support shared volumes between containers [Conformance]', async () => {
    const seen = await agent.ready(shared);
    for (const medium of ['default', 'tmpfs']) {
      await agent.exec(seen, 'non-root', 'sh', '-c', `echo from here >/${medium}/shared`);
      assert.equal(await agent.exec(seen, 'root', 'cat', `/${medium}/shared`), 'from here\n');
    }
  });

  const sized = pod('sized', {
    volumes: [{ name: 'tmpfs', emptyDir: { medium: 'Memory', sizeLimit: '10Mi' } }],
    containers: [idler('main', { volumeMounts: [{ name: 'tmpfs', mountPath: '/tmpfs' }] })],
  });
  it('[sig-storage] EmptyDir volumes pod should support memory backed volumes of specified size [NodeConformance]', async () => {
    const seen = await agent.ready(sized);
    assert.match(await agent.exec(seen, 'main', 'df', '-k', '/tmpfs'), /\b10240\b/);
  });

  const grouped = pod('grouped', {
    volumes,
    securityContext: { fsGroup: group },
    containers: [
      idler('root', { volumeMounts: mounts }),
      idler('non-root', { volumeMounts: mounts, securityContext: { runAsUser: 1001 } }),
      idler('part', { volumeMounts: [{ name: 'default', mountPath: '/part', subPath: 'new/part' }] }),
    ],
  });
  for (const [medium, title] of [
    [
      'default',
      '[sig-storage] EmptyDir volumes when FSGroup is specified [LinuxOnly] [NodeConformance] volume on default medium should have the correct mode using FSGroup',
    ],
    [
      'tmpfs',
      '[sig-storage] EmptyDir volumes when FSGroup is specified [LinuxOnly] [NodeConformance] volume on tmpfs should have the correct mode using FSGroup',
    ],
  ] as const) {
    it(title, async () => {
      const seen = await agent.ready(grouped);
      assert.match(await look(seen, 'root', `/${medium}`), new RegExp(`^0 ${group} drwxrwsrw[xt]$`, 'm'));
    });
  }
  for (const [user, title] of [
    [
      'root',
      '[sig-storage] EmptyDir volumes when FSGroup is specified [LinuxOnly] [NodeConformance] new files should be created with FSGroup ownership when container is root',
    ],
    [
      'non-root',
      '[sig-storage] EmptyDir volumes when FSGroup is specified [LinuxOnly] [NodeConformance] new files should be created with FSGroup ownership when container is non-root',
    ],
  ] as const) {
    it(title, async () => {
      const seen = await agent.ready(grouped);
      await agent.exec(seen, user, 'sh', '-c', `echo x >/default/${user}`);
      const uid = user === 'root' ? 0 : 1001;
      assert.match(await look(seen, user, `/default/${user}`), new RegExp(`^${uid} ${group} -`));
    });
  }
  it('[sig-storage] EmptyDir volumes when FSGroup is specified [LinuxOnly] [NodeConformance] files with FSGroup ownership should support (root,0644,tmpfs)', async () => {
    const seen = await agent.ready(grouped);
    await agent.exec(seen, 'root', 'sh', '-c', 'echo content >/tmpfs/file; chmod 0644 /tmpfs/file');
    assert.equal(await look(seen, 'root', '/tmpfs/file'), `0 ${group} -rw-r--r--\ncontent\n`);
  });
  it('[sig-storage] EmptyDir volumes when FSGroup is specified [LinuxOnly] [NodeConformance] nonexistent volume subPath should have the correct mode and owner using FSGroup', async () => {
    const seen = await agent.ready(grouped);
    assert.match(await look(seen, 'part', '/part'), new RegExp(`^0 ${group} drwxr[w-]s`));
  });

  const passing = pod('passing', {
    volumes: [{ name: 'tmpfs', emptyDir: { medium: 'Memory' } }],
    restartPolicy: 'Never',
    containers: [
      idler('main', {
        command: ['sh', '-c', 'echo x >/tmpfs/x'],
        volumeMounts: [{ name: 'tmpfs', mountPath: '/tmpfs' }],
      }),
    ],
  });
  it('[sig-node] Kubelet Volume Manager Volume Manager On termination of pod with memory backed volume should remove the volume from the node [NodeConformance]', async () => {
    const { metadata } = await scenarios.phase(passing, 'Succeeded');
    const volume = agent.path('root', 'pods', metadata.uid, 'volumes', 'kubernetes.io~empty-dir', 'tmpfs');
    await agent.eventually(
      'the volume gone',
      async () => !existsSync(volume) && !readFileSync('/proc/self/mountinfo', 'utf8').includes(volume),
    );
  });
});

describe('hostPath', () => {
  const path = agent.path('host');
  mkdirSync(path, { mode: 0o750 });
  const hostVolumes = [{ name: 'host', hostPath: { path } }];
  const host = pod('host', {
    volumes: hostVolumes,
    containers: [
      idler('one', { volumeMounts: [{ name: 'host', mountPath: '/host' }] }),
      idler('two', {
        volumeMounts: [
          { name: 'host', mountPath: '/host' },
          { name: 'host', mountPath: '/part', subPath: 'part' },
        ],
      }),
    ],
  });
  it('[sig-storage] HostPath should give a volume the correct mode [LinuxOnly] [NodeConformance]', async () => {
    const seen = await agent.ready(host);
    assert.equal((await look(seen, 'one', '/host')).trim(), '0 0 drwxr-x---');
  });
  it('[sig-storage] HostPath should support r/w [NodeConformance]', async () => {
    const seen = await agent.ready(host);
    await agent.exec(seen, 'one', 'sh', '-c', 'echo written >/host/file');
    assert.equal(await agent.exec(seen, 'two', 'cat', '/host/file'), 'written\n');
    assert.equal(readFileSync(`${path}/file`, 'utf8'), 'written\n');
  });
  it('[sig-storage] HostPath should support subPath [NodeConformance]', async () => {
    const seen = await agent.ready(host);
    await agent.exec(seen, 'two', 'sh', '-c', 'echo deep >/part/file');
    assert.equal(await agent.exec(seen, 'one', 'cat', '/host/part/file'), 'deep\n');
  });

  const missing = pod('missing', {
    volumes: [{ name: 'host', hostPath: { path: agent.path('nowhere'), type: 'Directory' } }],
    containers: [idler('main', { volumeMounts: [{ name: 'host', mountPath: '/host' }] })],
  });
  it('[sig-node] Terminate Pods [NodeConformance] should not hang when terminating pods mounting non-existent volumes', async () => {
    await agent.eventually('told', async () =>
      agent.log.split('\n').some((line) => line.includes('missing-node') && line.includes('FailedMount')),
    );
    agent.remove(missing);
    await agent.gone(missing);
  });
});

describe('part of a volume by expression', () => {
  const volume = [{ name: 'data', emptyDir: {} }];
  const whole = { name: 'data', mountPath: '/whole' };
  const part = { name: 'data', mountPath: '/part', subPathExpr: '$(WHERE)/$(POD_NAME)' };
  const where = (value: string) => [
    { name: 'WHERE', value },
    { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ];

  const good = pod('sub-path', {
    volumes: volume,
    containers: [idler('main', { env: where('for'), volumeMounts: [whole, part] })],
  });
  it('[sig-node] Variable Expansion should allow substituting values in a volume subpath [Conformance]', async () => {
    const seen = await agent.ready(good);
    await agent.exec(seen, 'main', 'test', '-d', `/whole/for/${seen.metadata.name}`);
  });
  it('[sig-node] Variable Expansion should succeed in writing subpaths in container [Conformance]', async () => {
    const seen = await agent.ready(good);
    await agent.exec(seen, 'main', 'sh', '-c', 'echo here >/part/file');
    const file = `/whole/for/${seen.metadata.name}/file`;
    assert.equal(await agent.exec(seen, 'main', 'cat', file), 'here\n');
  });

  for (const [name, value, title] of [
    [
      'absolute',
      '/etc',
      '[sig-node] Variable Expansion should fail substituting values in a volume subpath with absolute path [Conformance]',
    ],
    [
      'backwards',
      '..',
      '[sig-node] Variable Expansion should fail substituting values in a volume subpath with backticks [Conformance]',
    ],
  ] as const) {
    const bad = pod(`sub-path-${name}`, {
      volumes: volume,
      containers: [idler('main', { env: where(value), volumeMounts: [part] })],
    });
    it(title, async () => {
      const seen = await agent.until(bad, 'held back', (now) =>
        Boolean(containerOf(now, 'main')?.state?.waiting?.message),
      );
      assert.equal(containerOf(seen, 'main')?.state?.waiting?.reason, 'CreateContainerConfigError');
      assert.deepEqual(await agent.instances(seen.metadata.uid), []);
    });
  }
});

describe('recursive read-only mounts', () => {
  const readOnly = (name: string, recursiveReadOnly: string) => ({
    volumes: [{ name: 'data', emptyDir: {} }],
    containers: [
      idler(name, {
        volumeMounts: [{ name: 'data', mountPath: '/data', readOnly: true, recursiveReadOnly }],
      }),
    ],
  });
  const plain = pod('not-recursive', readOnly('main', 'IfPossible'));
  it('[sig-node] Mount recursive read-only [LinuxOnly] [NodeConformance] Mount recursive read-only when the runtime does not support recursive read-only mounts should accept non-recursive read-only mounts', async () => {
    const seen = await agent.ready(plain);
    await assert.rejects(agent.exec(seen, 'main', 'touch', '/data/x'), /Read-only/);
  });

  const recursive = pod('recursive', readOnly('main', 'Enabled'));
  it('[sig-node] Mount recursive read-only [LinuxOnly] [NodeConformance] Mount recursive read-only when the runtime does not support recursive read-only mounts should reject recursive read-only mounts', async (context) => {
    const { runtimeHandlers } = await agent.runtime.status({ verbose: false });
    if (runtimeHandlers.some(({ features }) => features?.recursiveReadOnlyMounts)) {
      context.skip('this runtime supports them');
      return;
    }
    const seen = await agent.until(recursive, 'held back', (now) =>
      Boolean(containerOf(now, 'main')?.state?.waiting?.message),
    );
    assert.match(containerOf(seen, 'main')?.state?.waiting?.message ?? '', /recursive/i);
    assert.deepEqual(await agent.instances(seen.metadata.uid), []);
  });

  const invalid = shellPod('invalid', idle, {
    volumes: [{ name: 'data', emptyDir: {} }],
    containers: [
      idler('main', {
        volumeMounts: [{ name: 'data', mountPath: '/data', recursiveReadOnly: 'Enabled' }],
      }),
    ],
  });
  scenarios.pod('invalid-recursive', { ...invalid, metadata: { name: 'invalid-recursive' } });
  it('[sig-node] Mount recursive read-only [LinuxOnly] [NodeConformance] Mount recursive read-only when the runtime supports recursive read-only mounts should reject invalid recursive read-only mounts', async () => {
    await agent.eventually('refused', async () =>
      /invalid-recursive\.json[^]*volumeMounts\[0\]\.recursiveReadOnly/.test(agent.log),
    );
    assert.equal(await agent.pod('invalid-recursive'), undefined);
  });
});
