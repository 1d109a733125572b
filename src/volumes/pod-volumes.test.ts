import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { chmod, mkdir, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Pod, PodSpec, Volume, VolumeMount } from '../kubernetes/types.ts';
import { mountAt, mountsAtOrBelow } from '../linux/mount-table.ts';
import { bindMount, mountTmpfs, unmount, unmountAtOrBelow } from '../linux/mounts.ts';
import { memorySize } from './memory-file-systems.ts';
import { PodVolumes, PodVolumesError, usedVolumes } from './pod-volumes.ts';
import { NeedsApiServerError, UnsupportedVolumeError, VolumeError } from './volume-kind.ts';
import { createVolumeKinds } from './volume-kinds.ts';

let root: string;
let volumes: PodVolumes;
const uid = '0f5e0000-1111-2222-3333-444455556666';
const { signal } = new AbortController();

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pod-volumes-'));
  volumes = reopened();
});
afterEach(async () => {
  await unmountAtOrBelow(root);
  rmSync(root, { recursive: true, force: true });
});

/** As a newly started agent would have it: nothing remembered. */
function reopened(): PodVolumes {
  const kinds = createVolumeKinds({ nodeAllocatableMemory: () => 64 * 2 ** 20 });
  return new PodVolumes({ rootDirectory: root, kinds });
}

function pod(list: Volume[], more: Partial<PodSpec> = {}): Pod {
  const volumeMounts: VolumeMount[] = list.map(({ name }) => ({ name, mountPath: `/${name}` }));
  return {
    metadata: { name: 'web', namespace: 'default', uid },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      containers: [{ name: 'main', volumeMounts }],
      volumes: list,
      ...more,
    },
  };
}
const podDirectory = () => join(root, 'pods', uid);
const emptyDir = (name: string) => join(podDirectory(), 'volumes/kubernetes.io~empty-dir', name);
const mode = async (path: string) => (await stat(path)).mode & 0o7777;

