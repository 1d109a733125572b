import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import type { Container, Probe } from '../kubernetes/types.ts';
import { observedPod, probedPod, runningInstance } from './fixtures/probed-pod.ts';
import { epoch, type ProberWorld, proberWorld } from './fixtures/prober-world.ts';
import { timingAnnotation } from './timing-annotation.ts';

const probe = (command: string, more: Partial<Probe> = {}): Probe => ({
  exec: { command: [command] },
  ...more,
});
const web = (more: Partial<Container>): Container => ({ name: 'web', ...more });

/** Shows the prober a pod whose containers have all just started, or, with `startedAgo` seconds, long ago. */
function show(
  world: ProberWorld,
  container: Partial<Container>,
  { terminating = false, startedAgo = 0, id = 'web-1', annotations = {} } = {},
) {
  const pod = probedPod({ containers: [web(container)], annotations });
  const startedAt = world.clock.now() - startedAgo * 1000;
  const update = { pod, observed: observedPod(runningInstance('web', startedAt, { id })), terminating };
  world.prober.update(update);
  return {
    again: (more: Partial<typeof update>) => world.prober.update({ ...update, ...more }),
    health: () => world.prober.health('u1')[id],
  };
}

const times = ({ runs }: ProberWorld, command: string) =>
  runs.filter((run) => run.command === command).map(({ at }) => at);
const gaps = (all: readonly number[]) =>
  all.slice(1).map((at, index) => Math.round((at - all[index]!) * 1000) / 1000);

describe('readiness', () => {
  it('is looked at as soon as the container runs, then once a period', async () => {
    const world = proberWorld();
    const { health } = show(world, { readinessProbe: probe('ready', { periodSeconds: 10 }) });
    assert.deepEqual(health(), { started: true, ready: false });
    await world.clock.advance(0);
    assert.deepEqual(health(), { started: true, ready: true });
    assert.deepEqual(world.changes, ['u1']);
    await world.clock.advance(60_000);
    const [first, ...regular] = times(world, 'ready');
    assert.equal(first, 0);
    assert.ok(regular[0]! >= 5 && regular[0]! < 10);
    assert.deepEqual(new Set(gaps(regular)), new Set([10]));
    assert.equal(world.changes.length, 1);
  });

  it('is looked at without a word until the grid begins, and then fails aloud', async () => {
    const world = proberWorld();
    world.answers.set('ready', 1);
    show(world, { readinessProbe: probe('ready', { periodSeconds: 4, failureThreshold: 1 }) });
    await world.clock.advance(1500);
    assert.deepEqual(times(world, 'ready'), [0, 1]);
    assert.deepEqual(world.events, []);
    await world.clock.advance(2500);
    assert.deepEqual(world.events, [
      'Warning Unhealthy spec.containers{web}: Readiness probe failed: says 1',
    ]);
  });

  it('is found within a second where the container took a second, whatever the period', async () => {
    const world = proberWorld();
    world.answers.set('ready', async () => (world.clock.now() - epoch > 900 ? 0 : 1));
    const { health } = show(world, { readinessProbe: probe('ready', { periodSeconds: 60 }) });
    await world.clock.advance(1000);
    assert.equal(health()?.ready, true);
  });

  it('waits for the initial delay', async () => {
    const world = proberWorld();
    show(world, { readinessProbe: probe('ready', { initialDelaySeconds: 30 }) });
    await world.clock.advance(29_999);
    assert.deepEqual(world.runs, []);
    await world.clock.advance(1);
    assert.deepEqual(times(world, 'ready'), [30]);
  });

  it('needs its successes and its failures in a row', async () => {
    const world = proberWorld();
    const { health } = show(world, {
      readinessProbe: probe('ready', { periodSeconds: 10, successThreshold: 2, failureThreshold: 3 }),
    });
    await world.clock.advance(4000);
    assert.deepEqual([health()?.ready, world.runs.length], [false, 1]);
    await world.clock.advance(6000);
    assert.deepEqual([health()?.ready, world.runs.length], [true, 2]);
    world.answers.set('ready', 1);
    await world.clock.advance(20_000);
    assert.equal(health()?.ready, true);
    await world.clock.advance(10_000);
    assert.equal(health()?.ready, false);
  });
});

