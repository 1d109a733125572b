/**
 * Pulling from a real registry that wants a password, on a containerd of its own: who gets in, who may use
 * what has come, that pulls are shared and do not wait for each other, and that removing images spares what
 * is needed. Skipped, with the reason, where that machinery cannot be had.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { demoImages, importDemoImages } from '../../scripts/machine/demo-images.ts';
import { startPrivateContainerd, stopPrivateContainerd } from '../../scripts/machine/private-containerd.ts';
import { systemClock } from '../../src/concurrency/clock.ts';
import { ImageKeyring } from '../../src/credentials/image-keyring.ts';
import { CriClient } from '../../src/runtime/cri/cri-client.ts';
import { ImageCollector } from '../../src/runtime/garbage/image-collector.ts';
import {
  containerdContentStore,
  containerdDownloads,
} from '../../src/runtime/images/containerd-downloads.ts';
import { ImagePuller, type ImageRequest } from '../../src/runtime/images/image-puller.ts';
import { type PullProgress, progressMessage } from '../../src/runtime/images/pull-progress.ts';
import { PullRecords } from '../../src/runtime/images/pull-records.ts';
import { silentEvents } from '../../src/telemetry/events.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import { silentMetrics } from '../../src/telemetry/metrics.ts';
import { type Registry, registryProgram, startRegistry, users } from './docker-registry.ts';
import { pushImage } from './push-image.ts';
import { SlowProxy } from './slow-proxy.ts';

interface World {
  readonly directory: string;
  readonly registry: Registry;
  readonly proxy: SlowProxy;
  readonly client: CriClient;
}

const mebi = 2 ** 20;
const directory = mkdtempSync('/var/tmp/kubelet-ts-registry-');
let world: World | undefined;
let obstacle = '';

before(async () => {
  try {
    const program = await registryProgram();
    const containerdDirectory = join(directory, 'containerd');
    const { endpoint, snapshotter } = await startPrivateContainerd({ directory: containerdDirectory });
    await importDemoImages({ endpoint, directory: containerdDirectory, snapshotter });
    const registry = await startRegistry(program, join(directory, 'registry'));
    const client = new CriClient({ endpoint, clock: systemClock, metrics: silentMetrics });
    world = { directory, registry, client, proxy: await SlowProxy.start(registry.port) };
  } catch (error) {
    obstacle = `no registry and containerd of our own: ${(error as Error).message}`;
  }
});

after(async () => {
  await world?.client.close();
  await world?.proxy.close();
  await world?.registry.stop();
  await stopPrivateContainerd(join(directory, 'containerd'), { data: true });
  rmSync(directory, { recursive: true, force: true });
});

/** The world, or a skipped test. */
function needWorld(context: TestContext): World | undefined {
  if (!world) context.skip(obstacle);
  return world;
}

let count = 0;

/** A new image in the registry; the reference goes through the proxy. */
async function newImage({ registry, proxy }: World, ...layers: Buffer[]): Promise<string> {
  const repository = `team${++count}/app`;
  const user = { name: 'alice', password: users.alice.password };
  await pushImage({
    port: registry.port,
    user,
    repository,
    tag: '1',
    layers: layers.length > 0 ? layers : [randomBytes(2000)],
  });
  return `127.0.0.1:${proxy.port}/${repository}:1`;
}

type Auths = Record<string, { username: string; password: string }>;