describe('emptyDir', () => {
  it('is a directory for everybody, whatever the umask, with a marker when ready', async () => {
    const umask = process.umask(0o077);
    try {
      const [data] = await volumes.setUp(pod([{ name: 'data', emptyDir: {} }]), signal);
      assert.deepEqual(data, {
        name: 'data',
        kind: 'emptyDir',
        hostPath: emptyDir('data'),
        readOnly: false,
        relabels: true,
      });
    } finally {
      process.umask(umask);
    }
    assert.equal(await mode(emptyDir('data')), 0o777);
    await stat(join(podDirectory(), 'plugins/kubernetes.io~empty-dir/data/ready'));
  });

  it('keeps what containers wrote and changed when it is set up again', async () => {
    const web = pod([{ name: 'data', emptyDir: {} }]);
    await volumes.setUp(web, signal);
    await writeFile(join(emptyDir('data'), 'file'), 'kept');
    await chmod(emptyDir('data'), 0o700);
    await reopened().setUp(web, signal);
    assert.equal(await readFile(join(emptyDir('data'), 'file'), 'utf8'), 'kept');
    assert.equal(await mode(emptyDir('data')), 0o700);
  });

  it('in memory is a tmpfs of the right size, mounted once, and made anew after a reboot', async () => {
    const web = pod([{ name: 'mem', emptyDir: { medium: 'Memory', sizeLimit: '4Mi' } }]);
    await volumes.setUp(web, signal);
    await reopened().setUp(web, signal);
    const mounted = await mountAt(emptyDir('mem'));
    assert.equal(mounted?.type, 'tmpfs');
    assert.ok(mounted.superOptions.includes('size=4096k'), mounted.superOptions.join());
    assert.equal((await mountsAtOrBelow(root)).length, 1);
    assert.equal((await mode(emptyDir('mem'))) & 0o777, 0o777);
    await unmount(emptyDir('mem'));
    await reopened().setUp(web, signal);
    assert.equal((await mountAt(emptyDir('mem')))?.type, 'tmpfs');
  });

  it('is finished when an earlier run ended anywhere', async () => {
    const web = pod([{ name: 'mem', emptyDir: { medium: 'Memory' } }], {
      securityContext: { fsGroup: 4321 },
    });
    await mkdir(emptyDir('mem'), { recursive: true });
    await volumes.setUp(web, signal);
    await rm(join(podDirectory(), 'plugins'), { recursive: true });
    await reopened().setUp(web, signal);
    assert.equal((await mountsAtOrBelow(root)).length, 1);
    assert.equal((await stat(emptyDir('mem'))).gid, 4321);
  });

  for (const [limits, sizeLimit, node, expected] of [
    [undefined, undefined, 100, 100],
    [undefined, undefined, 0, undefined],
    ['50', undefined, 100, 50],
    ['50', '10', 100, 10],
    ['50', '70', 100, 50],
    [undefined, '200', 100, 100],
    ['500', '0', 100, 100],
  ] as const) {
    it(`in memory: node ${node}, pod ${limits}, sizeLimit ${sizeLimit} make ${expected} bytes`, () => {
      const spec: PodSpec = {
        containers: [{ name: 'a', ...(limits ? { resources: { limits: { memory: limits } } } : {}) }],
      };
      assert.equal(
        memorySize(spec, { medium: 'Memory', ...(sizeLimit ? { sizeLimit } : {}) }, node),
        expected,
      );
    });
  }

  it('in memory has no bound by the pod when one container has none', () => {
    const spec: PodSpec = {
      containers: [{ name: 'a', resources: { limits: { memory: '50' } } }, { name: 'b' }],
    };
    assert.equal(memorySize(spec, { medium: 'Memory' }, 100), 100);
  });

  it('in huge pages needs exactly the page size a container requests', async () => {
    const of = (medium: string, ...sizes: string[]) => {
      const limits = Object.fromEntries(sizes.map((size) => [`hugepages-${size}`, size]));
      return pod([{ name: 'huge', emptyDir: { medium } }], {
        containers: [{ name: 'a', resources: { limits }, volumeMounts: [{ name: 'huge', mountPath: '/h' }] }],
      });
    };
    for (const [web, message] of [
      [of('HugePages'), /the pod requests no huge pages/],
      [of('HugePages', '2Mi', '1Gi'), /several sizes/],
      [of('HugePages-1Gi', '2Mi'), /needs a container that requests hugepages-1Gi/],
      [of('Disk'), /unknown storage medium "Disk"/],
    ] as const) {
      await assert.rejects(volumes.setUp(web, signal), message);
    }
    const present = (await readdir('/sys/kernel/mm/hugepages').catch((): string[] => [])).includes(
      'hugepages-2048kB',
    );
    if (!present) return;
    await volumes.setUp(of('HugePages', '2Mi'), signal);
    const mounted = await mountAt(emptyDir('huge'));
    assert.equal(mounted?.type, 'hugetlbfs');
    assert.ok(mounted.superOptions.includes('pagesize=2M'), mounted.superOptions.join());
    await volumes.tearDown(uid, signal);
  });

  it('belongs to the fsGroup', async () => {
    await volumes.setUp(
      pod([{ name: 'data', emptyDir: {} }], { securityContext: { fsGroup: 4321 } }),
      signal,
    );
    assert.equal((await stat(emptyDir('data'))).gid, 4321);
    assert.equal(await mode(emptyDir('data')), 0o2777);
  });
});

describe('fsGroup', () => {});

