/** How the containers of a pod end: hooks, signals, grace periods, sidecars after the others, probes meanwhile. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Probe } from '../../../src/kubernetes/types.ts';
import { recorded, recording, sidecar, type Timeline } from './recorder.ts';
import { containerOf, Scenarios } from './scenarios.ts';

const scenarios = new Scenarios();
const { agent } = scenarios;

/** A probe once a second, of which one failure is enough; a busy machine is no failure. */
const probe = (container: string, script: string, more: Partial<Probe> = {}): Probe => ({
  ...recording(container, script),
  periodSeconds: 1,
  timeoutSeconds: 20,
  failureThreshold: 1,
  ...more,
});

/** Removes the pod's manifest and waits for its end; answers the seconds it took and what was recorded. */
async function removed(name: string): Promise<{ seconds: number; timeline: Timeline }> {
  const begun = Date.now();
  agent.remove(name);
  await agent.gone(name);
  return { seconds: (Date.now() - begun) / 1000, timeline: scenarios.timeline(name) };
}

/** Every one of `earlier` happened before any of `later`. */
function allBefore(timeline: Timeline, earlier: readonly string[], later: readonly string[]): void {
  const last = Math.max(...earlier.map((what) => timeline.at(what)));
  const first = Math.min(...later.map((what) => timeline.at(what)));
  assert.ok(last <= first, timeline.text);
}
const each = (names: readonly string[], what: string) => names.map((name) => `${name} ${what}`);