/** An agent's image machinery with a root directory of its own. */
async function agentWith({ client, proxy, directory: base }: World, auths: Auths, pluginScript?: string) {
  const rootDirectory = mkdtempSync(join(base, 'root-'));
  writeFileSync(join(rootDirectory, 'config.json'), JSON.stringify({ auths }));
  const common = { rootDirectory, clock: systemClock, logger: silentLogger };
  const keyring = ImageKeyring.open({
    ...common,
    environment: process.env,
    ...(pluginScript !== undefined && { providers: pluginIn(rootDirectory, pluginScript, proxy.port) }),
  });
  const access = new PullRecords({ ...common, policy: 'NeverVerifyPreloadedImages' });
  await access.recover(async () => undefined);
  const pulls: string[] = [];
  const puller = new ImagePuller({
    images: {
      imageStatus: (...call) => client.imageStatus(...call),
      pullImage(request, options) {
        pulls.push(request.image?.image ?? '');
        return client.pullImage(request, options);
      },
    },
    clock: systemClock,
    access,
    downloads: containerdDownloads(containerdContentStore(client.connection)),
  });
  const ensure = (image: string, request: Partial<ImageRequest> = {}) =>
    puller.ensure(
      {
        podUid: `pod-${++count}`,
        image,
        policy: 'IfNotPresent',
        sandboxConfig: undefined,
        credentials: () => keyring.credentialsFor(image),
        onEvent() {},
        ...request,
      },
      AbortSignal.timeout(60_000),
    );
  return { keyring, ensure, pulls, rootDirectory };
}

function pluginIn(rootDirectory: string, script: string, port: number) {
  const binDirectory = join(rootDirectory, 'plugins');
  mkdirSync(binDirectory);
  writeFileSync(join(binDirectory, 'provider'), `#!/bin/sh\n${script}\n`);
  chmodSync(join(binDirectory, 'provider'), 0o755);
  const path = join(rootDirectory, 'providers.yaml');
  const provider = {
    name: 'provider',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    matchImages: [`127.0.0.1:${port}`],
    defaultCacheDuration: '1m',
  };
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'kubelet.config.k8s.io/v1',
      kind: 'CredentialProviderConfig',
      providers: [provider],
    }),
  );
  return { path, binDirectory, tokensEnabled: true };
}

const login = (username: string, password: string) => ({ username, password });
const alice = login('alice', users.alice.password);
const bob = login('bob', users.bob.password);

test('without credentials, and with wrong ones, nobody gets in', async (context) => {
  const here = needWorld(context);
  if (!here) return;
  const image = await newImage(here);
  for (const auths of [{}, { [`127.0.0.1:${here.proxy.port}`]: login('alice', 'wrong') }]) {
    const { ensure } = await agentWith(here, auths);
    const outcome = await ensure(image);
    assert.ok(!outcome.ok);
    assert.equal(outcome.reason, 'ErrImagePull');
    assert.match(outcome.message, /unauthorized|authorization failed|no basic auth|401/i);
    assert.ok(!outcome.message.includes('wrong'), 'no message has a password');
  }
});

test('with the right ones the image comes', async (context) => {
  const here = needWorld(context);
  if (!here) return;
  const image = await newImage(here);
  const { ensure } = await agentWith(here, { [`127.0.0.1:${here.proxy.port}`]: alice });
  const events: string[] = [];
  const outcome = await ensure(image, { onEvent: ({ message }) => events.push(message) });
  assert.ok(
    outcome.ok && outcome.pulled,
    JSON.stringify(outcome, (_key, value: unknown) => String(value)),
  );
  assert.match(events.at(-1) ?? '', /^Successfully pulled image .* Image size: \d+ bytes\.$/);
});

test('of several, those that fail leave the others their try, the most particular first', async (context) => {
  const here = needWorld(context);
  if (!here) return;
  const image = await newImage(here);
  const repository = image.replace(/:1$/, '');
  const { ensure, keyring } = await agentWith(here, {
    [`http://127.0.0.1:${here.proxy.port}/v2/`]: alice,
    [repository]: login('bob', 'wrong'),
    '127.0.0.1:1': bob,
  });
  const found = await keyring.credentialsFor(image);
  assert.deepEqual(
    found.map(({ credential }) => credential.username),
    ['bob', 'alice'],
  );
  const outcome = await ensure(image);
  assert.ok(outcome.ok && outcome.pulled);
});

test('a credential provider plugin opens the door', async (context) => {
  const here = needWorld(context);
  if (!here) return;
  const image = await newImage(here);
  const answer = {
    kind: 'CredentialProviderResponse',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    cacheKeyType: 'Registry',
    auth: { [`127.0.0.1:${here.proxy.port}`]: bob },
  };
  const { ensure } = await agentWith(here, {}, `cat > /dev/null; echo '${JSON.stringify(answer)}'`);
  const outcome = await ensure(image);
  assert.ok(outcome.ok && outcome.pulled);
});

