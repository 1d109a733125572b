import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { buildEnvironment, EnvironmentError } from '../kubernetes/environment.ts';
import { podAnnotations } from '../kubernetes/pod-identity.ts';
import type { Container, Pod, PodSpec } from '../kubernetes/types.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { ApiObjects } from './api-objects.ts';
import { environmentObjects } from './environment-objects.ts';
import { FakeApi, unreachable } from './fixtures/fake-api.ts';
import type { Service } from './object-types.ts';
import { missingPullSecretsMessage, pullSecrets } from './pull-secrets.ts';
import { RuntimeClassNotFoundError } from './runtime-classes.ts';
import { serviceVariables } from './service-variables.ts';

const { signal } = new AbortController();
let api: FakeApi;
let clock: VirtualClock;
let objects: ApiObjects;
let changed: string[];

beforeEach(() => {
  api = new FakeApi();
  clock = new VirtualClock();
  changed = [];
  objects = new ApiObjects({
    client: api.client,
    createReflector: api.createReflector,
    strategy: 'Watch',
    onChange: (uids) => changed.push(...uids),
    random: () => 0,
    clock,
    logger: silentLogger,
  });
});

function pod(spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'u1', ...metadata },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'Default',
      containers: [],
      ...spec,
    },
  };
}

const service = (namespace: string, name: string, spec: Service['spec']): Service => ({
  metadata: { namespace, name },
  spec,
});
const master = service('default', 'kubernetes', {
  clusterIP: '10.0.0.1',
  ports: [{ name: 'https', port: 443, protocol: 'TCP' }],
});

describe('service variables', () => {
  const inShop = { namespace: 'shop', enableServiceLinks: true };

  it('tell of every port of a service', () => {
    const services = [
      service('shop', 'web-front', {
        clusterIP: '10.0.0.5',
        ports: [
          { name: 'http-alt', port: 8080 },
          { name: 'dns', port: 53, protocol: 'UDP' },
        ],
      }),
    ];
    assert.deepEqual(Object.fromEntries(serviceVariables(services, inShop)), {
      WEB_FRONT_SERVICE_HOST: '10.0.0.5',
      WEB_FRONT_SERVICE_PORT: '8080',
      WEB_FRONT_SERVICE_PORT_HTTP_ALT: '8080',
      WEB_FRONT_SERVICE_PORT_DNS: '53',
      WEB_FRONT_PORT: 'tcp://10.0.0.5:8080',
      WEB_FRONT_PORT_8080_TCP: 'tcp://10.0.0.5:8080',
      WEB_FRONT_PORT_8080_TCP_PROTO: 'tcp',
      WEB_FRONT_PORT_8080_TCP_PORT: '8080',
      WEB_FRONT_PORT_8080_TCP_ADDR: '10.0.0.5',
      WEB_FRONT_PORT_53_UDP: 'udp://10.0.0.5:53',
      WEB_FRONT_PORT_53_UDP_PROTO: 'udp',
      WEB_FRONT_PORT_53_UDP_PORT: '53',
      WEB_FRONT_PORT_53_UDP_ADDR: '10.0.0.5',
    });
  });

  it('put IPv6 addresses in brackets where a port follows', () => {
    const six = service('shop', 'six', { clusterIP: 'fd00::1', ports: [{ port: 80 }] });
    const variables = serviceVariables([six], inShop);
    assert.equal(variables.get('SIX_PORT'), 'tcp://[fd00::1]:80');
    assert.equal(variables.get('SIX_SERVICE_HOST'), 'fd00::1');
  });

  it('tell of the own namespace only with links, of the API server always, of headless ones never', () => {
    const ports = [{ port: 80 }];
    const services = [
      master,
      service('shop', 'own', { clusterIP: '10.0.0.2', ports }),
      service('other', 'far', { clusterIP: '10.0.0.3', ports }),
      service('default', 'near', { clusterIP: '10.0.0.4', ports }),
      service('shop', 'headless', { clusterIP: 'None', ports }),
      service('shop', 'external', { externalName: 'example.com' }),
    ];
    const hosts = (enableServiceLinks: boolean) =>
      [...serviceVariables(services, { namespace: 'shop', enableServiceLinks })]
        .filter(([name]) => name.endsWith('_SERVICE_HOST'))
        .map(([, host]) => host);
    assert.deepEqual(hosts(true), ['10.0.0.1', '10.0.0.2']);
    assert.deepEqual(hosts(false), ['10.0.0.1']);
    const own = service('shop', 'kubernetes', { clusterIP: '10.0.0.9', ports });
    assert.equal(serviceVariables([own, master], inShop).get('KUBERNETES_SERVICE_HOST'), '10.0.0.9');
  });

  it('are waited for until the services are known; a static pod goes without', async () => {
    api.watchesHang = true;
    const waiting = assert.rejects(
      objects.services.variables(pod(), signal),
      /services have not been synced yet/,
    );
    const manifest = pod({}, { annotations: { [podAnnotations.configSource]: 'file' } });
    assert.equal((await objects.services.variables(manifest, signal)).size, 0);
    await clock.advance(10_000);
    await waiting;
    api.watchesHang = false;
    api.set('/api/v1/services', { ...master });
    assert.equal(
      (await objects.services.variables(pod(), signal)).get('KUBERNETES_PORT'),
      'tcp://10.0.0.1:443',
    );
    assert.deepEqual(api.requests, ['WATCH /api/v1/services']);
    objects.close();
    assert.equal(api.watches.size, 0);
  });
});

