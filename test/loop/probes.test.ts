/** Probes in the whole loop: what they say reaches decisions and status, and survives the agent. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Container, PodSpec } from '../../src/kubernetes/types.ts';
import type { ProbeMemory, RememberedHealth } from '../../src/probes/probe-memory.ts';
import { assertNoTimers, startLoop } from './start-loop.ts';
import { filePod, World } from './world.ts';

let world: World;
const codes = new Map<string, number>();
const kept = new Map<string, RememberedHealth>();
const memory: ProbeMemory = {
  recall: (id) => kept.get(id),
  remember: (id, health) => void kept.set(id, health),
  forget: (id) => void kept.delete(id),
};
beforeEach(() => {
  world = new World();
  codes.clear();
  kept.clear();
  world.runtime.behave('web', { exec: ([command = '']) => ({ exitCode: codes.get(command) ?? 0 }) });
});
afterEach(() => world.remove());

const probe = (command: string, more = {}) => ({
  exec: { command: [command] },
  periodSeconds: 10,
  timeoutSeconds: 1,
  failureThreshold: 1,
  successThreshold: 1,
  ...more,
});
const spec = (more: Partial<Container>): Partial<PodSpec> => ({
  containers: [{ name: 'web', image: 'web', ...more }],
});

describe('probes', () => {
  it('restart a container that is not alive', async () => {
    const pod = filePod('pod', spec({ livenessProbe: probe('live') }));
    const loop = await startLoop({ world, pods: [pod], memory });
    await loop.untilRunning(pod);
    codes.set('live', 1);
    await loop.pass(10_000);
    codes.set('live', 0);
    await loop.pass(30_000);
    const [web] = loop.status(pod)?.containerStatuses ?? [];
    assert.deepEqual([web?.restartCount, web?.ready], [1, true]);
    assert.deepEqual(
      loop.events.filter((text) => /^(Unhealthy|Killing)/.test(text)),
      [
        'Unhealthy: Liveness probe failed: command "live" exited with code 1',
        'Killing: Container web failed liveness probe, will be restarted',
      ],
    );
    await loop.stop();
    assertNoTimers(world);
  });

  it('make a container ready as soon as it has started, and keep it so over a restart of the agent', async () => {
    codes.set('start', 1);
    const startupProbe = probe('start', { failureThreshold: 30 });
    const pod = filePod('pod', spec({ startupProbe, readinessProbe: probe('ready') }));
    const loop = await startLoop({ world, pods: [pod], memory });
    await loop.untilStatus(pod, 'running', ({ containerStatuses: [web] = [] }) =>
      Boolean(web?.state?.running),
    );
    await loop.pass(5000);
    assert.equal(loop.status(pod)?.containerStatuses?.[0]?.started, false);
    codes.set('start', 0);
    await loop.pass(10_000);
    const [web] = loop.status(pod)?.containerStatuses ?? [];
    assert.deepEqual([web?.started, web?.ready], [true, true]);
    await loop.stop();
    assertNoTimers(world);

    const next = await startLoop({ world, pods: [pod], memory });
    await next.untilRunning(pod);
    await next.quiet();
    assert.ok(next.reports.every(({ status }) => status.containerStatuses?.[0]?.ready));
    codes.set('ready', 1);
    await next.pass(10_000);
    assert.equal(next.status(pod)?.containerStatuses?.[0]?.ready, false);
    next.want([]);
    await next.untilGone(pod);
    assert.equal(kept.size, 0);
    await next.stop();
    assertNoTimers(world);
  });
});