describe('liveness', () => {
  it('does not run at once, and ends a container after so many failures, with its own grace', async () => {
    const world = proberWorld();
    world.answers.set('live', 1);
    const { health } = show(world, {
      livenessProbe: probe('live', {
        periodSeconds: 10,
        failureThreshold: 3,
        terminationGracePeriodSeconds: 5,
      }),
    });
    await world.clock.advance(24_900);
    assert.equal(health()?.failed, undefined);
    await world.clock.advance(5100);
    assert.deepEqual(health()?.failed, { probe: 'liveness', graceSeconds: 5 });
    assert.equal(world.events.length, 3);
    assert.equal(world.events[0], 'Warning Unhealthy spec.containers{web}: Liveness probe failed: says 1');
  });

  it('holds after that until there is a new instance', async () => {
    const world = proberWorld();
    world.answers.set('live', 1);
    const container = { livenessProbe: probe('live', { periodSeconds: 1, failureThreshold: 1 }) };
    show(world, container);
    await world.clock.advance(60_000);
    assert.equal(world.runs.length, 1);
    world.answers.set('live', 0);
    const { health } = show(world, container, { id: 'web-2' });
    assert.deepEqual(health(), { started: true, ready: true });
    await world.clock.advance(60_000);
    assert.deepEqual(world.runs.map(({ id }) => id).slice(0, 3), ['web-1', 'web-2', 'web-2']);
    assert.deepEqual(Object.keys(world.prober.health('u1')), ['web-2']);
  });

  it('keeps its period however long it takes', async () => {
    const world = proberWorld();
    let took = 0;
    world.answers.set('live', () => {
      const { promise, resolve } = Promise.withResolvers<number>();
      took = (took + 170) % 990;
      world.clock.after(took, () => resolve(0));
      return promise;
    });
    show(world, { livenessProbe: probe('live', { periodSeconds: 1 }) });
    await world.clock.advance(100_000);
    const all = times(world, 'live');
    assert.deepEqual(new Set(gaps(all)), new Set([1]));
    assert.ok(all.length >= 99);
  });

  it('never overlaps itself, and goes on after a run that took many periods', async () => {
    const world = proberWorld();
    let inside = 0;
    let most = 0;
    world.answers.set('live', async () => {
      most = Math.max(most, ++inside);
      const { promise, resolve } = Promise.withResolvers<void>();
      world.clock.after(3500, resolve);
      await promise;
      inside--;
      return 0;
    });
    show(world, { livenessProbe: probe('live', { periodSeconds: 1, timeoutSeconds: 10 }) });
    await world.clock.advance(30_000);
    assert.equal(most, 1);
    assert.deepEqual(new Set(gaps(times(world, 'live'))), new Set([4]));
  });

  it('has failed when its time is up, even if the runtime never answers', async () => {
    const world = proberWorld();
    world.answers.set('live', () => new Promise(() => {}));
    const { health } = show(world, {
      livenessProbe: probe('live', { periodSeconds: 10, timeoutSeconds: 2, failureThreshold: 2 }),
    });
    await world.clock.advance(30_000);
    assert.equal(health()?.failed?.probe, 'liveness');
    assert.match(
      world.events[0] ?? '',
      /Liveness probe failed: command timed out: "live" timed out after 2s$/,
    );
  });

  it('that cannot be run says nothing of the container', async () => {
    const world = proberWorld();
    world.answers.set('live', () => Promise.reject(new Error('no connection')));
    const { health } = show(world, { livenessProbe: probe('live', { failureThreshold: 1 }) });
    await world.clock.advance(10_000);
    assert.equal(world.runs.length, 3, 'three attempts');
    assert.equal(health()?.failed, undefined);
    assert.deepEqual(world.events, [
      'Warning Unhealthy spec.containers{web}: Liveness probe errored and resulted in unknown state: no connection',
    ]);
  });
});