describe('hostPath', () => {
  const setUp = async (path: string, type?: string) =>
    await volumes.setUp(
      pod([{ name: 'host', hostPath: { path, ...(type === undefined ? {} : { type }) } }]),
      signal,
    );

  it('is taken as it is without a type, and never made', async () => {
    const path = join(root, 'absent');
    for (const type of [undefined, '']) {
      assert.deepEqual(await setUp(path, type), [
        { name: 'host', kind: 'hostPath', hostPath: path, readOnly: false, relabels: false },
      ]);
    }
    await assert.rejects(stat(path), { code: 'ENOENT' });
  });

  it('is made where the type says so, with its mode, and left alone when it is there', async () => {
    await setUp(join(root, 'a/b'), 'DirectoryOrCreate');
    assert.equal(await mode(join(root, 'a/b')), 0o755);
    await chmod(join(root, 'a/b'), 0o700);
    await setUp(join(root, 'a/b'), 'DirectoryOrCreate');
    assert.equal(await mode(join(root, 'a/b')), 0o700);
    await setUp(join(root, 'a/file'), 'FileOrCreate');
    assert.equal(await mode(join(root, 'a/file')), 0o644);
    await writeFile(join(root, 'a/file'), 'kept');
    await setUp(join(root, 'a/file'), 'FileOrCreate');
    assert.equal(await readFile(join(root, 'a/file'), 'utf8'), 'kept');
  });

  it('has to be what the type says', async () => {
    const directory = join(root, 'directory');
    const file = join(root, 'file');
    const socket = join(root, 'socket');
    const block = join(root, 'block');
    await mkdir(directory);
    await writeFile(file, '');
    execFileSync('mknod', [block, 'b', '7', '200']);
    const server = createServer().listen(socket);
    await new Promise((resolve) => server.once('listening', resolve));
    try {
      const fitting: Record<string, string> = {
        Directory: directory,
        DirectoryOrCreate: directory,
        File: file,
        FileOrCreate: file,
        Socket: socket,
        CharDevice: '/dev/null',
        BlockDevice: block,
      };
      const names: Record<string, string> = {
        Directory: 'directory',
        DirectoryOrCreate: 'directory',
        File: 'file',
        FileOrCreate: 'file',
        Socket: 'socket file',
        CharDevice: 'character device',
        BlockDevice: 'block device',
      };
      for (const [type, own] of Object.entries(fitting)) {
        await setUp(own, type);
        for (const other of new Set(Object.values(fitting).filter((path) => path !== own))) {
          await assert.rejects(setUp(other, type), (error: Error) => {
            assert.ok(error.message.includes(`hostPath type check failed: ${other} is not a ${names[type]}`));
            return true;
          });
        }
      }
      for (const type of ['Directory', 'File', 'Socket', 'CharDevice', 'BlockDevice']) {
        await assert.rejects(setUp(join(root, 'absent'), type), /hostPath type check failed/);
      }
    } finally {
      server.close();
    }
  });

  it('is refused with .., an unknown type, or a parent that is missing or no directory', async () => {
    await assert.rejects(setUp('/srv/../etc'), /invalid HostPath/);
    await assert.rejects(setUp('/srv', 'Anything'), /unknown hostPath type "Anything"/);
    await assert.rejects(setUp(join(root, 'x/y'), 'FileOrCreate'), /cannot be used as FileOrCreate: ENOENT/);
    await writeFile(join(root, 'file'), '');
    await assert.rejects(setUp(join(root, 'file/y'), 'DirectoryOrCreate'), /ENOTDIR/);
  });
});

