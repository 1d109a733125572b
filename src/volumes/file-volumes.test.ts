import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { lstat, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { settle } from '../concurrency/virtual-clock.ts';
import { amountsOf } from '../kubernetes/pod-resources.ts';
import type { Pod, PodSpec, Volume, VolumeMount } from '../kubernetes/types.ts';
import { mountAt, mountsAtOrBelow } from '../linux/mount-table.ts';
import { unmountAtOrBelow } from '../linux/mounts.ts';
import { nestedMountPoints } from './nested-mounts.ts';
import { PodVolumes, PodVolumesError } from './pod-volumes.ts';
import { tokenAccess } from './projected.ts';
import { refreshSubPathsAnnotation } from './sub-path-refresh.ts';
import type { ObjectEntries, VolumeContents } from './volume-contents.ts';
import { VolumeFileError } from './volume-file.ts';
import { createVolumeKinds } from './volume-kinds.ts';

const { signal } = new AbortController();
let root: string;
let contents: FakeContents;
let volumes: PodVolumes;

class FakeContents implements VolumeContents {
  readonly objects = new Map<string, Record<string, string | Uint8Array>>();
  readonly reads: string[] = [];
  token = 'token-1';
  readonly wishes: { audience: string | undefined; existing: string | undefined }[] = [];
  unreachable = false;
  /** What a read waits for. */
  gate: Promise<void> = Promise.resolve();

  async configMap(namespace: string, name: string): Promise<ObjectEntries | undefined> {
    return await this.#entries(`configmap/${namespace}/${name}`);
  }

  async secret(namespace: string, name: string): Promise<ObjectEntries | undefined> {
    return await this.#entries(`secret/${namespace}/${name}`);
  }

  serviceAccountToken(wish: Parameters<VolumeContents['serviceAccountToken']>[0]): Promise<string> {
    this.wishes.push({ audience: wish.audience, existing: wish.existing });
    return Promise.resolve(this.token);
  }

  async #entries(key: string): Promise<ObjectEntries | undefined> {
    this.reads.push(key);
    if (this.unreachable) throw new Error(`cannot get ${key}: the API server did not answer`);
    const entries = Object.entries(this.objects.get(key) ?? {});
    const found = this.objects.has(key)
      ? new Map(entries.map(([name, value]) => [name, Buffer.from(value as string)] as const))
      : undefined;
    await this.gate;
    return found;
  }
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'file-volumes-'));
  contents = new FakeContents();
  volumes = reopened();
});
afterEach(async () => {
  await unmountAtOrBelow(root);
  rmSync(root, { recursive: true, force: true });
});

/** As a newly started agent would have it: nothing remembered. */
function reopened(): PodVolumes {
  const kinds = createVolumeKinds({
    nodeAllocatableMemory: () => 64 * 2 ** 20,
    nodeAllocatable: amountsOf({ cpu: '4', memory: '8Gi' }),
    contents,
  });
  return new PodVolumes({ rootDirectory: root, kinds });
}

function pod(list: Volume[], more: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  const volumeMounts: VolumeMount[] = list.map(({ name }) => ({ name, mountPath: `/${name}` }));
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'uid-1', ...metadata },
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

const place = (plugin: string, name: string, uid = 'uid-1') =>
  join(root, 'pods', uid, 'volumes', `kubernetes.io~${plugin}`, name);
const text = async (...path: string[]) => await readFile(join(...path), 'utf8');
const mode = async (...path: string[]) => (await stat(join(...path))).mode & 0o7777;
const visible = (directory: string) => readdirSync(directory).filter((name) => !name.startsWith('..'));

async function failure(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => assert.fail('must fail'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof PodVolumesError, String(error));
  return error.message;
}

