import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import type { Pod, PodSpec } from '../kubernetes/types.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { FakeApi, unreachable } from './fixtures/fake-api.ts';
import { ObjectUnavailableError } from './object-types.ts';
import { type ChangeDetection, type ObjectMemory, ReferencedObjects } from './referenced-objects.ts';
import { containerReferences, podReferences } from './references.ts';

const configMaps = '/api/v1/namespaces/shop/configmaps';
const secrets = '/api/v1/namespaces/shop/secrets';

let api: FakeApi;
let clock: VirtualClock;
let changes: string[];

beforeEach(() => {
  api = new FakeApi();
  clock = new VirtualClock();
  changes = [];
});

function referenced(
  strategy: ChangeDetection,
  more: { cacheTtlMs?: () => number; memory?: ObjectMemory } = {},
): ReferencedObjects {
  return new ReferencedObjects({
    client: api.client,
    createReflector: api.createReflector,
    strategy,
    onChange: (uids, { kind, name }) => changes.push(`${kind} ${name}: ${uids.join()}`),
    clock,
    logger: silentLogger,
    ...more,
  });
}

function pod(uid: string, spec: Partial<PodSpec> = {}): Pod {
  return {
    metadata: { name: 'web', namespace: 'shop', uid },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      containers: [],
      ...spec,
    },
  };
}
const withConfig = (uid: string, name = 'app') =>
  pod(uid, { volumes: [{ name: 'cfg', configMap: { name } }] });
const configMap = (value: string, more: object = {}) => ({
  metadata: { namespace: 'shop', name: 'app' },
  data: { a: value },
  ...more,
});
const valueOf = async (objects: ReferencedObjects) =>
  (await objects.get('configMap', 'shop', 'app'))?.data?.a;

describe('what a pod refers to', () => {
  it('is found in containers of all kinds, volumes and pull secrets, each once', () => {
    const spec: Partial<PodSpec> = {
      initContainers: [{ name: 'i', envFrom: [{ configMapRef: { name: 'init' } }] }],
      containers: [
        {
          name: 'c',
          env: [
            { name: 'A', valueFrom: { configMapKeyRef: { name: 'env', key: 'k' } } },
            { name: 'B', valueFrom: { secretKeyRef: { name: 'env', key: 'k' } } },
            { name: 'C', valueFrom: { secretKeyRef: { name: 'env', key: 'l', optional: true } } },
            { name: 'D', value: 'plain' },
          ],
        },
      ],
      ephemeralContainers: [{ name: 'e', envFrom: [{ secretRef: { name: 'debug' } }, { secretRef: {} }] }],
      volumes: [
        { name: 'a', configMap: { name: 'vol' } },
        { name: 'b', secret: { secretName: 'vol' } },
        {
          name: 'c',
          projected: { sources: [{ configMap: { name: 'ca' } }, { secret: { name: 'proj' } }, {}] },
        },
        { name: 'd', csi: { driver: 'x', nodePublishSecretRef: { name: 'csi' } } },
      ],
      imagePullSecrets: [{ name: 'registry' }, {}],
    };
    const found = podReferences(pod('u', spec)).map(({ kind, name }) => `${kind} ${name}`);
    assert.deepEqual(found.sort(), [
      'configMap ca',
      'configMap env',
      'configMap init',
      'configMap vol',
      'secret csi',
      'secret debug',
      'secret env',
      'secret proj',
      'secret registry',
      'secret vol',
    ]);
    assert.deepEqual(containerReferences('shop', spec.containers![0]!), [
      { kind: 'configMap', namespace: 'shop', name: 'env' },
      { kind: 'secret', namespace: 'shop', name: 'env' },
    ]);
  });
});