describe('the volumes of a pod', () => {
  it('are those that some container mounts', () => {
    const spec: PodSpec = {
      volumes: ['a', 'b', 'c', 'd', 'unused'].map((name) => ({ name, emptyDir: {} })),
      initContainers: [{ name: 'i', volumeMounts: [{ name: 'b', mountPath: '/b' }] }],
      containers: [{ name: 'm', volumeDevices: [{ name: 'a', devicePath: '/dev/a' }] }],
      ephemeralContainers: [{ name: 'e', volumeMounts: [{ name: 'd', mountPath: '/d' }] }],
    };
    assert.deepEqual(
      usedVolumes(spec).map(({ name }) => name),
      ['a', 'b', 'd'],
    );
  });

  it('fail together, each with its reason, and the good ones are set up', async () => {
    const web = pod([
      { name: 'good', emptyDir: {} },
      { name: 'config', configMap: { name: 'x' } },
      { name: 'bad', hostPath: { path: join(root, 'absent'), type: 'File' } },
      { name: 'plain' },
    ]);
    await assert.rejects(volumes.setUp(web, signal), (error) => {
      assert.ok(error instanceof PodVolumesError);
      assert.deepEqual(
        error.failures.map(({ volume }) => volume),
        ['config', 'bad'],
      );
      assert.ok(error.failures[0]!.error instanceof NeedsApiServerError);
      assert.ok(error.failures[1]!.error instanceof VolumeError);
      assert.match(
        error.message,
        /^MountVolume.SetUp failed for volume "config" : .*configMap, which needs an API server/,
      );
      return true;
    });
    await assert.rejects(
      volumes.setUp(pod([{ name: 'far', nfs: { server: 'files', path: '/' } }]), signal),
      (error) =>
        error instanceof PodVolumesError && error.failures[0]!.error instanceof UnsupportedVolumeError,
    );
    await stat(emptyDir('good'));
    await stat(emptyDir('plain'));
  });

  it('of the kind image are left to the runtime, with their sub-path and read-only', async () => {
    const model = pod([{ name: 'model', image: { reference: 'models/big:1' } }]);
    const container = {
      name: 'main',
      volumeMounts: [{ name: 'model', mountPath: '/model', subPath: 'weights/./a' }],
    };
    const [mount] = await volumes.containerMounts(
      {
        pod: model,
        container,
        volumes: await volumes.setUp(model, signal),
        lookup: () => undefined,
        recursiveReadOnlySupported: false,
        imageReference: (volume) => `sha256:${volume}`,
        selinuxEnabled: true,
      },
      signal,
    );
    assert.deepEqual(mount, {
      containerPath: '/model',
      hostPath: '',
      readOnly: true,
      recursiveReadOnly: false,
      propagation: 'None',
      selinuxRelabel: false,
      image: { reference: 'sha256:model', subPath: 'weights/a' },
    });
  });

  it('are not set up after an abort', async () => {
    const reason = new Error('stopped');
    await assert.rejects(
      volumes.setUp(pod([{ name: 'a', emptyDir: {} }]), AbortSignal.abort(reason)),
      reason,
    );
    await assert.rejects(stat(podDirectory()), { code: 'ENOENT' });
  });

  it('are refused for a uid or name that leads elsewhere', async () => {
    for (const bad of ['../x', '..', '', 'a/b']) {
      await assert.rejects(volumes.tearDown(bad, signal), /cannot be the name of a directory/);
    }
    await assert.rejects(
      volumes.setUp(pod([{ name: '../../x', emptyDir: {} }]), signal),
      /cannot be the name/,
    );
  });

  it('give containers their mounts, sub-paths and SELinux labels once', async () => {
    const web = pod([
      { name: 'data', emptyDir: {} },
      { name: 'mem', emptyDir: { medium: 'Memory' } },
    ]);
    const container = {
      name: 'main',
      volumeMounts: [
        { name: 'data', mountPath: '/data' },
        { name: 'mem', mountPath: '/log', subPathExpr: '$(POD)', readOnly: true },
      ],
    };
    const options = {
      pod: web,
      container,
      volumes: await volumes.setUp(web, signal),
      lookup: () => 'web-1',
      recursiveReadOnlySupported: false,
      imageReference: (volume: string) => `sha256:${volume}`,
      selinuxEnabled: true,
    };
    const target = join(podDirectory(), 'volume-subpaths/mem/main/1');
    const mounts = await volumes.containerMounts(options, signal);
    assert.deepEqual(mounts, [
      {
        containerPath: '/data',
        hostPath: emptyDir('data'),
        readOnly: false,
        recursiveReadOnly: false,
        propagation: 'None',
        selinuxRelabel: true,
      },
      {
        containerPath: '/log',
        hostPath: target,
        readOnly: true,
        recursiveReadOnly: false,
        propagation: 'None',
        selinuxRelabel: true,
      },
    ]);
    await writeFile(join(emptyDir('mem'), 'web-1/line'), '');
    assert.deepEqual(await readdir(target), ['line']);
    const again = await volumes.containerMounts(options, signal);
    assert.deepEqual(
      again.map((mount) => mount.selinuxRelabel),
      [false, false],
    );
    await volumes.tearDown(uid, signal);
    assert.deepEqual(await readdir(podDirectory()), []);
  });
});