describe('startup', () => {
  const container = {
    startupProbe: probe('start', { periodSeconds: 10, failureThreshold: 3 }),
    livenessProbe: probe('live', { periodSeconds: 10 }),
    readinessProbe: probe('ready', { periodSeconds: 10 }),
  };

  it('holds back the others, and lets readiness be seen at once when it succeeds', async () => {
    const world = proberWorld();
    world.answers.set('start', 1);
    const { health } = show(world, container);
    await world.clock.advance(12_000);
    assert.deepEqual(new Set(world.runs.map(({ command }) => command)), new Set(['start']));
    assert.deepEqual(health(), { started: false, ready: false });
    world.answers.set('start', 0);
    await world.clock.advance(10_000);
    const started = times(world, 'start').at(-1)!;
    assert.equal(times(world, 'ready')[0], started);
    assert.deepEqual(health(), { started: true, ready: true });
    await world.clock.advance(60_000);
    assert.equal(times(world, 'start').at(-1), started, 'idles afterwards');
    const firstLive = times(world, 'live')[0]! - started;
    assert.ok(firstLive >= 5 && firstLive < 10, String(firstLive));
  });

  it('ends the container like liveness, and nothing of it runs afterwards', async () => {
    const world = proberWorld();
    world.answers.set('start', 1);
    const { health } = show(world, container);
    await world.clock.advance(24_900);
    assert.equal(health()?.failed, undefined);
    await world.clock.advance(5100);
    assert.deepEqual(health(), { started: false, ready: false, failed: { probe: 'startup' } });
    const { length } = world.runs;
    await world.clock.advance(100_000);
    assert.equal(world.runs.length, length);
  });
});

describe('the end', () => {
  it('of the pod leaves only readiness', async () => {
    const world = proberWorld();
    const { again, health } = show(world, {
      livenessProbe: probe('live', { periodSeconds: 1 }),
      readinessProbe: probe('ready', { periodSeconds: 1, failureThreshold: 1 }),
    });
    await world.clock.advance(3000);
    again({ terminating: true });
    const before = times(world, 'live').length;
    world.answers.set('live', 1).set('ready', 1);
    await world.clock.advance(5000);
    assert.equal(times(world, 'live').length, before);
    assert.deepEqual(health(), { started: true, ready: false });
  });

  it('of the pod silences a liveness probe at once', async () => {
    const world = proberWorld();
    world.answers.set('live', 1);
    const { again, health } = show(world, { livenessProbe: probe('live', { failureThreshold: 1 }) });
    again({ terminating: true });
    await world.clock.advance(60_000);
    assert.deepEqual([world.runs, health()?.failed, world.changes], [[], undefined, []]);
  });

  it('of a container drops a run that is under way, and leaves no trace of it', async () => {
    const world = proberWorld();
    const { promise, resolve } = Promise.withResolvers<number>();
    world.answers.set('live', () => promise);
    const { again } = show(world, {
      livenessProbe: probe('live', { failureThreshold: 1, timeoutSeconds: 60 }),
    });
    await world.clock.advance(10_000);
    assert.equal(world.runs.length, 1);
    again({ observed: observedPod() });
    resolve(1);
    await world.clock.advance(0);
    assert.deepEqual([world.events, world.changes, world.series.size], [[], [], 0]);
  });

  it('of a container ends what is remembered of it', async () => {
    const world = proberWorld();
    const { again } = show(world, { readinessProbe: probe('ready') });
    await world.clock.advance(0);
    assert.deepEqual([...world.memory], [['web-1', { started: true, ready: true }]]);
    again({ observed: observedPod(runningInstance('web', epoch, { state: 'Exited' })) });
    assert.equal(world.memory.size, 0);
  });

  it('of a container drops what was on its way', async () => {
    const world = proberWorld();
    const { promise, resolve } = Promise.withResolvers<number>();
    world.answers.set('ready', () => promise);
    const { again } = show(world, { readinessProbe: probe('ready') });
    await world.clock.advance(0);
    assert.equal(world.runs.length, 1);
    again({ observed: observedPod(runningInstance('web', epoch, { state: 'Exited' })) });
    resolve(0);
    await world.clock.advance(60_000);
    assert.deepEqual([world.prober.health('u1'), world.changes, world.events], [{}, [], []]);
    assert.equal(world.memory.size, 0);
    assert.equal(world.clock.nextTimer(), undefined);
  });

  it('of a pod takes everything with it', async () => {
    const world = proberWorld();
    show(world, { readinessProbe: probe('ready'), livenessProbe: probe('live') });
    await world.clock.advance(30_000);
    assert.equal(world.series.size, 4);
    world.prober.forget('u1');
    assert.deepEqual([world.series.size, world.memory.size, world.clock.nextTimer()], [0, 0, undefined]);
    assert.deepEqual(world.prober.health('u1'), {});
  });
});