describe('configMap', () => {
  const config = (more: Partial<NonNullable<Volume['configMap']>> = {}) =>
    pod([{ name: 'cfg', configMap: { name: 'app', ...more } }]);
  const directory = () => place('configmap', 'cfg');

  it('shows every key as a file, on disk, and containers only read it', async () => {
    contents.objects.set('configmap/shop/app', { 'a.conf': 'x', blob: Buffer.from([0, 255]) });
    const [mounted] = await volumes.setUp(config({ defaultMode: 0o400 }), signal);
    assert.deepEqual(mounted, {
      name: 'cfg',
      kind: 'configMap',
      hostPath: directory(),
      readOnly: true,
      relabels: true,
    });
    assert.equal(await text(directory(), 'a.conf'), 'x');
    assert.deepEqual([...(await readFile(join(directory(), 'blob')))], [0, 255]);
    assert.equal(await mode(directory(), 'a.conf'), 0o400);
    assert.equal(await mode(directory()), 0o777);
    assert.equal(await mountAt(directory()), undefined);
  });

  it('shows only the items, where and with the mode they say', async () => {
    contents.objects.set('configmap/shop/app', { a: '1', b: '2' });
    const items = [{ key: 'b', path: 'deep/b.txt', mode: 0o640 }];
    await volumes.setUp(config({ items }), signal);
    assert.deepEqual(visible(directory()), ['deep']);
    assert.equal(await text(directory(), 'deep/b.txt'), '2');
    assert.equal(await mode(directory(), 'deep/b.txt'), 0o640);
  });

  it('that is missing, or has no such key, is told in the words of the event, and leaves nothing', async () => {
    assert.equal(
      await failure(volumes.setUp(config(), signal)),
      'MountVolume.SetUp failed for volume "cfg" : configmap "app" not found',
    );
    contents.objects.set('configmap/shop/app', { a: '1' });
    assert.equal(
      await failure(volumes.setUp(config({ items: [{ key: 'z', path: 'z' }] }), signal)),
      'MountVolume.SetUp failed for volume "cfg" : configmap "app" has no key "z"',
    );
    await assert.rejects(stat(directory()), { code: 'ENOENT' });
  });

  it('may be missing when optional, and appears later', async () => {
    const items = [{ key: 'z', path: 'z' }];
    const web = config({ optional: true, items });
    await volumes.setUp(web, signal);
    assert.deepEqual(visible(directory()), []);
    contents.objects.set('configmap/shop/app', { a: '1' });
    await volumes.refresh(web);
    assert.deepEqual(visible(directory()), []);
    contents.objects.set('configmap/shop/app', { a: '1', z: '2' });
    await volumes.refresh(web);
    assert.equal(await text(directory(), 'z'), '2');
    contents.objects.delete('configmap/shop/app');
    await volumes.refresh(web);
    assert.deepEqual(visible(directory()), []);
  });

  it('is told apart from an API server that does not answer', async () => {
    contents.unreachable = true;
    assert.match(await failure(volumes.setUp(config({ optional: true }), signal)), /did not answer$/);
  });

  it('refuses items that lead out of the volume', async () => {
    contents.objects.set('configmap/shop/app', { a: '1' });
    for (const path of ['../x', '/etc/x', '..data', 'a/../../b']) {
      const message = await failure(volumes.setUp(config({ items: [{ key: 'a', path }] }), signal));
      assert.match(message, /volume "cfg" : invalid path/);
      assert.deepEqual(visible(join(root, 'pods/uid-1')), ['volumes']);
    }
  });

  it('has directories for what is mounted inside of it', async () => {
    contents.objects.set('configmap/shop/app', { a: '1' });
    const web = config();
    web.spec.containers = [
      {
        name: 'main',
        volumeMounts: [
          { name: 'cfg', mountPath: '/etc/app' },
          { name: 'data', mountPath: '/etc/app/data/deep' },
        ],
      },
    ];
    web.spec.volumes!.push({ name: 'data', emptyDir: {} });
    await volumes.setUp(web, signal);
    assert.ok((await stat(join(directory(), 'data/deep'))).isDirectory());
    contents.objects.set('configmap/shop/app', { a: '2' });
    await volumes.refresh(web);
    assert.ok((await stat(join(directory(), 'data/deep'))).isDirectory());
    assert.deepEqual(nestedMountPoints(web.spec, 'data'), []);
  });
});