describe('watched objects', () => {
  it('are watched once for all pods, and answered from memory', async () => {
    api.set(configMaps, configMap('1'));
    const objects = referenced('Watch');
    for (let n = 0; n < 300; n++) objects.register(withConfig(`u${n}`));
    const values = await Promise.all(Array.from({ length: 300 }, () => valueOf(objects)));
    assert.deepEqual(new Set(values), new Set(['1']));
    assert.deepEqual(api.requests, [`WATCH ${configMaps}?app`]);
    assert.deepEqual(changes, []);
  });

  it('that change are told to every pod that refers to them, in the turn of the event', async () => {
    api.set(configMaps, configMap('1'));
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    objects.register(withConfig('u2'));
    objects.register(withConfig('u3', 'other'));
    await valueOf(objects);
    api.set(configMaps, configMap('2'));
    assert.deepEqual(changes, ['configMap app: u1,u2']);
    assert.equal(await valueOf(objects), '2');
    api.delete(configMaps, 'shop/app');
    assert.equal(changes.length, 2);
    assert.equal(await valueOf(objects), undefined);
  });

  it('that do not exist are known not to, and told when they appear', async () => {
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    assert.equal(await valueOf(objects), undefined);
    assert.deepEqual(api.requests, [`WATCH ${configMaps}?app`]);
    api.set(configMaps, configMap('1'));
    assert.deepEqual(changes, ['configMap app: u1']);
  });

  it('are let go of a while after the last pod, and taken up again before that', async () => {
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    objects.register(withConfig('u2'));
    objects.unregister('u1');
    await clock.advance(60_000);
    assert.equal(api.watches.size, 1);
    objects.unregister('u2');
    await clock.advance(29_000);
    objects.register(withConfig('u3'));
    await clock.advance(60_000);
    assert.equal(api.watches.size, 1);
    objects.unregister('u3');
    await clock.advance(30_000);
    assert.equal(api.watches.size, 0);
    assert.equal(clock.nextTimer(), undefined);
    api.set(configMaps, configMap('1'));
    assert.deepEqual(changes, []);
  });

  it('are let go of at once when the server refuses them after the last pod', async () => {
    api.set(configMaps, configMap('1'));
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    assert.equal(await valueOf(objects), '1');
    api.refuseWatches();
    assert.equal(api.watches.size, 1, 'a pod refers to it, so it is tried again');
    objects.unregister('u1');
    api.refuseWatches();
    assert.equal(api.watches.size, 0);
    assert.equal(clock.nextTimer(), undefined);
    api.set(configMaps, configMap('2'));
    objects.register(withConfig('u2'));
    assert.equal(await valueOf(objects), '2');
    objects.close();
  });

  it('follow the changed spec of a pod', async () => {
    const objects = referenced('Watch');
    objects.register(withConfig('u1', 'app'));
    objects.register(withConfig('u1', 'other'));
    await clock.advance(30_000);
    assert.deepEqual([...api.watches], [`WATCH ${configMaps}?other`]);
    objects.close();
    assert.equal(api.watches.size, 0);
  });

  it('that are immutable are not watched once they have been seen', async () => {
    api.set(configMaps, configMap('1', { immutable: true }));
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    assert.equal(await valueOf(objects), '1');
    assert.equal(api.watches.size, 0);
    objects.register(withConfig('u2'));
    assert.equal(await valueOf(objects), '1');
    assert.equal(api.requests.length, 1);
  });

  it('are asked for directly when the watch does not come up, and told when it does', async () => {
    api.watchesHang = true;
    api.set(configMaps, configMap('1'));
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    const asked = valueOf(objects);
    await clock.advance(999);
    assert.deepEqual(api.requests, [`WATCH ${configMaps}?app`]);
    await clock.advance(1);
    assert.equal(await asked, '1');
    assert.deepEqual(api.requests.slice(1), [`GET ${configMaps}/app`]);
    api.watchesHang = false;
    api.look();
    assert.deepEqual(changes, ['configMap app: u1']);
  });

  it('of a server that does not answer are not taken for missing', async () => {
    api.watchesHang = true;
    api.answer = unreachable;
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    const asked = assert.rejects(valueOf(objects), (error) => {
      assert.ok(error instanceof ObjectUnavailableError);
      assert.equal(
        error.message,
        'cannot get configmap "shop/app": the API server did not answer (connect ECONNREFUSED 192.0.2.1:6443)',
      );
      return true;
    });
    await clock.advance(1000);
    await asked;
  });

  it('serve while the server is away', async () => {
    api.set(configMaps, configMap('1'));
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    await valueOf(objects);
    api.watchesHang = true;
    api.answer = unreachable;
    assert.equal(await valueOf(objects), '1');
  });

  it('are waited for until the caller gives up', async () => {
    api.watchesHang = true;
    const objects = referenced('Watch');
    objects.register(withConfig('u1'));
    const reason = new Error('the pod is to end');
    const abort = new AbortController();
    const asked = objects.get('configMap', 'shop', 'app', abort.signal);
    abort.abort(reason);
    await assert.rejects(asked, reason);
  });
});

describe('an object nobody has registered', () => {
  it('is asked for directly', async () => {
    api.set(secrets, { metadata: { namespace: 'shop', name: 's' }, data: { k: 'dg==' } });
    const objects = referenced('Watch');
    assert.equal((await objects.get('secret', 'shop', 's'))?.data?.k, 'dg==');
    assert.equal(await objects.get('secret', 'shop', 'none'), undefined);
    assert.deepEqual(api.requests, [`GET ${secrets}/s`, `GET ${secrets}/none`]);
  });
});