describe('a pod that ends by itself', () => {
  scenarios.recorded('reverse', {
    restartPolicy: 'Never',
    initContainers: ['sidecar-1', 'sidecar-2', 'sidecar-3'].map((name) =>
      sidecar(name, { onStop: { after: 0.5 } }),
    ),
    containers: [recorded('main-1', { runsFor: 0.5 }), recorded('main-2', { runsFor: 2 })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The containers exit successfully should terminate sidecars in reverse order after all main containers have exited', async () => {
    await scenarios.phase('reverse', 'Succeeded');
    scenarios
      .timeline('reverse')
      .inOrder(
        'main-1 ended',
        'main-2 ended',
        'sidecar-3 stopping',
        'sidecar-3 ended',
        'sidecar-2 stopping',
        'sidecar-2 ended',
        'sidecar-1 stopping',
        'sidecar-1 ended',
      );
  });

  scenarios.recorded('nonzero', {
    restartPolicy: 'Never',
    initContainers: ['sidecar-1', 'sidecar-2'].map((name) => sidecar(name, { onStop: { code: 3 } })),
    containers: [recorded('main', { runsFor: 0.2 })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The restartable init containers exit with non-zero exit code should mark pod as succeeded if any of the restartable init containers have terminated with non-zero exit code', async () => {
    const pod = await scenarios.phase('nonzero', 'Succeeded');
    assert.equal(containerOf(pod, 'sidecar-1')?.state?.terminated?.exitCode, 3);
  });

  scenarios.recorded('nonzero-hook', {
    restartPolicy: 'Never',
    initContainers: [
      sidecar('sidecar', {}, { lifecycle: { preStop: recording('sidecar', 'say hook; exit 1') } }),
    ],
    containers: [recorded('main', { runsFor: 0.2 })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The restartable init containers exit with non-zero exit code by prestop hook should mark pod as succeeded if any of the restartable init containers have terminated with non-zero exit code by prestop hook', async () => {
    await scenarios.phase('nonzero-hook', 'Succeeded');
    const timeline = scenarios.timeline('nonzero-hook');
    timeline.inOrder('sidecar hook', 'sidecar stopping', 'sidecar ended');
    await agent.eventually('told', async () => agent.log.includes('FailedPreStopHook'));
  });

  scenarios.recorded('overdue', {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 2,
    initContainers: [sidecar('sidecar', { onStop: 'ignore' })],
    containers: [recorded('main', { runsFor: 0.2 })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The restartable init containers have exceeded its termination grace period seconds should mark pod as succeeded if any of the restartable init containers have exceeded its termination grace period seconds', async () => {
    const pod = await scenarios.phase('overdue', 'Succeeded');
    assert.equal(containerOf(pod, 'sidecar')?.state?.terminated?.exitCode, 137);
  });

  scenarios.recorded('overdue-hook', {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 6,
    initContainers: [
      sidecar(
        'sidecar',
        { onStop: { code: 1 } },
        { lifecycle: { preStop: recording('sidecar', 'say hook; sleep 60; say hooked') } },
      ),
    ],
    containers: [recorded('main', { runsFor: 0.2 })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The restartable init containers have exceeded its termination grace period seconds by prestop hook should mark pod as succeeded if any of the prestop hook in restartable init containers have exceeded its termination grace period seconds', async () => {
    await scenarios.phase('overdue-hook', 'Succeeded');
    const timeline = scenarios.timeline('overdue-hook');
    timeline.inOrder('main ended', 'sidecar hook', 'sidecar stopping');
    timeline.never('sidecar hooked');
  });
});

describe('a pod that is removed', () => {
  scenarios.recorded('stubborn', {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 3,
    initContainers: [recorded('init', { runsFor: 0.1 })],
    containers: [recorded('main', { onStop: 'ignore' })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never a pod cannot terminate gracefully should respect termination grace period seconds [NodeConformance]', async () => {
    await agent.ready('stubborn');
    const { seconds } = await removed('stubborn');
    assert.ok(seconds >= 2.9 && seconds < 60, `it took ${seconds} s`);
  });

  scenarios.recorded('stubborn-hook', {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 3,
    initContainers: [recorded('init', { runsFor: 0.1 })],
    containers: [
      recorded(
        'main',
        { onStop: 'ignore' },
        { lifecycle: { preStop: recording('main', 'say hook; sleep 60; say hooked') } },
      ),
    ],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never a pod cannot terminate gracefully should respect termination grace period seconds with long-running preStop hook [NodeConformance]', async () => {
    await agent.ready('stubborn-hook');
    const { seconds, timeline } = await removed('stubborn-hook');
    // The hook has the grace period, the signal at least two seconds behind it.
    assert.ok(seconds >= 4.5 && seconds < 60, `it took ${seconds} s`);
    assert.ok(timeline.has('main hook'));
    timeline.never('main hooked');
  });

  scenarios.recorded('initializing', {
    terminationGracePeriodSeconds: 600,
    initContainers: [sidecar('sidecar'), recorded('init', { onStop: { code: 1 } })],
    containers: [recorded('main')],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating Restartable init containers are terminated during initialization should not hang in termination if terminated during initialization', async () => {
    await scenarios.untilRecorded('initializing', 'init started', (seen) => seen.has('init started'));
    const { seconds, timeline } = await removed('initializing');
    assert.ok(seconds < 100, `it took ${seconds} s`);
    timeline.inOrder('init stopping', 'sidecar stopping');
    timeline.never('main starting');
  });

  scenarios.recorded('hooks-hang', {
    terminationGracePeriodSeconds: 6,
    initContainers: ['sidecar-1', 'sidecar-2', 'sidecar-3'].map((name) =>
      sidecar(name, {}, { lifecycle: { preStop: recording(name, 'say hook; sleep 60; say hooked') } }),
    ),
    containers: [recorded('main')],
  });
  it("[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating The PreStop hooks don't exit should terminate sidecars simultaneously if prestop doesn't exit", async () => {
    await agent.ready('hooks-hang');
    const { seconds, timeline } = await removed('hooks-hang');
    const names = ['sidecar-1', 'sidecar-2', 'sidecar-3'];
    // All hooks share one grace period, so nothing is left to keep the sidecars apart.
    allBefore(timeline, each(names, 'hook'), each(names, 'stopping'));
    assert.ok(seconds >= 3.9 && seconds < 60, `it took ${seconds} s`);
    for (const name of names) timeline.never(`${name} hooked`);
  });

  scenarios.recorded('many-hooks', {
    initContainers: ['sidecar-1', 'sidecar-2', 'sidecar-3'].map((name) =>
      sidecar(name, {}, { lifecycle: { preStop: recording(name, 'say hook; sleep 5; say hooked') } }),
    ),
    containers: [recorded('main', { onStop: { after: 1 } })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating the restartable init containers have multiple PreStop hooks should call sidecar container PreStop hook simultaneously', async () => {
    await agent.ready('many-hooks');
    const { timeline } = await removed('many-hooks');
    const names = ['sidecar-1', 'sidecar-2', 'sidecar-3'];
    allBefore(timeline, each(names, 'hook'), each(names, 'hooked'));
    for (const name of names) timeline.inOrder(`${name} hook`, `${name} hooked`, `${name} stopping`);
    timeline.inOrder('main ended', 'sidecar-3 ended', 'sidecar-2 ended', 'sidecar-1 ended');
  });

  scenarios.recorded('half-started', {
    initContainers: [
      sidecar('sidecar-1', { onStop: { after: 0.3 } }),
      sidecar(
        'sidecar-2',
        { onStop: { after: 0.3 } },
        { startupProbe: probe('sidecar-2', 'exit 1', { failureThreshold: 100 }) },
      ),
      sidecar('sidecar-3'),
    ],
    containers: [recorded('main')],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A pod with restartable init containers is terminating there is a non-started restartable init container should terminate restartable init containers gracefully if there is a non-started restartable init container', async () => {
    await scenarios.untilRecorded('half-started', 'sidecar-2 runs', (seen) => seen.has('sidecar-2 started'));
    const { timeline } = await removed('half-started');
    timeline.inOrder('sidecar-2 stopping', 'sidecar-2 ended', 'sidecar-1 stopping', 'sidecar-1 ended');
    for (const name of ['sidecar-3', 'main']) timeline.never(`${name} starting`);
  });
});

describe('a container whose probe fails', () => {
  for (const [kind, title] of [
    [
      'liveness',
      "[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never A regular container has a PreStop hook A regular container fails a liveness probe should call the container's preStop hook and terminate it if its liveness probe fails",
    ],
    [
      'startup',
      "[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never A regular container has a PreStop hook A regular container fails a startup probe should call the container's preStop hook and terminate it if its startup probe fails",
    ],
  ] as const) {
    scenarios.recorded(`main-${kind}`, {
      restartPolicy: 'Never',
      initContainers: [recorded('init', { runsFor: 0.1 })],
      containers: [
        recorded(
          'main',
          { onStop: { code: 1 } },
          {
            [`${kind}Probe`]: probe('main', 'say probed; exit 1'),
            lifecycle: { preStop: recording('main', 'say hook; sleep 1; say hooked') },
          },
        ),
      ],
    });
    it(title, async () => {
      await scenarios.phase(`main-${kind}`, 'Failed');
      const timeline = scenarios.timeline(`main-${kind}`);
      timeline.inOrder('main started', 'main hook', 'main hooked', 'main stopping');
      timeline.inOrder('main probed', 'main hook');
      assert.equal(timeline.times('main starting'), 1);
    });
  }

  scenarios.recorded('main-probes', {
    restartPolicy: 'Never',
    containers: [
      recorded(
        'main',
        { onStop: { code: 1 } },
        {
          livenessProbe: probe('main', 'say live; exit 1', { initialDelaySeconds: 2 }),
          readinessProbe: probe('main', 'say ready'),
          lifecycle: { preStop: recording('main', 'say hook; sleep 5; say hooked') },
        },
      ),
    ],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never A regular container has a PreStop hook A regular container fails a liveness probe a pod is terminating because its liveness probe fails should execute readiness probe while in preStop, but not liveness [NodeConformance]', async () => {
    await scenarios.phase('main-probes', 'Failed');
    const timeline = scenarios.timeline('main-probes');
    const meanwhile = timeline.events.filter(
      ({ at }) => at > timeline.at('main hook') && at < timeline.at('main hooked'),
    );
    assert.ok(
      meanwhile.some(({ what }) => what === 'main ready'),
      timeline.text,
    );
    assert.ok(!meanwhile.some(({ what }) => what === 'main live'), timeline.text);
  });

  scenarios.recorded('sidecar-probes', {
    restartPolicy: 'Never',
    initContainers: [
      sidecar(
        'sidecar',
        {},
        // It fails from the moment on at which the hook of the other container begins.
        { livenessProbe: probe('sidecar', 'say live; ! grep -q "main hook" /record/events') },
      ),
    ],
    containers: [
      recorded(
        'main',
        { onStop: { code: 1 } },
        {
          livenessProbe: probe('main', 'exit 1', { initialDelaySeconds: 2 }),
          lifecycle: { preStop: recording('main', 'say hook; sleep 5; say hooked') },
        },
      ),
    ],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle Running a pod with init containers and regular containers, restartPolicy=Never A regular container has a PreStop hook A regular container fails a liveness probe a pod is terminating because its liveness probe fails should not continue running liveness probes for restartable init containers and restart them while in preStop [NodeConformance]', async () => {
    await scenarios.phase('sidecar-probes', 'Failed');
    const timeline = scenarios.timeline('sidecar-probes');
    assert.equal(timeline.times('sidecar starting'), 1, timeline.text);
    timeline.inOrder('sidecar live', 'main hook', 'main hooked', 'sidecar stopping');
    // One that was on its way when the hook began may still be written down.
    const late = timeline.events.filter(
      ({ at, what }) => what === 'sidecar live' && at > timeline.at('main hook'),
    );
    assert.ok(late.length <= 1, timeline.text);
  });

  scenarios.recorded('sidecar-liveness', {
    initContainers: [
      sidecar(
        'sidecar',
        {},
        {
          livenessProbe: probe('sidecar', 'say probed; exit 1'),
          lifecycle: { preStop: recording('sidecar', 'say hook') },
        },
      ),
      recorded('init', { runsFor: 0.1 }),
    ],
    containers: [recorded('main')],
  });
  it("[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with liveness probes should call the container's preStop hook and start the next container if the restartable init container's liveness probe fails", async () => {
    const timeline = await scenarios.untilRecorded(
      'sidecar-liveness',
      'restarted',
      (seen) => seen.times('sidecar starting') > 1 && seen.has('main starting'),
    );
    timeline.inOrder('sidecar starting', 'init starting', 'init ended', 'main starting');
    timeline.inOrder('sidecar probed', 'sidecar hook', 'sidecar stopping');
    assert.equal(timeline.times('init starting'), 1);
  });

  scenarios.recorded('sidecar-startup', {
    initContainers: [
      sidecar(
        'sidecar',
        {},
        {
          startupProbe: probe('sidecar', 'say probed; exit 1'),
          lifecycle: { preStop: recording('sidecar', 'say hook') },
        },
      ),
      recorded('init', { runsFor: 0.1 }),
    ],
    containers: [recorded('main')],
  });
  it("[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with startup probes using a PreStop hook should call the container's preStop hook and not launch next container if the restartable init container's startup probe fails", async () => {
    const timeline = await scenarios.untilRecorded(
      'sidecar-startup',
      'restarted',
      (seen) => seen.times('sidecar starting') > 1,
    );
    timeline.inOrder('sidecar starting', 'sidecar probed', 'sidecar hook', 'sidecar stopping');
    for (const name of ['init', 'main']) timeline.never(`${name} starting`);
  });

  scenarios.recorded('startup-order', {
    restartPolicy: 'Never',
    initContainers: ['sidecar-1', 'sidecar-2'].map((name) =>
      sidecar(
        name,
        { startsFor: 2 },
        {
          startupProbe: probe(name, `grep -q "${name} started" /record/events && say passed`, {
            failureThreshold: 60,
          }),
        },
      ),
    ),
    containers: [recorded('main', { runsFor: 0.1 })],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle running restartable init containers with startup probes should launch restartable init containers serially considering the startup probe', async () => {
    await scenarios.phase('startup-order', 'Succeeded');
    scenarios
      .timeline('startup-order')
      .inOrder(
        'sidecar-1 starting',
        'sidecar-1 started',
        'sidecar-1 passed',
        'sidecar-2 starting',
        'sidecar-2 started',
        'sidecar-2 passed',
        'main starting',
      );
  });

  scenarios.recorded('startup-recovers', {
    initContainers: [
      sidecar(
        'sidecar',
        {},
        {
          startupProbe: probe(
            'sidecar',
            'say probed; test "$(grep -c "sidecar probed" /record/events)" -ge 4',
            { failureThreshold: 30 },
          ),
        },
      ),
    ],
    containers: [recorded('main')],
  });
  it('[sig-node] [NodeConformance] Containers Lifecycle A restartable init container with startup probe fails initially should continue probing and allow regular container to start after the restartable init container recovers', async () => {
    const pod = await agent.ready('startup-recovers');
    assert.equal(containerOf(pod, 'sidecar')?.restartCount, 0);
    const timeline = scenarios.timeline('startup-recovers');
    assert.ok(timeline.at('sidecar probed', 3) <= timeline.at('main starting'), timeline.text);
  });
});
