/** What probes do to containers, regular ones and sidecars: the same pods and expectations for both. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Container, Pod, Probe } from '../../../src/kubernetes/types.ts';
import { ContainerState } from '../../../src/runtime/generated/cri.ts';
import { idle, isReady, shellPod } from '../../e2e/agent.ts';
import { GrpcHealth } from './grpc-health.ts';
import { conditionOf, containerOf, Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;
const grpc = new GrpcHealth();
before(() => grpc.start());
after(() => grpc.stop());

type Kind = 'regular' | 'sidecar';
const name = 'probed';

/** A probe once a second; a busy machine is no failure. */
const often = (probe: Partial<Probe>): Probe => ({ periodSeconds: 1, timeoutSeconds: 20, ...probe });
const exec = (script: string): Partial<Probe> => ({ exec: { command: ['sh', '-c', script] } });
const http = (path: string): Partial<Probe> => ({ httpGet: { path, port: 8080 } });
const oneFailure = { failureThreshold: 1 };

/** Serves files below /www, after `prepare`. */
const serveFiles = (prepare: string) =>
  `mkdir -p /www; ${prepare}; trap exit TERM; httpd -f -p 8080 -h /www & while :; do sleep 1 & wait $!; done`;
/** Answers every request with a redirect. */
const serveRedirect = (location: string) =>
  `printf 'while read -r line && [ "$line" != "\\r" ]; do :; done; printf "HTTP/1.1 302 Found\\\\r\\\\nLocation: ${location}\\\\r\\\\nContent-Length: 0\\\\r\\\\n\\\\r\\\\n"' >/tmp/answer
  trap exit TERM; nc -ll -p 8080 -e sh /tmp/answer & while :; do sleep 1 & wait $!; done`;

function probedPod(
  kind: Kind,
  pod: string,
  script: string,
  probes: Partial<Container>,
  spec: Partial<Pod['spec']> = {},
) {
  const probed: Container = { name, image: agent.image, command: ['sh', '-c', script], ...probes };
  const other: Container = { name: 'main', image: agent.image, command: ['sh', '-c', idle] };
  const podName = `${pod}-${kind}`;
  const containers =
    kind === 'regular'
      ? { containers: [probed] }
      : { initContainers: [{ ...probed, restartPolicy: 'Always' }], containers: [other] };
  return scenarios.pod(podName, shellPod(podName, '', { ...containers, ...spec }));
}

const restarts = (pod: Pod) => containerOf(pod, name)?.restartCount ?? 0;
const restarted = (pod: string, count = 1) =>
  agent.until(pod, `restarted ${count} times`, (seen) => restarts(seen) >= count);

/** How many probes of the pod's container under test have ended so, as the agent counts them. */
async function probesOf(pod: string, type: ProbeType, result: 'successful' | 'failed'): Promise<number> {
  const text = await (await agent.get('/metrics/probes')).text();
  const wanted = [`pod="${pod}-node"`, `container="${name}"`, `probe_type="${type}"`, `result="${result}"`];
  const line = text
    .split('\n')
    .find((one) => one.startsWith('prober_probe_total{') && wanted.every((label) => one.includes(label)));
  return Number(line?.split(' ').at(-1) ?? 0);
}
type ProbeType = 'Liveness' | 'Readiness' | 'Startup';

/** Waits until so many probes have ended so; fails when the first instance does not live to see that. */
async function livesOn(
  pod: string,
  { type, result, times = 4 }: { type: ProbeType; result: 'successful' | 'failed'; times?: number },
): Promise<Pod> {
  let probes = 0;
  await agent.eventually(
    `${pod} probed ${times} times`,
    async () => {
      const seen = await agent.pod(pod);
      if (seen && restarts(seen) > 0) return true;
      probes = await probesOf(pod, type, result);
      return probes >= times;
    },
    () => `${probes} of ${type}`,
  );
  const seen = await agent.pod(pod);
  assert.ok(seen);
  assert.equal(restarts(seen), 0);
  return seen;
}