describe('after a restart of the agent', () => {
  const container = { readinessProbe: probe('ready', { periodSeconds: 10, failureThreshold: 2 }) };

  it('a container stays ready until its probe has failed often enough', async () => {
    const world = proberWorld();
    world.memory.set('web-1', { started: true, ready: true });
    world.answers.set('ready', 1);
    const { health } = show(world, container, { startedAgo: 3600 });
    assert.deepEqual(health(), { started: true, ready: true });
    await world.clock.advance(10_000);
    assert.deepEqual([times(world, 'ready').length, health()?.ready], [1, true]);
    await world.clock.advance(10_000);
    assert.deepEqual([times(world, 'ready').length, health()?.ready], [2, false]);
    assert.deepEqual(world.memory.get('web-1'), { started: true, ready: false });
  });

  it('a probe goes on where its period was', async () => {
    const [before, after] = [proberWorld(), proberWorld()];
    show(before, container);
    await before.clock.advance(100_000);
    await after.clock.advance(3_600_000);
    after.memory.set('web-1', { started: true, ready: true });
    show(after, container, { startedAgo: 3600 });
    await after.clock.advance(100_000);
    const phase = (world: ProberWorld) => Math.round(times(world, 'ready').at(-1)! * 1000) % 10_000;
    assert.equal(phase(after), phase(before));
  });

  it('a container that had started is not asked for its startup again', async () => {
    const world = proberWorld();
    world.memory.set('web-1', { started: true, ready: true });
    world.answers.set('start', 1);
    const { health } = show(world, { ...container, startupProbe: probe('start') }, { startedAgo: 3600 });
    await world.clock.advance(60_000);
    assert.deepEqual([times(world, 'start'), health()], [[], { started: true, ready: true }]);
  });

  it('a container nobody remembers is looked at within a second', async () => {
    const world = proberWorld();
    const { health } = show(world, container, { startedAgo: 3600 });
    await world.clock.advance(1000);
    assert.equal(health()?.ready, true);
  });
});

describe('what is probed', () => {
  it('sidecars, but neither init containers nor ones whose postStart hook still runs', async () => {
    const world = proberWorld();
    const pod = probedPod({
      initContainers: [
        web({ name: 'side', restartPolicy: 'Always', livenessProbe: probe('side', { failureThreshold: 1 }) }),
        web({ name: 'init' }),
      ],
      containers: [
        web({ readinessProbe: probe('web') }),
        web({
          name: 'late',
          readinessProbe: probe('late'),
          lifecycle: { postStart: { exec: { command: ['hook'] } } },
        }),
      ],
    });
    world.answers.set('side', 1);
    const observed = observedPod(...['side', 'web', 'late'].map((name) => runningInstance(name, epoch)));
    const update = { pod, observed, terminating: false };
    world.prober.update({ ...update, hookPending: () => true });
    await world.clock.advance(10_000);
    assert.deepEqual(new Set(world.runs.map(({ command }) => command)), new Set(['side', 'web']));
    assert.deepEqual(world.events, [
      'Warning Unhealthy spec.initContainers{side}: Liveness probe failed: says 1',
    ]);
    world.prober.update({ ...update, hookPending: () => false });
    await world.clock.advance(0);
    assert.equal(world.prober.health('u1')['late-1']?.ready, true);
  });

  it('nothing in a pod without probes', () => {
    const world = proberWorld();
    show(world, {});
    assert.deepEqual([world.prober.health('u1'), world.clock.nextTimer()], [{}, undefined]);
  });
});

