/** What is called before a container stops and after it has started: commands, HTTP, HTTPS, sleep. */
import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { after, before, describe, it } from 'node:test';
import type { Container, Lifecycle, LifecycleHandler } from '../../../src/kubernetes/types.ts';
import { weakCertificate } from '../../../src/probes/fixtures/weak-certificate.ts';
import { recorded, recording, sidecar } from './recorder.ts';
import { containerOf, Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;

/** Hooks are called by the node, so a server on its loopback hears them. */
const httpPort = 30_000 + (process.pid % 10_000);
const httpsPort = httpPort + 10_000;
const heard: string[] = [];
const answer: Parameters<typeof createHttpServer>[1] = ({ url }, response) => {
  heard.push(url ?? '');
  response.end('heard');
};
const servers = [
  createHttpServer({}, answer),
  createHttpsServer({ ...weakCertificate, ciphers: 'DEFAULT:@SECLEVEL=0' }, answer),
];
before(() => {
  servers[0]?.listen(httpPort, '127.0.0.1');
  servers[1]?.listen(httpsPort, '127.0.0.1');
});
after(() => {
  for (const server of servers) server.close();
});

const handlers: Record<'exec' | 'http' | 'https', (name: string) => LifecycleHandler> = {
  exec: () => recording('hooked', 'say hook'),
  http: (name) => ({ httpGet: { host: '127.0.0.1', port: httpPort, path: `/${name}` } }),
  https: (name) => ({
    httpGet: { host: '127.0.0.1', port: httpsPort, scheme: 'HTTPS', path: `/${name}` },
  }),
};

describe('hooks', () => {
  for (const [place, moment, handler, title] of [
    [
      'main',
      'postStart',
      'exec',
      '[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart exec hook properly [NodeConformance] [Conformance]',
    ],
    [
      'main',
      'postStart',
      'http',
      '[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart http hook properly [NodeConformance] [Conformance]',
    ],
    [
      'main',
      'postStart',
      'https',
      '[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart https hook properly [NodeConformance]',
    ],
    [
      'main',
      'preStop',
      'exec',
      '[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop exec hook properly [NodeConformance] [Conformance]',
    ],
    [
      'main',
      'preStop',
      'http',
      '[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop http hook properly [NodeConformance] [Conformance]',
    ],
    [
      'main',
      'preStop',
      'https',
      '[sig-node] Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop https hook properly [NodeConformance]',
    ],
    [
      'sidecar',
      'postStart',
      'exec',
      '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Restartable Init Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart exec hook properly',
    ],
    [
      'sidecar',
      'postStart',
      'http',
      '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Restartable Init Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart http hook properly',
    ],
    [
      'sidecar',
      'postStart',
      'https',
      '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Restartable Init Container Lifecycle Hook when create a pod with lifecycle hook should execute poststart https hook properly',
    ],
    [
      'sidecar',
      'preStop',
      'exec',
      '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Restartable Init Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop exec hook properly',
    ],
    [
      'sidecar',
      'preStop',
      'http',
      '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Restartable Init Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop http hook properly',
    ],
    [
      'sidecar',
      'preStop',
      'https',
      '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Restartable Init Container Lifecycle Hook when create a pod with lifecycle hook should execute prestop https hook properly',
    ],
  ] as const) {
    const name = `${place}-${moment}-${handler}`.toLowerCase();
    const lifecycle: Lifecycle = { [moment]: handlers[handler](name) };
    scenarios.recorded(
      name,
      place === 'main'
        ? { containers: [recorded('hooked', {}, { lifecycle })] }
        : { initContainers: [sidecar('hooked', {}, { lifecycle })], containers: [recorded('main')] },
    );
    it(title, async () => {
      const wasCalled = () =>
        handler === 'exec' ? scenarios.timeline(name).has('hooked hook') : heard.includes(`/${name}`);
      await agent.ready(name);
      if (moment === 'preStop') {
        assert.equal(wasCalled(), false);
        agent.remove(name);
        await agent.gone(name);
        if (handler === 'exec') scenarios.timeline(name).inOrder('hooked hook', 'hooked stopping');
      }
      assert.ok(wasCalled());
      assert.ok(!agent.log.includes(`default/${name}-node" fieldPath="" kind="Pod" type="Warning"`));
    });
  }

  scenarios.recorded('killed', {
    containers: [recorded('hooked', {}, { lifecycle: { preStop: handlers.http('killed') } })],
  });
  it('[sig-node] PreStop should call prestop when killing a pod [Conformance]', async () => {
    await agent.ready('killed');
    agent.remove('killed');
    await agent.gone('killed');
    assert.equal(heard.filter((path) => path === '/killed').length, 1);
  });
});

describe('a hook that sleeps', () => {
  const sleeping = (seconds: number, more: Partial<Container> = {}) => ({
    containers: [recorded('main', {}, { lifecycle: { preStop: { sleep: { seconds } } }, ...more })],
  });
  /** Seconds from the removal of the manifest until the container heard of it. */
  const hearsAfter = async (name: string): Promise<number> => {
    await agent.ready(name);
    await agent.eventually(`${name} runs`, async () => scenarios.timeline(name).has('main started'));
    const begun = Date.now();
    agent.remove(name);
    const timeline = await scenarios.untilRecorded(name, 'stopping', (seen) => seen.has('main stopping'));
    assert.ok(timeline.has('main stopping'));
    return (Date.now() - begun) / 1000;
  };

  scenarios.recorded('sleeps', sleeping(4));
  it('[sig-node] Lifecycle Sleep Hook [NodeConformance] when create a pod with lifecycle hook using sleep action valid prestop hook using sleep action', async () => {
    const seconds = await hearsAfter('sleeps');
    assert.ok(seconds >= 3.9 && seconds < 60, `after ${seconds} s`);
    await agent.gone('sleeps');
  });

  scenarios.recorded('sleeps-not', sleeping(0));
  it('[sig-node] Lifecycle sleep action zero value [NodeConformance] when create a pod with lifecycle hook using sleep action with a duration of zero seconds prestop hook using sleep action with zero duration', async () => {
    const seconds = await hearsAfter('sleeps-not');
    assert.ok(seconds < 60, `after ${seconds} s`);
    await agent.gone('sleeps-not');
    scenarios.neverLogged('sleeps-not', /FailedPreStopHook/);
  });

  scenarios.recorded('ends-first', {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 600,
    containers: [
      recorded('main', { runsFor: 4 }, { lifecycle: { preStop: { sleep: { seconds: 300 } } } }),
      recorded('other', {}, {}),
    ],
  });
  it('[sig-node] Lifecycle Sleep Hook [NodeConformance] when create a pod with lifecycle hook using sleep action ignore terminated container', async () => {
    const pod = await agent.until('ends-first', 'half over', (seen) =>
      Boolean(containerOf(seen, 'main')?.state?.terminated),
    );
    assert.equal(containerOf(pod, 'main')?.state?.terminated?.exitCode, 0);
    agent.remove('ends-first');
    // Were its hook run, it would take five minutes.
    await agent.gone('ends-first');
  });
});