/** What the agent's log has of the events of a pod. */
const eventsOf = (pod: string, reason: string) =>
  agent.log
    .split('\n')
    .filter((line) => line.includes(`object="default/${pod}-node"`) && line.includes(`reason="${reason}"`));

const both = (regular: string, ofSidecar: string) =>
  [
    ['regular', regular],
    ['sidecar', ofSidecar],
  ] as const;

describe('a liveness probe that fails', () => {
  for (const [kind, title] of both(
    '[sig-node] Probing container should be restarted with a exec "cat /tmp/health" liveness probe [NodeConformance] [Conformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be restarted with a exec "cat /tmp/health" liveness probe',
  )) {
    const pod = probedPod(kind, 'exec', `touch /tmp/health; (sleep 2; rm /tmp/health) & ${idle}`, {
      livenessProbe: often({ ...exec('cat /tmp/health'), ...oneFailure }),
    });
    it(title, async () => {
      await restarted(pod);
      assert.ok(eventsOf(pod, 'Unhealthy').length > 0);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should be restarted with a /healthz http liveness probe [NodeConformance] [Conformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be restarted with a /healthz http liveness probe',
  )) {
    const pod = probedPod(kind, 'http', serveFiles('echo ok >/www/healthz; (sleep 2; rm /www/healthz) & :'), {
      livenessProbe: often({ ...http('/healthz'), ...oneFailure, initialDelaySeconds: 1 }),
    });
    it(title, async () => {
      await restarted(pod);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should have monotonically increasing restart count [NodeConformance] [Conformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should have monotonically increasing restart count',
  )) {
    const pod = probedPod(kind, 'again', serveFiles(':'), {
      livenessProbe: often({ ...http('/healthz'), ...oneFailure }),
    });
    it(title, async () => {
      let last = 0;
      await agent.until(pod, 'restarted three times', (seen) => {
        assert.ok(restarts(seen) >= last, 'it never goes back');
        last = restarts(seen);
        return last >= 3;
      });
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should be restarted with an exec liveness probe with timeout [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be restarted with an exec liveness probe with timeout',
  )) {
    const pod = probedPod(kind, 'late', idle, {
      livenessProbe: { ...exec('sleep 30'), ...oneFailure, periodSeconds: 1, timeoutSeconds: 1 },
    });
    it(title, async () => {
      await restarted(pod);
      assert.match(eventsOf(pod, 'Unhealthy').join('\n'), /Liveness probe failed: .*timed out/);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should be restarted with a failing exec liveness probe that took longer than the timeout [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be restarted with a failing exec liveness probe that took longer than the timeout',
  )) {
    const pod = probedPod(kind, 'late-fail', idle, {
      livenessProbe: { ...exec('sleep 5; exit 1'), ...oneFailure, periodSeconds: 1, timeoutSeconds: 1 },
    });
    it(title, async () => {
      await restarted(pod);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should be restarted with a local redirect http liveness probe [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be restarted with a local redirect http liveness probe',
  )) {
    // A directory is a redirect to itself with a slash, where nothing is to be had.
    // The startup probe waits for the server: one that does not listen yet has redirected nobody.
    const pod = probedPod(kind, 'local-redirect', serveFiles('mkdir /www/moved; echo ok >/www/up'), {
      startupProbe: often({ ...http('/up'), failureThreshold: 1000 }),
      livenessProbe: often({ ...http('/moved'), ...oneFailure }),
    });
    it(title, async () => {
      await restarted(pod);
      const failures = eventsOf(pod, 'Unhealthy').filter((line) => line.includes('Liveness probe failed'));
      assert.match(failures[0] ?? '', /HTTP probe failed with statuscode: 404/);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should be restarted with a GRPC liveness probe [NodeConformance] [Conformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be restarted with a GRPC liveness probe',
  )) {
    // The server stands on the node, where the pod's network is.
    const pod = probedPod(
      kind,
      'grpc-bad',
      idle,
      { livenessProbe: often({ grpc: { port: grpc.port, service: 'broken' }, ...oneFailure }) },
      { hostNetwork: true },
    );
    it(title, async () => {
      await restarted(pod);
      assert.ok(grpc.asked('broken') > 0);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should override timeoutGracePeriodSeconds when LivenessProbe field is set [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should override timeoutGracePeriodSeconds when LivenessProbe field is set',
  )) {
    const pod = probedPod(
      kind,
      'liveness-grace',
      `trap '' TERM; while :; do sleep 1; done`,
      {
        livenessProbe: often({ ...exec('exit 1'), ...oneFailure, terminationGracePeriodSeconds: 2 }),
      },
      { terminationGracePeriodSeconds: 600 },
    );
    it(title, async () => {
      await restarted(pod);
      // Its end would otherwise take the pod's ten minutes.
      await forceOut(pod);
    });
  }
});

/** Ends the processes of a pod that would take its long grace period. */
async function forceOut(pod: string): Promise<void> {
  const manifest = await agent.pod(pod);
  assert.ok(manifest);
  agent.remove(pod);
  await agent.eventually(`${pod} told to stop`, async () =>
    agent.log.includes(`pod="default/${pod}-node" action="stop-container"`),
  );
  for (const { id } of await agent.instances(manifest.metadata.uid)) {
    await agent.runtime.stopContainer({ containerId: id, timeout: 0n });
  }
}

describe('a startup probe', () => {
  for (const [kind, title] of both(
    '[sig-node] Probing container should be restarted startup probe fails [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be restarted startup probe fails',
  )) {
    const pod = probedPod(kind, 'startup', idle, {
      startupProbe: often({ ...exec('exit 1'), failureThreshold: 2 }),
      livenessProbe: often(exec('true')),
    });
    it(title, async () => {
      await restarted(pod);
      assert.match(eventsOf(pod, 'Killing').join('\n'), /failed startup probe, will be restarted/);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should be restarted by liveness probe after startup probe enables it [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be restarted by liveness probe after startup probe enables it',
  )) {
    const pod = probedPod(kind, 'enables', `(sleep 2; touch /tmp/up) & ${idle}`, {
      startupProbe: often({ ...exec('test -e /tmp/up'), failureThreshold: 100 }),
      livenessProbe: often({ ...exec('exit 1'), ...oneFailure }),
    });
    it(title, async () => {
      await restarted(pod);
      assert.match(eventsOf(pod, 'Killing').join('\n'), /failed liveness probe, will be restarted/);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should override timeoutGracePeriodSeconds when StartupProbe field is set [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should override timeoutGracePeriodSeconds when StartupProbe field is set',
  )) {
    const pod = probedPod(
      kind,
      'startup-grace',
      `trap '' TERM; while :; do sleep 1; done`,
      { startupProbe: often({ ...exec('exit 1'), ...oneFailure, terminationGracePeriodSeconds: 2 }) },
      { terminationGracePeriodSeconds: 600 },
    );
    it(title, async () => {
      await restarted(pod);
      await forceOut(pod);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should be ready immediately after startupProbe succeeds [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should be ready immediately after startupProbe succeeds',
  )) {
    const pod = probedPod(kind, 'ready-at-once', `(sleep 3; touch /tmp/up) & ${idle}`, {
      startupProbe: often({ ...exec('test -e /tmp/up'), failureThreshold: 100 }),
      readinessProbe: { ...exec('test -e /tmp/up'), periodSeconds: 3600, timeoutSeconds: 20 },
    });
    it(title, async () => {
      // A period of an hour would not be over.
      const ready = await agent.ready(pod);
      assert.equal(containerOf(ready, name)?.started, true);
      assert.equal(restarts(ready), 0);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should *not* be restarted by liveness probe because startup probe delays it [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should *not* be restarted by liveness probe because startup probe delays it',
  )) {
    const pod = probedPod(kind, 'delayed', idle, {
      startupProbe: often({ ...exec('exit 1'), failureThreshold: 1000 }),
      livenessProbe: often({ ...exec('exit 1'), ...oneFailure }),
    });
    it(title, async () => {
      const seen = await livesOn(pod, { type: 'Startup', result: 'failed' });
      assert.equal(containerOf(seen, name)?.started, false);
      assert.doesNotMatch(eventsOf(pod, 'Unhealthy').join('\n'), /Liveness/);
    });
  }
});

describe('a readiness probe', () => {
  for (const [kind, title] of both(
    '[sig-node] Probing container with readiness probe should not be ready before initial delay and never restart [NodeConformance] [Conformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container with readiness probe should not be ready before initial delay and never restart',
  )) {
    const pod = probedPod(kind, 'ready-later', idle, {
      readinessProbe: often({ ...exec('true'), initialDelaySeconds: 5 }),
    });
    it(title, async () => {
      const ready = await agent.ready(pod);
      const started = Date.parse(containerOf(ready, name)?.state?.running?.startedAt ?? '');
      const since = Date.parse(conditionOf(ready, 'Ready')?.lastTransitionTime ?? '');
      // Both are whole seconds.
      assert.ok(since - started >= 4000, `ready after ${since - started} ms`);
      assert.equal(restarts(ready), 0);
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container with readiness probe that fails should never be ready and never restart [NodeConformance] [Conformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container with readiness probe that fails should never be ready and never restart',
  )) {
    const pod = probedPod(kind, 'unready', idle, { readinessProbe: often(exec('exit 1')) });
    it(title, async () => {
      // More often than the failure threshold.
      const seen = await livesOn(pod, { type: 'Readiness', result: 'failed' });
      assert.equal(isReady(seen), false);
      assert.equal(containerOf(seen, name)?.ready, false);
      assert.equal(conditionOf(seen, 'Ready')?.reason, 'ContainersNotReady');
    });
  }

  for (const [kind, title] of both(
    '[sig-node] Probing container should not be ready with an exec readiness probe timeout [NodeConformance]',
    '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should not be ready with an exec readiness probe timeout',
  )) {
    const pod = probedPod(kind, 'unready-late', idle, {
      readinessProbe: { ...exec('sleep 30'), periodSeconds: 1, timeoutSeconds: 1 },
    });
    it(title, async () => {
      const seen = await livesOn(pod, { type: 'Readiness', result: 'failed' });
      assert.ok(eventsOf(pod, 'Unhealthy').length > 0);
      assert.equal(isReady(seen), false);
    });
  }

  /** Stops being healthy when it is told to stop, and ends when a file is there. */
  const lingering = `touch /tmp/ok; trap 'rm /tmp/ok; until test -e /tmp/end; do usleep 100000; done; exit 0' TERM; while :; do sleep 1 & wait $!; done`;
  for (const [what, extra, titles] of [
    [
      'ending',
      {},
      both(
        '[sig-node] Probing container should mark readiness on pods to false while pod is in progress of terminating when a pod has a readiness probe [NodeConformance]',
        '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should mark readiness on pods to false while pod is in progress of terminating when a pod has a readiness probe',
      ),
    ],
    [
      'ending-live',
      { livenessProbe: often({ ...exec('test -e /tmp/ok'), failureThreshold: 3 }) },
      both(
        '[sig-node] Probing container should mark readiness on pods to false and disable liveness probes while pod is in progress of terminating [NodeConformance]',
        '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should mark readiness on pods to false and disable liveness probes while pod is in progress of terminating',
      ),
    ],
  ] as const) {
    for (const [kind, title] of titles) {
      const pod = probedPod(
        kind,
        what,
        lingering,
        { readinessProbe: often({ ...exec('test -e /tmp/ok'), ...oneFailure }), ...extra },
        { terminationGracePeriodSeconds: 300 },
      );
      it(title, async () => {
        const before = await agent.ready(pod);
        agent.remove(pod);
        const ending = await agent.until(pod, 'not ready any more', (seen) => !isReady(seen));
        assert.equal(ending.metadata.uid, before.metadata.uid);
        const readiness = await probesOf(pod, 'Readiness', 'failed');
        // Both kinds have the same period: liveness would have failed for good by then.
        await agent.eventually(
          `${pod} probed on`,
          async () => (await probesOf(pod, 'Readiness', 'failed')) >= readiness + (what === 'ending' ? 1 : 4),
        );
        const [instance] = (await agent.instances(before.metadata.uid)).filter(
          ({ metadata, state }) => metadata?.name === name && state === ContainerState.CONTAINER_RUNNING,
        );
        assert.ok(instance, 'it runs on until it ends by itself');
        const cmd = ['touch', '/tmp/end'];
        await agent.runtime.execSync({ containerId: instance.id, cmd, timeout: 60n });
        const told = eventsOf(pod, 'Unhealthy').filter((line) => line.includes('Liveness')).length;
        await agent.gone(pod);
        const after = eventsOf(pod, 'Unhealthy').filter((line) => line.includes('Liveness')).length;
        assert.equal(after, told, 'no liveness probe failed while the pod ended');
        const started = eventsOf(pod, 'Started').filter((line) => line.includes(`{${name}}`)).length;
        assert.equal(started, restarts(before) + 1);
      });
    }
  }
});

describe('a liveness probe that succeeds', () => {
  for (const [what, script, probe, titles, spec] of [
    [
      'exec-good',
      `touch /tmp/health; ${idle}`,
      exec('cat /tmp/health'),
      both(
        '[sig-node] Probing container should *not* be restarted with a exec "cat /tmp/health" liveness probe [NodeConformance] [Conformance]',
        '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should *not* be restarted with a exec "cat /tmp/health" liveness probe',
      ),
    ],
    [
      'http-good',
      serveFiles('echo ok >/www/healthz'),
      http('/healthz'),
      both(
        '[sig-node] Probing container should *not* be restarted with a /healthz http liveness probe [NodeConformance] [Conformance]',
        '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should *not* be restarted with a /healthz http liveness probe',
      ),
    ],
    [
      'tcp-good',
      serveFiles(':'),
      { tcpSocket: { port: 8080 } },
      both(
        '[sig-node] Probing container should *not* be restarted with a tcp:8080 liveness probe [NodeConformance] [Conformance]',
        '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should *not* be restarted with a tcp:8080 liveness probe',
      ),
    ],
    [
      'grpc-good',
      idle,
      { grpc: { port: grpc.port, service: 'sound' } },
      both(
        '[sig-node] Probing container should *not* be restarted with a GRPC liveness probe [NodeConformance] [Conformance]',
        '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should *not* be restarted with a GRPC liveness probe',
      ),
      { hostNetwork: true },
    ],
    [
      'far-redirect',
      serveRedirect('http://192.0.2.7/elsewhere'),
      http('/'),
      both(
        '[sig-node] Probing container should *not* be restarted with a non-local redirect http liveness probe [NodeConformance]',
        '[sig-node] [NodeConformance] [FeatureGate:SidecarContainers] Probing restartable init container should *not* be restarted with a non-local redirect http liveness probe',
      ),
    ],
  ] as const) {
    for (const [kind, title] of titles) {
      // The server has all the time to come up, and is not to fail once from then on.
      const startupProbe = often({ ...probe, failureThreshold: 1000 });
      const livenessProbe = often({ ...probe, ...oneFailure });
      const pod = probedPod(kind, what, script, { startupProbe, livenessProbe }, spec);
      it(title, async () => {
        await livesOn(pod, { type: 'Liveness', result: 'successful' });
        if (what === 'grpc-good') assert.ok(grpc.asked('sound') > 0);
        if (what !== 'far-redirect') return;
        await agent.eventually('warned', async () => eventsOf(pod, 'ProbeWarning').length > 0);
      });
    }
  }
});