test('an image that a secret has opened is open to that secret only', async (context) => {
  const here = needWorld(context);
  if (!here) return;
  const image = await newImage(here);
  const { ensure, keyring } = await agentWith(here, {});
  const auths = JSON.stringify({ auths: { [`127.0.0.1:${here.proxy.port}`]: alice } });
  const secret = {
    metadata: { name: 'pull', namespace: 'a', uid: 'u-1' },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(auths).toString('base64') },
  };
  const withSecret = { credentials: () => keyring.credentialsFor(image, { podSecrets: [secret] }) };
  const first = await ensure(image, withSecret);
  assert.ok(first.ok && first.pulled);
  const again = await ensure(image, withSecret);
  assert.ok(again.ok && !again.pulled);
  const stranger = await ensure(image);
  assert.ok(!stranger.ok && stranger.reason === 'ErrImagePull', 'it has to pull, and cannot');
  const offline = await ensure(image, { policy: 'Never' });
  assert.ok(!offline.ok && offline.reason === 'ErrImageNeverPull');
  const preloaded = await ensure(demoImages.busybox);
  assert.ok(preloaded.ok && !preloaded.pulled, 'what was there before is open to everybody');
});

test('many pods share one pull; a slow one shows how far it is and delays no other', async (context) => {
  const here = needWorld(context);
  if (!here) return;
  const { proxy } = here;
  const slowImage = await newImage(here, randomBytes(4 * mebi), randomBytes(2000));
  const others = [await newImage(here), await newImage(here)];
  const { ensure, pulls } = await agentWith(here, { [`127.0.0.1:${proxy.port}`]: alice });
  const path = new URL(`http://${slowImage}`).pathname.replace(/:1$/, '');
  const release = proxy.hold(new RegExp(`^/v2${path}/blobs/`), 2.5 * mebi);
  let seen = (_text: string) => {};
  const progress = new Promise<string>((resolve) => (seen = resolve));
  const onProgress = (now: PullProgress) => {
    if (now.bytes && now.bytes.doneBytes >= 2 * mebi) seen(progressMessage('slow', now));
  };
  let settled = false;
  const slow = Promise.all([1, 2, 3].map(() => ensure(slowImage, { onProgress })));
  void slow.finally(() => (settled = true)).catch(() => {});
  try {
    assert.match(await progress, /^Pulling image "slow": 2.0 of 4.0 MiB$/);
    for (const outcome of await Promise.all(others.map((image) => ensure(image)))) assert.ok(outcome.ok);
    assert.equal(settled, false);
  } finally {
    release();
  }
  for (const outcome of await slow) assert.ok(outcome.ok && outcome.pulled);
  assert.equal(pulls.filter((image) => image === slowImage).length, 1);
});

test('removing images that nobody uses spares the one of the sandboxes', async (context) => {
  const here = needWorld(context);
  if (!here) return;
  const { client } = here;
  const image = await newImage(here);
  const { ensure, rootDirectory } = await agentWith(here, { [`127.0.0.1:${here.proxy.port}`]: alice });
  assert.ok((await ensure(image)).ok);
  const collector = new ImageCollector({
    runtime: client,
    rules: { highPercent: 85, lowPercent: 80, minAgeMs: 0, maxAgeMs: 0 },
    rootDirectory,
    nodeName: 'n',
    clock: systemClock,
    logger: silentLogger,
    events: silentEvents,
    diskSpace: async () => ({ capacity: 1000, available: 1000 }),
  });
  const signal = AbortSignal.timeout(60_000);
  await collector.collect(signal);
  const names = async () =>
    (await client.listImages({ filter: undefined })).images.flatMap(({ repoTags }) => repoTags);
  assert.ok((await names()).includes(image), 'with space left nothing is removed');
  assert.ok((await collector.freeAll(signal)) > 0);
  assert.deepEqual(await names(), [demoImages.pause]);
});