describe('taking volumes down', () => {
  it('needs no spec, leaves nothing mounted, keeps other pods and what is not a volume', async () => {
    await volumes.setUp(
      pod([
        { name: 'data', emptyDir: {} },
        { name: 'mem', emptyDir: { medium: 'Memory' } },
        { name: 'host', hostPath: { path: join(root, 'host'), type: 'DirectoryOrCreate' } },
      ]),
      signal,
    );
    await mkdir(join(root, 'pods/other/volumes/kubernetes.io~empty-dir/data'), { recursive: true });
    await mkdir(join(podDirectory(), 'containers/main'), { recursive: true });
    await mkdir(join(root, 'pods/none/containers'), { recursive: true });
    assert.deepEqual((await volumes.podsWithVolumes()).sort(), [uid, 'other']);
    await reopened().tearDown(uid, signal);
    assert.deepEqual(await readdir(podDirectory()), ['containers']);
    assert.equal((await mountsAtOrBelow(root)).length, 0);
    await stat(join(root, 'host'));
    assert.deepEqual(await volumes.podsWithVolumes(), ['other']);
    await volumes.tearDown(uid, signal);
    await volumes.tearDown('never-seen', signal);
  });

  it('removes what the workload left: links, mounts, busy files, other plugins', async () => {
    await volumes.setUp(
      pod([
        { name: 'data', emptyDir: {} },
        { name: 'mem', emptyDir: { medium: 'Memory' } },
      ]),
      signal,
    );
    const outside = join(root, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'precious'), 'kept');
    await symlink(outside, join(emptyDir('data'), 'link'));
    await mkdir(join(emptyDir('data'), 'bound'));
    await bindMount(outside, join(emptyDir('data'), 'bound'));
    await mkdir(join(emptyDir('mem'), 'inner'));
    await mountTmpfs(join(emptyDir('mem'), 'inner'), []);
    await mkdir(join(podDirectory(), 'volumes/kubernetes.io~csi/pv/mount'), { recursive: true });
    await bindMount(outside, join(podDirectory(), 'volumes/kubernetes.io~csi/pv/mount'));
    const busy = await open(join(emptyDir('mem'), 'busy'), 'w');
    try {
      await volumes.tearDown(uid, signal);
    } finally {
      await busy.close();
    }
    assert.equal((await mountsAtOrBelow(root)).length, 0);
    assert.deepEqual(await readdir(podDirectory()), []);
    assert.equal(await readFile(join(outside, 'precious'), 'utf8'), 'kept');
  });

  it('names a file that cannot be removed, and finishes when it can', async (context) => {
    await volumes.setUp(pod([{ name: 'data', emptyDir: {} }]), signal);
    const file = join(emptyDir('data'), 'fixed');
    await writeFile(file, '');
    try {
      execFileSync('chattr', ['+i', file], { stdio: 'ignore' });
    } catch {
      return context.skip('the file system of the temporary directory has no immutable files');
    }
    try {
      await assert.rejects(volumes.tearDown(uid, signal), (error: Error) => error.message.includes(file));
    } finally {
      execFileSync('chattr', ['-i', file]);
    }
    await volumes.tearDown(uid, signal);
    assert.deepEqual(await volumes.podsWithVolumes(), []);
  });

  it('touches nothing when a volume directory was swapped for a link', async () => {
    const outside = join(root, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'precious'), 'kept');
    await mkdir(podDirectory(), { recursive: true });
    await symlink(outside, join(podDirectory(), 'volumes'));
    await volumes.tearDown(uid, signal);
    assert.deepEqual(await readdir(podDirectory()), []);
    assert.equal(await readFile(join(outside, 'precious'), 'utf8'), 'kept');
  });
});