describe('runtime classes', () => {
  const path = '/apis/node.k8s.io/v1/runtimeclasses';

  it('give handler and overhead, and are followed only when a pod names one', async () => {
    assert.equal(await objects.runtimeClasses.handler(pod(), signal), '');
    assert.deepEqual(api.requests, []);
    const overhead = { podFixed: { memory: '64Mi' } };
    api.set(path, { metadata: { name: 'gvisor' }, handler: 'runsc', overhead });
    const sandboxed = pod({ runtimeClassName: 'gvisor' });
    assert.equal(await objects.runtimeClasses.handler(sandboxed, signal), 'runsc');
    assert.deepEqual(await objects.runtimeClasses.overhead(sandboxed, signal), { memory: '64Mi' });
    assert.deepEqual(api.requests, [`WATCH ${path}`]);
  });

  it('that do not exist are named', async () => {
    await assert.rejects(objects.runtimeClasses.handler(pod({ runtimeClassName: 'x' }), signal), (error) => {
      assert.ok(error instanceof RuntimeClassNotFoundError);
      assert.equal(error.message, 'RuntimeClass "x" not found');
      return true;
    });
  });

  it('that appear later are told to the pods that were refused, once', async () => {
    const early = pod({ runtimeClassName: 'x' });
    const gone = pod({ runtimeClassName: 'x' }, { uid: 'u2' });
    for (const refused of [early, gone]) {
      await assert.rejects(objects.runtimeClasses.handler(refused, signal), RuntimeClassNotFoundError);
    }
    objects.unregister('u2');
    api.set(path, { metadata: { name: 'other' }, handler: 'other' });
    assert.deepEqual(changed, []);
    api.set(path, { metadata: { name: 'x' }, handler: 'runsc' });
    assert.deepEqual(changed, ['u1']);
    assert.equal(await objects.runtimeClasses.handler(early, signal), 'runsc');
    api.set(path, { metadata: { name: 'x' }, handler: 'other' });
    assert.deepEqual(changed, ['u1']);
  });
});

describe('pull secrets', () => {
  it('come in the order of the pod, without those that are missing', async () => {
    for (const name of ['b', 'a']) {
      const type = 'kubernetes.io/dockerconfigjson';
      api.set('/api/v1/namespaces/shop/secrets', { metadata: { namespace: 'shop', name }, type, data: {} });
    }
    const web = pod({ imagePullSecrets: [{ name: 'b' }, { name: 'none' }, {}, { name: 'a' }] });
    objects.register(web);
    const from = { objects: objects.referenced, logger: silentLogger };
    const { secrets, missing } = await pullSecrets(web, from, signal);
    assert.deepEqual(
      secrets.map(({ metadata }) => metadata),
      [
        { namespace: 'shop', name: 'b', uid: 'uid-of-b' },
        { namespace: 'shop', name: 'a', uid: 'uid-of-a' },
      ],
    );
    assert.deepEqual(missing, ['none']);
    assert.equal(
      missingPullSecretsMessage(missing),
      'Unable to retrieve some image pull secrets (none); attempting to pull the image may not succeed.',
    );
    objects.unregister('u1');
    api.answer = unreachable;
    await clock.advance(60_000);
    assert.deepEqual((await pullSecrets(web, from, signal)).missing, ['b', 'none', 'a']);
  });
});