describe('secret', () => {
  const keys = (more: Partial<PodSpec> = {}) =>
    pod([{ name: 'key', secret: { secretName: 'tls', defaultMode: 0o400 } }], more);
  const directory = () => place('secret', 'key');

  it('is in memory only, open to the fsGroup, and gone after tear-down', async () => {
    contents.objects.set('secret/shop/tls', { 'tls.key': 'k' });
    await volumes.setUp(keys({ securityContext: { fsGroup: 4321 } }), signal);
    const mounted = await mountAt(directory());
    assert.equal(mounted?.type, 'tmpfs');
    assert.ok(mounted.superOptions.includes('size=65536k'), mounted.superOptions.join());
    assert.equal(await text(directory(), 'tls.key'), 'k');
    assert.equal(await mode(directory(), 'tls.key'), 0o440);
    assert.equal((await stat(join(directory(), 'tls.key'))).gid, 4321);
    assert.equal((await lstat(directory())).gid, 4321);
    await volumes.tearDown('uid-1', signal);
    assert.deepEqual(await mountsAtOrBelow(root), []);
    await assert.rejects(stat(directory()), { code: 'ENOENT' });
  });

  it('is mounted once and written anew after a reboot', async () => {
    contents.objects.set('secret/shop/tls', { 'tls.key': 'k' });
    await volumes.setUp(keys(), signal);
    await reopened().setUp(keys(), signal);
    assert.equal((await mountsAtOrBelow(root)).length, 1);
    await unmountAtOrBelow(root);
    await reopened().setUp(keys(), signal);
    assert.equal(await text(directory(), 'tls.key'), 'k');
  });

  it('that is missing is named', async () => {
    assert.equal(
      await failure(volumes.setUp(keys(), signal)),
      'MountVolume.SetUp failed for volume "key" : secret "tls" not found',
    );
  });
});

describe('downwardAPI', () => {
  const item = (path: string, fieldPath: string) => ({ path, fieldRef: { fieldPath } });
  const info = (items: NonNullable<NonNullable<Volume['downwardAPI']>['items']>) =>
    pod(
      [{ name: 'info', downwardAPI: { items } }],
      {
        containers: [
          {
            name: 'main',
            resources: { limits: { cpu: '1500m' }, requests: { memory: '1Mi' } },
            volumeMounts: [{ name: 'info', mountPath: '/info' }],
          },
        ],
      },
      {
        labels: { tier: 'front', app: 'web' },
        annotations: { note: 'say "hi"\n\\ é 🙂 \u0001\u200b', empty: '' },
      },
    );
  const directory = () => place('downward-api', 'info');

  it('shows what the pod says of itself', async () => {
    await volumes.setUp(
      info([
        item('name', 'metadata.name'),
        item('sub/ns', 'metadata.namespace'),
        item('uid', 'metadata.uid'),
        item('labels', 'metadata.labels'),
        item('annotations', 'metadata.annotations'),
        item('app', "metadata.labels['app']"),
        item('none', "metadata.annotations['none']"),
        { path: 'cpu', mode: 0o400, resourceFieldRef: { containerName: 'main', resource: 'limits.cpu' } },
        {
          path: 'mem',
          resourceFieldRef: { containerName: 'main', resource: 'limits.memory', divisor: '1Gi' },
        },
      ]),
      signal,
    );
    assert.equal((await mountAt(directory()))?.type, 'tmpfs');
    const shown: Record<string, string> = {};
    for (const name of ['name', 'sub/ns', 'uid', 'labels', 'annotations', 'app', 'none', 'cpu', 'mem']) {
      shown[name] = await text(directory(), name);
    }
    assert.deepEqual(shown, {
      name: 'web',
      'sub/ns': 'shop',
      uid: 'uid-1',
      labels: 'app="web"\ntier="front"',
      annotations: 'empty=""\nnote="say \\"hi\\"\\n\\\\ é 🙂 \\x01\\u200b"',
      app: 'web',
      none: '',
      cpu: '2',
      mem: '8',
    });
    assert.equal(await mode(directory(), 'cpu'), 0o400);
  });

  it('follows labels and annotations of the pod', async () => {
    const items = [item('labels', 'metadata.labels')];
    await volumes.setUp(info(items), signal);
    const changed = info(items);
    changed.metadata.labels = { app: 'other' };
    await volumes.refresh(changed);
    assert.equal(await text(directory(), 'labels'), 'app="other"');
  });

  it('needs no API server', async () => {
    const kinds = createVolumeKinds({ nodeAllocatableMemory: () => 0 });
    const alone = new PodVolumes({ rootDirectory: root, kinds });
    await alone.setUp(info([item('name', 'metadata.name')]), signal);
    assert.equal(await text(directory(), 'name'), 'web');
  });

  for (const [broken, message] of [
    [item('x', 'status.podIP'), 'unsupported fieldPath: status.podIP'],
    [
      { path: 'x', resourceFieldRef: { containerName: 'no', resource: 'limits.cpu' } },
      'container "no" not found',
    ],
    [{ path: 'x' }, 'the file "x" has neither fieldRef nor resourceFieldRef'],
  ] as const) {
    it(`refuses: ${message}`, async () => {
      assert.ok((await failure(volumes.setUp(info([broken]), signal))).endsWith(` : ${message}`));
    });
  }
});

