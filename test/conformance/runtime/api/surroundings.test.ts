/** What containers are started with that is told by the API: variables, runtime classes, pull secrets. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Container } from '../../../../src/kubernetes/types.ts';
import { allowed, startClosedRegistry } from '../closed-registry.ts';
import { containerOf } from '../scenarios.ts';
import { ClusterScenarios } from './cluster-scenarios.ts';

const scenarios = new ClusterScenarios();

/** The variables the first process of a container was started with: a shell hands on only some names. */
async function variables(pod: string): Promise<Record<string, string>> {
  const text = await scenarios.run(pod, 'cat /proc/1/environ');
  return Object.fromEntries(
    text.split('\0').map((line) => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}

const withVariables = (name: string, more: Partial<Container>) =>
  scenarios.pod(name, { containers: [scenarios.idler('main', more)] });

describe('variables of objects', () => {
  const data = { 'data-1': 'value-1', data_2: 'value-2' };
  scenarios.configMap('some', data);
  scenarios.secret('some', data);
  const envOf = {
    configMap: withVariables('config-env', {
      env: [{ name: 'ONE', valueFrom: { configMapKeyRef: { name: 'some', key: 'data-1' } } }],
    }),
    secret: withVariables('secret-env', {
      env: [{ name: 'ONE', valueFrom: { secretKeyRef: { name: 'some', key: 'data-1' } } }],
    }),
  };
  const all = {
    configMap: withVariables('config-all', {
      envFrom: [{ configMapRef: { name: 'some' } }, { prefix: 'p_', configMapRef: { name: 'some' } }],
    }),
    secret: withVariables('secret-all', {
      envFrom: [{ secretRef: { name: 'some' } }, { prefix: 'p_', secretRef: { name: 'some' } }],
    }),
  };
  const prefixes = ['p-', '$_-', '1.', 'A b'];
  const prefixed = {
    configMap: withVariables('config-prefixes', {
      envFrom: prefixes.map((prefix) => ({ prefix, configMapRef: { name: 'some' } })),
    }),
    secret: withVariables('secret-prefixes', {
      envFrom: prefixes.map((prefix) => ({ prefix, secretRef: { name: 'some' } })),
    }),
  };

  for (const [kind, one, every, various] of [
    [
      'configMap',
      '[sig-node] ConfigMap should be consumable via environment variable [NodeConformance] [Conformance]',
      '[sig-node] ConfigMap should be consumable via the environment [NodeConformance] [Conformance]',
      '[sig-node] ConfigMap should be consumable as environment variable names with various prefixes [Conformance]',
    ],
    [
      'secret',
      '[sig-node] Secrets should be consumable from pods in env vars [NodeConformance] [Conformance]',
      '[sig-node] Secrets should be consumable via the environment [NodeConformance] [Conformance]',
      '[sig-node] Secrets should be consumable as environment variable names variable names with various prefixes [Conformance]',
    ],
  ] as const) {
    it(one, async () => {
      assert.equal((await variables(envOf[kind]))['ONE'], 'value-1');
    });
    it(every, async () => {
      const has = await variables(all[kind]);
      for (const [key, value] of Object.entries(data)) {
        assert.deepEqual([has[key], has[`p_${key}`]], [value, value]);
      }
    });
    it(various, async () => {
      const has = await variables(prefixed[kind]);
      for (const prefix of prefixes) assert.equal(has[`${prefix}data_2`], 'value-2', prefix);
    });
  }
});

describe('variables of services', () => {
  scenarios.object({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'fooservice' },
    spec: { clusterIP: '10.96.7.7', ports: [{ port: 8765, targetPort: 8080 }] },
  });
  const client = scenarios.pod('client');
  it('[sig-node] Pods should contain environment variables for services [NodeConformance] [Conformance]', async () => {
    const has = await variables(client);
    const told = Object.entries(has).filter(([name]) => name.startsWith('FOOSERVICE_'));
    assert.deepEqual(Object.fromEntries(told), {
      FOOSERVICE_SERVICE_HOST: '10.96.7.7',
      FOOSERVICE_SERVICE_PORT: '8765',
      FOOSERVICE_PORT: 'tcp://10.96.7.7:8765',
      FOOSERVICE_PORT_8765_TCP: 'tcp://10.96.7.7:8765',
      FOOSERVICE_PORT_8765_TCP_PROTO: 'tcp',
      FOOSERVICE_PORT_8765_TCP_PORT: '8765',
      FOOSERVICE_PORT_8765_TCP_ADDR: '10.96.7.7',
    });
    assert.equal(has['KUBERNETES_SERVICE_HOST'], '10.96.0.1');
  });
});

describe('runtime classes', () => {
  const runtimeClass = (name: string, more = {}) =>
    scenarios.object({
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name },
      handler: 'runc',
      ...more,
    });
  /** The handler the runtime was asked for; fails when there is no sandbox. */
  const handlerOf = async (pod: string) => {
    const { metadata } = await scenarios.agent.podReady(pod);
    const { items } = await scenarios.agent.runtime.listPodSandbox({ filter: undefined });
    const sandbox = items.find((item) => item.metadata?.uid === metadata.uid);
    assert.ok(sandbox);
    return sandbox.runtimeHandler;
  };

  const podFixed = { cpu: '50m', memory: '16Mi' };
  runtimeClass('plain');
  runtimeClass('with-overhead', { overhead: { podFixed } });
  const plain = scenarios.pod('plain-class', { runtimeClassName: 'plain' });
  it('[sig-node] RuntimeClass should schedule a Pod requesting a RuntimeClass without PodOverhead [NodeConformance] [Conformance]', async () => {
    assert.equal(await handlerOf(plain), 'runc');
    assert.equal(scenarios.agent.object(plain)?.spec.overhead, undefined);
  });

  // The API server's admission writes the class's overhead into the pod.
  const laden = scenarios.pod('laden-class', {
    runtimeClassName: 'with-overhead',
    overhead: podFixed,
    containers: [scenarios.idler('main', { resources: { limits: { cpu: '100m', memory: '32Mi' } } })],
  });
  it('[sig-node] RuntimeClass should schedule a Pod requesting a RuntimeClass and initialize its Overhead [NodeConformance] [Conformance]', async () => {
    assert.equal(await handlerOf(laden), 'runc');
    const { uid } = (await scenarios.agent.podReady(laden)).metadata;
    const isV2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
    const group = join('/sys/fs/cgroup', isV2 ? '' : 'memory', scenarios.agent.cgroupRoot, 'kubepods');
    const limit = join(group, `pod${uid}`, isV2 ? 'memory.max' : 'memory.limit_in_bytes');
    assert.equal(readFileSync(limit, 'utf8').trim(), String(48 * 2 ** 20));
  });

  const unknown = scenarios.pod('unknown-class', { runtimeClassName: 'never-there' });
  it('[sig-node] RuntimeClass should reject a Pod requesting a non-existent RuntimeClass [NodeConformance] [Conformance]', async () => {
    await scenarios.untilEvent(unknown, 'FailedCreatePodSandBox', /never-there/);
    const pod = scenarios.agent.object(unknown);
    assert.equal(pod?.status?.phase, 'Pending');
    assert.deepEqual(await scenarios.agent.instances(pod?.metadata.uid ?? ''), []);
  });

  runtimeClass('deleted');
  it('[sig-node] RuntimeClass should reject a Pod requesting a deleted RuntimeClass [NodeConformance] [Conformance]', async () => {
    const using = (name: string) =>
      scenarios.agent.create(scenarios.manifest(name, { runtimeClassName: 'deleted' }));
    using('before-deletion');
    await scenarios.agent.podReady('before-deletion');
    scenarios.server.admin.delete('runtimeclasses', 'deleted');
    using('after-deletion');
    await scenarios.untilEvent('after-deletion', 'FailedCreatePodSandBox', /deleted/);
    const pod = scenarios.agent.object('after-deletion');
    assert.deepEqual(await scenarios.agent.instances(pod?.metadata.uid ?? ''), []);
    // What runs already is left alone.
    assert.equal((await scenarios.agent.podReady('before-deletion')).status?.phase, 'Running');
  });
});

describe('a private registry', () => {
  it('[sig-node] Container Runtime blackbox test when running a container with a new image [Serial] should be able to pull from private registry with secret [NodeConformance]', async (context) => {
    const { agent, server } = scenarios;
    const registry = await startClosedRegistry(agent.path('registry'), ['closed/app']).catch((error: Error) =>
      context.skip(`no registry: ${error.message}`),
    );
    if (!registry) return;
    try {
      const auths = { [`127.0.0.1:${registry.port}`]: allowed };
      server.admin.create({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'pull' },
        type: 'kubernetes.io/dockerconfigjson',
        stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
      });
      const image = `127.0.0.1:${registry.port}/closed/app:1`;
      const containers = [scenarios.idler('main', { image, imagePullPolicy: 'Always' })];
      agent.create(scenarios.manifest('with-secret', { containers, imagePullSecrets: [{ name: 'pull' }] }));
      const pod = await agent.podReady('with-secret');
      assert.match(containerOf(pod, 'main')?.imageID ?? '', /sha256:/);
      await scenarios.untilEvent('with-secret', 'Pulled', /Successfully pulled image/);
    } finally {
      await registry.stop();
    }
  });
});