describe('the environment of a container', () => {
  const container: Container = {
    name: 'main',
    envFrom: [
      { configMapRef: { name: 'app' }, prefix: 'P_' },
      { secretRef: { name: 'none', optional: true } },
    ],
    env: [
      { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'db', key: 'pw' } } },
      { name: 'FILE', valueFrom: { fileKeyRef: { volumeName: 'data', path: 'app.env', key: 'X' } } },
    ],
  };
  const web = pod({ containers: [container] });
  const build = async () => {
    const sources = await environmentObjects(
      {
        pod: web,
        container,
        objects: objects.referenced,
        readFile: (volume, path) =>
          Promise.resolve(volume === 'data' && path === 'app.env' ? "X='y'" : undefined),
      },
      signal,
    );
    const facts = { nodeName: 'n', hostIps: [], podIps: [], nodeAllocatable: new Map() };
    return Object.fromEntries(buildEnvironment({ pod: web, container, facts, sources }));
  };
  const setSecret = () =>
    api.set('/api/v1/namespaces/shop/secrets', {
      metadata: { namespace: 'shop', name: 'db' },
      data: { pw: Buffer.from('s3cret').toString('base64') },
    });
  const setConfig = () =>
    api.set('/api/v1/namespaces/shop/configmaps', {
      metadata: { namespace: 'shop', name: 'app' },
      data: { a: '1' },
      binaryData: { b: 'AA==' },
    });

  it('comes from config maps, secrets and files, without another question for a restart', async () => {
    setConfig();
    setSecret();
    objects.register(web);
    assert.deepEqual(await build(), { P_a: '1', PASSWORD: 's3cret', FILE: 'y' });
    const asked = api.requests.length;
    await build();
    assert.equal(api.requests.length, asked);
  });

  it('tells what is missing, and waits until it is there', async () => {
    setConfig();
    objects.register(web);
    await assert.rejects(build(), /^EnvironmentError: secret "db" not found$/);
    setSecret();
    assert.deepEqual(changed, ['u1']);
    await build();
  });

  it('is not guessed while the API server does not answer', async () => {
    api.watchesHang = true;
    api.answer = unreachable;
    objects.register(web);
    const built = assert.rejects(build(), (error) => {
      assert.ok(error instanceof EnvironmentError);
      assert.match(
        error.message,
        /^cannot get (configmap|secret) "shop\/\w+": the API server did not answer/,
      );
      return true;
    });
    await clock.advance(1000);
    await built;
  });
});

describe('the content of volumes', () => {
  it('is decoded once for each version of an object', async () => {
    const path = '/api/v1/namespaces/shop/configmaps';
    const metadata = { namespace: 'shop', name: 'app' };
    api.set(path, { metadata, data: { a: 'é' }, binaryData: { b: '/w==' } });
    objects.register(pod({ volumes: [{ name: 'v', configMap: { name: 'app' } }] }));
    const first = await objects.configMap('shop', 'app', signal);
    assert.deepEqual(
      [...(first ?? [])].map(([key, bytes]) => [key, ...bytes]),
      [
        ['a', 0xc3, 0xa9],
        ['b', 0xff],
      ],
    );
    assert.equal(await objects.configMap('shop', 'app', signal), first);
    api.set(path, { metadata, data: { a: '2' } });
    assert.notEqual(await objects.configMap('shop', 'app', signal), first);
    assert.equal(await objects.secret('shop', 'none', signal), undefined);
  });

  it('has tokens that are renewed until the pod is gone', async () => {
    api.answer = () => Promise.resolve({ status: { token: 't' } });
    assert.equal(await objects.serviceAccountToken({ pod: pod() }, signal), 't');
    assert.deepEqual(api.requests, ['POST /api/v1/namespaces/shop/serviceaccounts/default/token']);
    await clock.advance(48 * 60_000);
    assert.deepEqual(changed, ['u1']);
    objects.unregister('u1');
    assert.equal(clock.nextTimer(), undefined);
  });
});