describe('projected', () => {
  type Sources = NonNullable<NonNullable<Volume['projected']>['sources']>;
  const all = (sources: Sources, more: Partial<PodSpec> = {}) =>
    pod([{ name: 'all', projected: { sources, defaultMode: 0o644 } }], more);
  const directory = () => place('projected', 'all');
  const token: Sources[number] = { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } };

  it('shows all its sources, the later over the earlier', async () => {
    contents.objects.set('configmap/shop/ca', { 'ca.crt': 'cert', same: 'map' });
    contents.objects.set('secret/shop/s', { same: 'secret' });
    const web = all([
      token,
      { configMap: { name: 'ca' } },
      { secret: { name: 's', items: [{ key: 'same', path: './same', mode: 0o600 }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
    ]);
    await volumes.setUp(web, signal);
    assert.equal((await mountAt(directory()))?.type, 'tmpfs');
    assert.deepEqual(visible(directory()), ['ca.crt', 'namespace', 'same', 'token']);
    assert.equal(await text(directory(), 'same'), 'secret');
    assert.equal(await text(directory(), 'token'), 'token-1');
    assert.equal(await mode(directory(), 'same'), 0o600);
    contents.token = 'token-2';
    await volumes.refresh(web);
    assert.equal(await text(directory(), 'token'), 'token-2');
    assert.deepEqual(
      contents.wishes.map(({ existing }) => existing),
      [undefined, 'token-1'],
    );
  });

  it('shows a token to the one user of the pod, and to its group', async () => {
    const security = { securityContext: { runAsUser: 1234, fsGroup: 4321 } };
    await volumes.setUp(all([token], security), signal);
    const facts = await stat(join(directory(), 'token'));
    assert.deepEqual([facts.uid, facts.gid, facts.mode & 0o7777], [1234, 4321, 0o640]);
    const two = (a?: number, b?: number): PodSpec => ({
      containers: [a, b].map((runAsUser, index) => ({
        name: `c${index}`,
        ...(runAsUser === undefined ? {} : { securityContext: { runAsUser } }),
      })),
    });
    assert.deepEqual(tokenAccess(two(7, 7), 0o644), { mode: 0o600, uid: 7 });
    assert.deepEqual(tokenAccess(two(7, 8), 0o644), { mode: 0o644, uid: undefined });
    assert.deepEqual(tokenAccess(two(7), 0o644), { mode: 0o644, uid: undefined });
    const grouped = { ...two(), securityContext: { fsGroup: 1 } };
    assert.deepEqual(tokenAccess(grouped, 0o644), { mode: 0o600, uid: undefined });
  });

  it('shows certificates the cluster trusts, with the access of tokens; without any, an empty file or none', async () => {
    const asked: unknown[] = [];
    const trusting: VolumeContents = {
      configMap: (namespace, name) => contents.configMap(namespace, name),
      secret: (namespace, name) => contents.secret(namespace, name),
      serviceAccountToken: (wish) => contents.serviceAccountToken(wish),
      trustedCertificates: async ({ pod: _, ...wish }) => {
        asked.push(wish);
        return wish.name === 'none' ? undefined : 'PEM';
      },
    };
    const kinds = createVolumeKinds({ nodeAllocatableMemory: () => 0, contents: trusting });
    const trusted = new PodVolumes({ rootDirectory: root, kinds });
    const bundle = (more: object) => all([{ clusterTrustBundle: { path: 'ca.pem', ...more } }]);
    const signed = bundle({ signerName: 'example.com/x', labelSelector: { matchLabels: { a: 'b' } } });
    const grouped = { ...signed, spec: { ...signed.spec, securityContext: { fsGroup: 4321 } } };
    await trusted.setUp(grouped, signal);
    assert.equal(await text(place('projected', 'all'), 'ca.pem'), 'PEM');
    assert.equal(await mode(place('projected', 'all'), 'ca.pem'), 0o640);
    assert.deepEqual(asked, [
      { name: undefined, signerName: 'example.com/x', labelSelector: { matchLabels: { a: 'b' } } },
    ]);
    assert.match(
      await failure(trusted.setUp(bundle({ name: 'none' }), signal)),
      /there is no cluster trust bundle "none"$/,
    );
    await trusted.setUp(bundle({ name: 'none', optional: true }), signal);
    assert.equal(await text(place('projected', 'all'), 'ca.pem'), '');
  });

  it('holds keys and certificates of the pod, readable for its user alone, and hands back what is there', async () => {
    const asked: { source: string; existing: string }[] = [];
    const certified = new PodVolumes({
      rootDirectory: root,
      kinds: createVolumeKinds({
        nodeAllocatableMemory: () => 2 ** 20,
        contents: {
          configMap: () => Promise.resolve(undefined),
          secret: () => Promise.resolve(undefined),
          serviceAccountToken: () => Promise.resolve(''),
          podCertificate: ({ source, existing }) => {
            asked.push({ source, existing });
            return Promise.resolve({ key: `KEY-${source}\n`, chain: 'CHAIN\n' });
          },
        },
      }),
    });
    const common = { keyType: 'ED25519', signerName: 's/x' };
    const spec = all([
      { podCertificate: { ...common, credentialBundlePath: 'bundle.pem' } },
      { podCertificate: { ...common, keyPath: 'tls/key.pem', certificateChainPath: 'tls/chain.pem' } },
    ]);
    const owned = { ...spec, spec: { ...spec.spec, securityContext: { runAsUser: 1234 } } };
    await certified.setUp(owned, signal);
    const directory = place('projected', 'all');
    assert.equal(await text(directory, 'bundle.pem'), 'KEY-all/0\nCHAIN\n');
    assert.equal(await text(directory, 'tls/key.pem'), 'KEY-all/1\n');
    assert.equal(await text(directory, 'tls/chain.pem'), 'CHAIN\n');
    for (const file of ['bundle.pem', 'tls/key.pem', 'tls/chain.pem']) {
      assert.equal(await mode(directory, file), 0o600);
      assert.equal((await stat(join(directory, file))).uid, 1234);
    }
    assert.equal((await mountAt(directory))?.type, 'tmpfs');
    await certified.refresh(owned);
    // The sources are read side by side: whichever file is read first asks first.
    const again = asked.slice(2).toSorted((a, b) => a.source.localeCompare(b.source));
    assert.deepEqual(again, [
      { source: 'all/0', existing: 'KEY-all/0\nCHAIN\n' },
      { source: 'all/1', existing: 'KEY-all/1\n\nCHAIN\n' },
    ]);
  });

  it('fails as a whole, and tells every reason', async () => {
    assert.match(
      await failure(
        volumes.setUp(all([token, { configMap: { name: 'ca' } }, { secret: { name: 's' } }]), signal),
      ),
      /volume "all" : \[configmap "ca" not found, secret "s" not found\]$/,
    );
    assert.match(
      await failure(volumes.setUp(all([{ clusterTrustBundle: { name: 'b', path: 'b' } }]), signal)),
      /has the source clusterTrustBundle, and the feature gate ClusterTrustBundleProjection is off/,
    );
    assert.match(
      await failure(
        volumes.setUp(all([{ podCertificate: { keyType: 'ED25519', signerName: 's' } }]), signal),
      ),
      /has the source podCertificate, and the feature gate PodCertificateRequest is off/,
    );
    assert.match(
      await failure(volumes.setUp(all([{ futureThing: {} }] as never), signal)),
      /has the source futureThing, which is not supported yet/,
    );
  });

  it('needs an API server for what comes from there', async () => {
    const kinds = createVolumeKinds({ nodeAllocatableMemory: () => 0 });
    const alone = new PodVolumes({ rootDirectory: root, kinds });
    for (const [volume, kind] of [
      [{ configMap: { name: 'a' } }, 'configMap'],
      [{ secret: { secretName: 'a' } }, 'secret'],
      [{ projected: { sources: [token] } }, 'projected \\(serviceAccountToken\\)'],
    ] as const) {
      const message = await failure(alone.setUp(pod([{ name: 'v', ...volume }] as Volume[]), signal));
      assert.match(message, new RegExp(`"v" is of the kind ${kind}, which needs an API server`));
    }
  });
});

describe('a refresh', () => {
  const web = (uid = 'uid-1', metadata: Partial<Pod['metadata']> = {}, subPath = 'a') =>
    pod(
      [{ name: 'cfg', configMap: { name: 'app' } }],
      {
        containers: [
          {
            name: 'main',
            volumeMounts: [
              { name: 'cfg', mountPath: '/cfg' },
              { name: 'cfg', mountPath: '/file', subPath },
            ],
          },
        ],
      },
      { uid, ...metadata },
    );
  const directory = (uid = 'uid-1') => place('configmap', 'cfg', uid);
  const set = (value: string) => contents.objects.set('configmap/shop/app', { a: value });

  it('of an unchanged object writes nothing; of a missing one keeps the old files', async () => {
    set('1');
    await volumes.setUp(web(), signal);
    const before = await readlink(join(directory(), '..data'));
    await volumes.refresh(web());
    assert.equal(await readlink(join(directory(), '..data')), before);
    contents.objects.clear();
    assert.match(await failure(volumes.refresh(web())), /configmap "app" not found/);
    assert.equal(await text(directory(), 'a'), '1');
  });

  it('does nothing before volumes are set up and after they are taken down', async () => {
    set('1');
    await volumes.refresh(web());
    await assert.rejects(stat(directory()), { code: 'ENOENT' });
    assert.deepEqual(contents.reads, []);
    await volumes.setUp(web(), signal);
    await volumes.tearDown('uid-1', signal);
    await volumes.refresh(web());
    await assert.rejects(stat(directory()), { code: 'ENOENT' });
  });

  it('works for an agent that has just started, too', async () => {
    set('1');
    await volumes.setUp(web(), signal);
    set('2');
    await reopened().refresh(web());
    assert.equal(await text(directory(), 'a'), '2');
  });

  it('that is asked for while volumes are set up is not lost', async () => {
    set('1');
    const gate = Promise.withResolvers<void>();
    contents.gate = gate.promise;
    const settingUp = volumes.setUp(web(), signal);
    await settle();
    set('2');
    const refreshed = volumes.refresh(web());
    gate.resolve();
    await Promise.all([settingUp, refreshed]);
    assert.equal(await text(directory(), 'a'), '2');
  });

  it('runs once more for any number of changes meanwhile, and last for the newest', async () => {
    set('1');
    await volumes.setUp(web(), signal);
    const gate = Promise.withResolvers<void>();
    contents.gate = gate.promise;
    contents.reads.length = 0;
    const calls = [volumes.refresh(web())];
    while (contents.reads.length === 0) await settle();
    for (const value of ['2', '3', '4']) {
      set(value);
      calls.push(volumes.refresh(web()));
    }
    gate.resolve();
    await Promise.all(calls);
    assert.equal(contents.reads.length, 2);
    assert.equal(await text(directory(), 'a'), '4');
  });

  it('ends when the volumes are taken down, and leaves nothing', async () => {
    set('1');
    await volumes.setUp(web(), signal);
    const gate = Promise.withResolvers<void>();
    contents.gate = gate.promise;
    contents.reads.length = 0;
    const refreshed = volumes.refresh(web());
    while (contents.reads.length === 0) await settle();
    const down = volumes.tearDown('uid-1', signal);
    gate.resolve();
    await Promise.all([refreshed, down]);
    await assert.rejects(stat(directory()), { code: 'ENOENT' });
    assert.deepEqual(await volumes.podsWithVolumes(), []);
  });

  it('of 300 pods that share an object asks for it once each, from the cache, and reaches every file', async () => {
    set('1');
    const pods = Array.from({ length: 300 }, (_, index) => web(`uid-${index}`));
    await Promise.all(pods.map((one) => volumes.setUp(one, signal)));
    contents.reads.length = 0;
    set('2');
    await Promise.all(pods.map((one) => volumes.refresh(one)));
    assert.equal(contents.reads.length, 300);
    for (const { metadata } of pods) assert.equal(await text(directory(metadata.uid), 'a'), '2');
  });

  for (const asks of [true, false]) {
    it(`${asks ? 'reaches' : 'leaves'} a file mounted by subPath when the pod ${asks ? 'asks for it' : 'does not ask'}`, async () => {
      const annotations: Record<string, string> = asks ? { [refreshSubPathsAnnotation]: 'true' } : {};
      const asking = web('uid-1', { annotations });
      set('a longer text');
      const mounted = await volumes.setUp(asking, signal);
      const mounts = await volumes.containerMounts(
        {
          pod: asking,
          container: asking.spec.containers[0]!,
          volumes: mounted,
          lookup: () => undefined,
          recursiveReadOnlySupported: false,
          imageReference: (volume) => `sha256:${volume}`,
          selinuxEnabled: false,
        },
        signal,
      );
      const target = mounts[1]!.hostPath;
      // The container holds the file that was there when it started.
      const fd = openSync(target, 'r');
      try {
        set('new');
        await volumes.refresh(asking);
        assert.equal(await text(directory(), 'a'), 'new');
        assert.equal(readFileSync(`/proc/self/fd/${fd}`, 'utf8'), asks ? 'new' : 'a longer text');
        if (asks) {
          set('newer and longer');
          await volumes.refresh(asking);
          assert.equal(readFileSync(`/proc/self/fd/${fd}`, 'utf8'), 'newer and longer');
        }
      } finally {
        closeSync(fd);
      }
    });
  }
});

describe('a file that a workload has written', () => {
  const web = pod([{ name: 'data', emptyDir: {} }]);
  const directory = () => place('empty-dir', 'data');
  const read = (path: string) => volumes.readFile(web, 'data', path);

  beforeEach(async () => {
    await volumes.setUp(web, signal);
    await mkdir(join(directory(), 'sub'));
    await writeFile(join(directory(), 'sub/app.env'), "A='1'\n");
  });

  it('is read, also through links within the volume', async () => {
    await symlink('sub/app.env', join(directory(), 'link'));
    assert.equal(await read('sub/app.env'), "A='1'\n");
    assert.equal(await read('link'), "A='1'\n");
    assert.equal(await read('absent'), undefined);
    assert.equal(await read('sub/app.env/x'), undefined);
    assert.equal(await volumes.readFile(web, 'other', 'x'), undefined);
  });

  it('is never one outside of the volume', async () => {
    await symlink('/etc/passwd', join(directory(), 'absolute'));
    await symlink('../../../../../../etc/passwd', join(directory(), 'relative'));
    await symlink('/proc/self/root', join(directory(), 'magic'));
    for (const path of ['absolute', 'relative', 'magic/etc/passwd']) {
      await assert.rejects(read(path), (error) => {
        assert.ok(error instanceof VolumeFileError);
        assert.match(error.message, /leads out of the volume/);
        return true;
      });
    }
    await assert.rejects(read('../x'), VolumeFileError);
    await assert.rejects(read('/etc/passwd'), VolumeFileError);
  });

  it('is a regular file of a sane size', async () => {
    await writeFile(join(directory(), 'large'), Buffer.alloc(2 ** 20 + 1));
    await assert.rejects(read('large'), /larger than/);
    await assert.rejects(read('sub'), /not a regular file/);
    assert.deepEqual((await readdir(directory())).sort(), ['large', 'sub']);
  });
});