describe('objects with a memory', () => {
  function memory() {
    const kept = new Map<string, unknown>();
    const memory: ObjectMemory = {
      remember: ({ name }, object) => void kept.set(name, object),
      recall: ({ name }) => kept.get(name),
      forget: ({ name }) => void kept.delete(name),
    };
    return { kept, memory };
  }

  it('are there while the API server is away, also for the next agent, and fresh once it answers', async () => {
    const { kept, memory: own } = memory();
    api.set(configMaps, configMap('1'));
    const objects = referenced('Watch', { memory: own });
    objects.register(withConfig('u1'));
    assert.equal(await valueOf(objects), '1');
    objects.close();

    api = new FakeApi();
    api.watchesHang = true;
    api.answer = unreachable;
    const next = referenced('Watch', { memory: own });
    next.register(withConfig('u1'));
    const told = valueOf(next);
    await clock.advance(1000);
    assert.equal(await told, '1');
    api.watchesHang = false;
    api.set(configMaps, configMap('2'));
    assert.deepEqual(changes, ['configMap app: u1']);
    assert.equal(await valueOf(next), '2');
    assert.match(JSON.stringify(kept.get('app')), /"a":"2"/);
  });

  it('are forgotten when they are gone, and when nobody refers to them any more', async () => {
    const { kept, memory: own } = memory();
    api.set(configMaps, configMap('1'));
    const objects = referenced('Watch', { memory: own });
    objects.register(withConfig('u1'));
    await valueOf(objects);
    api.delete(configMaps, 'shop/app');
    assert.equal(await valueOf(objects), undefined);
    assert.equal(kept.size, 0);
    api.set(configMaps, configMap('2'));
    await valueOf(objects);
    assert.equal(kept.size, 1);
    objects.unregister('u1');
    await clock.advance(30_000);
    assert.equal(kept.size, 0);
  });
});

describe('cached objects', () => {
  it('serve for their time, are read afresh for a new pod, and looked at once in a while', async () => {
    api.set(configMaps, configMap('1'));
    const objects = referenced('Cache');
    objects.register(withConfig('u1'));
    assert.deepEqual(await Promise.all([valueOf(objects), valueOf(objects)]), ['1', '1']);
    api.set(configMaps, configMap('2'));
    assert.equal(await valueOf(objects), '1');
    assert.deepEqual(api.requests, [`GET ${configMaps}/app`]);
    objects.register(withConfig('u2'));
    assert.equal(await valueOf(objects), '2');
    assert.deepEqual(changes, ['configMap app: u1,u2']);
    api.set(configMaps, configMap('3'));
    await clock.advance(60_000);
    assert.equal(changes.length, 2);
    assert.equal(await valueOf(objects), '3');
    assert.equal(api.requests.length, 3);
    objects.unregister('u1');
    objects.unregister('u2');
    await clock.advance(10 * 60_000);
    assert.equal(clock.nextTimer(), undefined);
  });

  it('serve on while the server is away; what was never read cannot', async () => {
    api.set(configMaps, configMap('1'));
    const objects = referenced('Cache', { cacheTtlMs: () => 1000 });
    objects.register(withConfig('u1'));
    await valueOf(objects);
    api.answer = unreachable;
    await clock.advance(5000);
    assert.equal(await valueOf(objects), '1');
    objects.register(withConfig('u2', 'other'));
    await assert.rejects(objects.get('configMap', 'shop', 'other'), ObjectUnavailableError);
    api.answer = undefined;
    await clock.advance(60_000);
    assert.deepEqual(changes, ['configMap other: u2']);
  });

  it('that are immutable are read once', async () => {
    api.set(configMaps, configMap('1', { immutable: true }));
    const objects = referenced('Cache');
    objects.register(withConfig('u1'));
    await valueOf(objects);
    await clock.advance(10 * 60_000);
    objects.register(withConfig('u2'));
    await valueOf(objects);
    assert.equal(api.requests.length, 1);
  });
});

describe('objects that are got', () => {
  it('are read each time, together for those who ask together', async () => {
    api.set(configMaps, configMap('1'));
    const objects = referenced('Get');
    objects.register(withConfig('u1'));
    await Promise.all([valueOf(objects), valueOf(objects)]);
    assert.equal(api.requests.length, 1);
    api.set(configMaps, configMap('2'));
    assert.equal(await valueOf(objects), '2');
    assert.equal(api.requests.length, 2);
    await settle();
    assert.deepEqual(changes, ['configMap app: u1']);
  });
});