describe('times below a second', () => {
  const container = { livenessProbe: probe('live', { periodSeconds: 10, failureThreshold: 3 }) };

  it('count to the millisecond, and events do not flood', async () => {
    const world = proberWorld();
    world.answers.set('live', async () => (world.clock.now() - epoch > 5000 ? 1 : 0));
    const text =
      '{"web":{"livenessProbe":1,"liveness":{"periodMilliseconds":200,"timeoutMilliseconds":100}}}';
    const { health } = show(world, container, { annotations: { [timingAnnotation]: text } });
    await world.clock.advance(5000);
    assert.deepEqual(new Set(gaps(times(world, 'live'))), new Set([0.2]));
    await world.clock.advance(600);
    assert.equal(health()?.failed?.probe, 'liveness');
    assert.deepEqual(world.events, [
      `Warning InvalidProbeTiming : Annotation ${timingAnnotation} has no effect where it is wrong: "web"."livenessProbe": must be one of startup, liveness, readiness`,
      'Warning Unhealthy spec.containers{web}: Liveness probe failed: says 1',
    ]);
  });

  it('can be changed while the container runs; a mistake is told once', async () => {
    const world = proberWorld();
    const { again } = show(world, container, { annotations: { [timingAnnotation]: '{' } });
    await world.clock.advance(20_000);
    const retimed = probedPod({
      containers: [web(container)],
      annotations: { [timingAnnotation]: '{"web":{"liveness":{"periodMilliseconds":500}}}' },
    });
    again({});
    again({ pod: retimed });
    const before = world.runs.length;
    await world.clock.advance(10_000);
    assert.equal(world.runs.length - before, 20);
    assert.equal(world.events.length, 1);
  });
});

describe('a thousand probes', () => {
  /** Counts what is asked of the clock. */
  class CountingClock extends VirtualClock {
    timers = 0;
    waiting = 0;
    override after(ms: number, callback: () => void): () => void {
      this.timers++;
      this.waiting++;
      let open = true;
      const close = () => {
        if (open) this.waiting--;
        open = false;
      };
      const cancel = super.after(ms, () => {
        close();
        callback();
      });
      return () => {
        close();
        cancel();
      };
    }
  }

  it('wait on one timer, run evenly spread, and cost two timers a run at most', async () => {
    const clock = new CountingClock(epoch);
    const perSecond = new Map<number, number>();
    let runs = 0;
    const world = proberWorld({
      clock,
      exec: {
        async execSync() {
          runs++;
          const second = Math.floor((clock.now() - epoch) / 1000);
          perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
          return { exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
        },
      },
    });
    const names = Array.from({ length: 1000 }, (_, index) => `c${index}`);
    const update = {
      pod: probedPod({ containers: names.map((name) => web({ name, livenessProbe: probe('live') })) }),
      observed: observedPod(...names.map((name) => runningInstance(name, epoch))),
      terminating: false,
    };
    world.prober.update(update);
    assert.equal(clock.waiting, 1);
    assert.ok(clock.timers < 30, `${clock.timers} timers to begin with`);
    await clock.advance(30_000);
    assert.ok(runs >= 2000 && runs <= 3000, `${runs} runs`);
    assert.ok(clock.timers <= 2 * runs + 30, `${clock.timers} timers for ${runs} runs`);
    assert.equal(clock.waiting, 1);
    const busiest = Math.max(...perSecond.values());
    assert.ok(busiest < 300, `${busiest} probes in one second`);
    const { timers } = clock;
    world.prober.update(update);
    assert.equal(clock.timers, timers, 'nothing new costs no timer');
  });
});

it('a pod of the host’s network is probed where the node is now', async () => {
  const hostIps = ['127.0.0.2'];
  const world = proberWorld({ hostIps });
  const pod = probedPod({
    containers: [web({ readinessProbe: { tcpSocket: { port: 1 }, periodSeconds: 1, failureThreshold: 1 } })],
  });
  const { containers } = observedPod(runningInstance('web', world.clock.now() - 60_000));
  const observed = { containers, sandboxes: [{ id: 's1', ips: [], hostNetwork: true }] };
  const failure = (ip: string) =>
    world.events.find((event) => event.includes(`dial tcp ${ip}:1: connect: connection refused`));
  const failedAt = async (ip: string) => {
    // A real socket is refused, which takes real time.
    for (let turn = 0; turn < 500 && !failure(ip); turn++) {
      await world.clock.advance(100);
      await new Promise(setImmediate);
    }
    assert.ok(failure(ip), world.events.join());
  };
  world.prober.update({ pod, observed, terminating: false });
  await failedAt('127.0.0.2');
  assert.equal(failure('127.0.0.3'), undefined);
  hostIps[0] = '127.0.0.3';
  world.prober.update({ pod, observed, terminating: false });
  await failedAt('127.0.0.3');
  world.prober.close();
});
