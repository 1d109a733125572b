import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { containerHash } from '../kubernetes/hash.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ObservedContainer, ObservedPod } from '../runtime/observed-pod.ts';
import { silentLogger } from '../telemetry/logger.ts';
import type { Action, ActionKind } from './action.ts';
import { testPod } from './fixtures/pod-model.ts';
import { emptyMemory } from './pod-view.ts';
import { PodWorker } from './pod-worker.ts';
import type { ActionContext, PodReport, PodWorkerPorts } from './pod-worker-ports.ts';
import type { Outcome } from './remember.ts';

interface Call {
  readonly action: Action;
  readonly context: ActionContext;
  readonly end: (outcome: Outcome) => Promise<void>;
}

/** A worker whose world the test plays, action by action. */
class Stage {
  readonly clock = new VirtualClock();
  readonly calls: Call[] = [];
  readonly reports: PodReport[] = [];
  observed: ObservedPod = {
    uid: 'uid-1',
    name: 'web-node',
    namespace: 'default',
    sandboxes: [],
    containers: [],
  };
  finished = 0;
  readonly errors: string[] = [];
  readonly warnings: string[] = [];
  readMessages: PodWorkerPorts['readMessages'] = async () => ({});
  readonly worker: PodWorker;

  constructor(pod: Pod = testPod()) {
    const ports: PodWorkerPorts = {
      clock: this.clock,
      logger: {
        ...silentLogger,
        error: (message) => this.errors.push(message),
        warn: (message, fields) => this.warnings.push(`${message}: ${String(fields?.['action'])}`),
      },
      runtimeName: 'containerd',
      hostIps: [],
      observe: () => this.observed,
      health: () => ({}),
      nodeRules: () => ({ maxRestartBackoffMs: 300_000, deadContainersKept: 1, restartAllContainers: false }),
      readMessages: (...args) => this.readMessages(...args),
      report: (report) => this.reports.push(report),
      execute: (action, context) =>
        new Promise((resolve) => {
          this.calls.push({
            action,
            context,
            end: async (outcome) => {
              this.calls.splice(
                this.calls.findIndex((call) => call.action === action),
                1,
              );
              resolve(outcome);
              await settle();
            },
          });
        }),
    };
    this.worker = new PodWorker({ pod, ports, onFinished: () => this.finished++ });
  }

  async start(): Promise<this> {
    this.worker.wake();
    await settle();
    return this;
  }

  get doing(): ActionKind[] {
    return this.calls.map(({ action }) => action.kind);
  }

  /** The action of this kind that is being carried out. */
  call(kind: ActionKind): Call {
    const call = this.calls.find(({ action }) => action.kind === kind);
    assert.ok(call, `${kind} is not being done, but ${this.doing.join(' ')}`);
    return call;
  }

  ok(kind: ActionKind): Promise<void> {
    const { action, end } = this.call(kind);
    if (action.kind !== 'ensure-image') return end({ ok: true });
    const { container, attempt } = action;
    return end({ ok: true, learned: { image: { container, attempt, ref: 'sha256:1' } } });
  }

  fail(kind: ActionKind): Promise<void> {
    return this.call(kind).end({ ok: false, reason: 'Broken', message: 'it broke' });
  }

  async see(change: Partial<ObservedPod>): Promise<void> {
    this.observed = { ...this.observed, ...change };
    this.worker.wake();
    await settle();
  }

  async run(): Promise<void> {
    for (const kind of ['write-record', 'prepare-pod', 'ensure-image', 'set-up-volumes'] as const)
      await this.ok(kind);
    this.observed = { ...this.observed, sandboxes: [sandbox] };
    await this.ok('create-sandbox');
    this.observed = { ...this.observed, containers: [container('Created')] };
    await this.ok('create-container');
    this.observed = { ...this.observed, containers: [container('Running')] };
    await this.ok('start-container');
  }
}

const sandbox = {
  id: 'sandbox',
  state: 'Ready',
  attempt: 0,
  createdAt: 1,
  ips: ['10.0.0.1'],
  hostNetwork: false,
} as const;

/** Of the container of `testPod`. */
const hash = containerHash({ name: 'web', image: 'web:1' });

function container(
  state: ObservedContainer['state'],
  extra: Partial<ObservedContainer> = {},
): ObservedContainer {
  return {
    id: 'container',
    name: 'web',
    sandboxId: 'sandbox',
    attempt: 0,
    state,
    createdAt: 1,
    image: 'web:1',
    imageId: 'sha256:1',
    hash,
    annotations: {},
    ...(state === 'Exited' ? { exitCode: 1, startedAt: 2, finishedAt: 3 } : {}),
    ...extra,
  };
}

let stage: Stage;
let rejections: unknown[];
const onRejection = (error: unknown) => rejections.push(error);
beforeEach(async () => {
  rejections = [];
  process.on('unhandledRejection', onRejection);
  stage = await new Stage().start();
});
afterEach(() => {
  process.off('unhandledRejection', onRejection);
  assert.deepEqual(rejections, []);
});

describe('a worker', () => {
  it('does side by side what can be done side by side', async () => {
    assert.deepEqual(stage.doing, ['write-record', 'prepare-pod', 'ensure-image']);
    await stage.ok('prepare-pod');
    assert.deepEqual(stage.doing, ['write-record', 'ensure-image', 'set-up-volumes']);
  });

  it('rests without a timer once the pod runs', async () => {
    await stage.run();
    assert.deepEqual(stage.doing, []);
    assert.equal(stage.reports.at(-1)?.status.phase, 'Running');
    assert.equal(stage.clock.nextTimer(), undefined);
  });

  it('gathers any number of wakes into one look', async () => {
    await stage.run();
    const before = stage.reports.length;
    for (let i = 0; i < 50; i++) stage.worker.wake();
    await settle();
    assert.equal(stage.reports.length, before + 1);
  });

  it('decides on what is new when reading last words has taken its time', async () => {
    await stage.run();
    let read = () => {};
    stage.readMessages = () => new Promise((resolve) => (read = () => resolve({})));
    await stage.see({ containers: [container('Exited')] });
    // While the words are read, somebody else brings the container back.
    stage.observed = {
      ...stage.observed,
      containers: [container('Running', { id: 'next', attempt: 1, createdAt: 9 }), container('Exited')],
    };
    read();
    await settle();
    assert.deepEqual(stage.doing, []);
  });

  it('is not held up by last words that cannot be read', async () => {
    await stage.run();
    stage.readMessages = () => Promise.reject(new Error('input/output error'));
    await stage.see({ containers: [container('Exited')] });
    assert.deepEqual(stage.doing, ['ensure-image']);
  });

  it('survives an executor that throws, and tries again', async () => {
    const { action } = stage.call('prepare-pod');
    await stage.call('prepare-pod').end(Promise.reject(new Error('a bug')) as unknown as Outcome);
    assert.equal(stage.worker.memory.failures['prepare-pod:pod']?.reason, 'InternalError');
    assert.deepEqual(stage.errors, ['An action for a pod broke']);
    await stage.clock.advance(1000);
    assert.deepEqual(stage.call('prepare-pod').action, action);
  });

  it('slows down what succeeds again and again without any effect', async () => {
    await stage.run();
    const changed = testPod({ containers: [{ name: 'web', image: 'web:2' }] });
    stage.worker.update(changed);
    await settle();
    await stage.ok('write-record');
    // The runtime says that it has stopped the container, and shows it running all the same.
    await stage.ok('stop-container');
    await stage.ok('stop-container');
    assert.deepEqual(stage.doing, []);
    for (const waits of [1000, 2000, 4000]) {
      await stage.clock.advance(waits - 1);
      assert.deepEqual(stage.doing, []);
      await stage.clock.advance(1);
      await stage.ok('stop-container');
    }
    await stage.see({ containers: [container('Exited')] });
    assert.deepEqual(stage.doing, ['ensure-image']);
    assert.deepEqual(stage.worker.memory.failures, {});
  });

  it('takes the same action for a new need at once', async () => {
    await stage.run();
    for (const image of ['web:2', 'web:3', 'web:4']) {
      stage.worker.update(testPod({ containers: [{ name: 'web', image }] }));
      await settle();
      await stage.ok('write-record');
      assert.equal(stage.worker.memory.recorded, true, image);
    }
    assert.equal(stage.worker.memory.failures['write-record:record'], undefined);
  });

  it('writes the record again when the pod has changed while it was written', async () => {
    stage.worker.update(testPod({ terminationGracePeriodSeconds: 7 }));
    await settle();
    await stage.ok('write-record');
    assert.equal(stage.worker.memory.recorded, false);
    assert.equal(stage.call('write-record').context.pod.spec.terminationGracePeriodSeconds, 7);
    await stage.ok('write-record');
    assert.equal(stage.worker.memory.recorded, true);
  });

  it('writes the record again when the pod has come to its end while it was written', async () => {
    stage = await new Stage(testPod({ restartPolicy: 'Never' })).start();
    const writing = stage.call('write-record');
    await stage.see({ sandboxes: [sandbox], containers: [container('Exited', { exitCode: 0 })] });
    assert.equal(stage.worker.memory.terminal?.phase, 'Succeeded');
    await writing.end({ ok: true });
    assert.equal(stage.worker.memory.recorded, false);
    assert.equal(stage.call('write-record').context.memory.terminal?.phase, 'Succeeded');
  });
});

describe('a worker whose pod is to end', () => {
  it('cuts off what builds up and does not count that as a failure', async () => {
    const image = stage.call('ensure-image');
    stage.worker.terminate({ cause: 'deleted', graceSeconds: 30 });
    await settle();
    assert.equal(image.context.signal.aborted, true);
    assert.equal(stage.call('write-record').context.signal.aborted, false);
    await image.end(Promise.reject(image.context.signal.reason) as unknown as Outcome);
    assert.deepEqual(stage.worker.memory.failures, {});
    assert.deepEqual(stage.errors, []);
  });

  it('says that a stop takes long only when the container has been given its grace period', async () => {
    await stage.run();
    stage.worker.terminate({ cause: 'deleted', graceSeconds: 30 });
    await settle();
    stage.call('stop-container');
    await stage.clock.advance(59_999);
    assert.deepEqual(stage.warnings, []);
    await stage.clock.advance(1);
    assert.deepEqual(stage.warnings, ['An action for a pod takes long: stop-container']);
  });

  it('says of anything else that it takes long after half a minute', async () => {
    stage.call('ensure-image');
    await stage.clock.advance(30_000);
    assert.ok(
      stage.warnings.includes('An action for a pod takes long: ensure-image'),
      String(stage.warnings),
    );
  });

  it('stops again at once when the grace period is cut short, and never lengthens it', async () => {
    await stage.run();
    stage.worker.terminate({ cause: 'deleted', graceSeconds: 30 });
    await settle();
    const patient = stage.call('stop-container');
    stage.worker.terminate({ cause: 'deleted', graceSeconds: 60 });
    await settle();
    assert.equal(patient.context.signal.aborted, false);
    stage.worker.terminate({ cause: 'deleted', graceSeconds: 5 });
    await settle();
    assert.equal(patient.context.signal.aborted, true);
    await stage.fail('stop-container');
    const { action } = stage.call('stop-container');
    assert.equal(action.kind === 'stop-container' && action.graceSeconds, 5);
  });

  it('cuts off a more patient stop that is under way', async () => {
    await stage.run();
    stage.worker.update(testPod({ containers: [{ name: 'web', image: 'web:2' }] }));
    await settle();
    const restart = stage.call('stop-container');
    stage.worker.terminate({ cause: 'deleted', graceSeconds: 5 });
    assert.equal(restart.context.signal.aborted, true);
  });

  it('says once that nothing is left, and holds nothing afterwards', async () => {
    await stage.run();
    stage.worker.terminate({ cause: 'deleted', graceSeconds: 30 });
    await settle();
    stage.observed = { ...stage.observed, containers: [container('Exited')] };
    await stage.ok('stop-container');
    await stage.ok('stop-sandbox');
    await stage.ok('tear-down');
    stage.observed = { ...stage.observed, containers: [], sandboxes: [] };
    await stage.ok('remove-sandbox');
    assert.equal(stage.finished, 0);
    await stage.ok('erase');
    assert.equal(stage.finished, 1);
    stage.worker.wake();
    await settle();
    assert.equal(stage.finished, 1);
    assert.equal(stage.clock.nextTimer(), undefined);
  });
});

describe('an eviction', () => {
  const verdict = { phase: 'Failed', reason: 'Evicted', message: 'too much', graceSeconds: 1 } as const;

  it('stops the containers within its own grace period and keeps the pod as failed', async () => {
    await stage.run();
    assert.equal(stage.worker.evict(verdict), true);
    await settle();
    const { action } = stage.call('stop-container');
    // The least that any container gets.
    assert.equal(action.kind === 'stop-container' && action.graceSeconds, 2);
    assert.equal(stage.reports.at(-1)?.status.phase, 'Running');
    stage.observed = { ...stage.observed, containers: [container('Exited')] };
    await stage.ok('stop-container');
    const { phase, reason, message } = stage.reports.at(-1)!.status;
    assert.deepEqual({ phase, reason, message }, { phase: 'Failed', reason: 'Evicted', message: 'too much' });
    assert.equal(stage.finished, 0);
  });

  it('happens once, and not to a pod that is on its way out', async () => {
    await stage.run();
    assert.equal(stage.worker.evict(verdict), true);
    assert.equal(stage.worker.evict({ ...verdict, message: 'other' }), false);
    assert.equal(stage.worker.memory.terminal?.message, 'too much');
    const other = await new Stage().start();
    other.worker.terminate({ cause: 'deleted', graceSeconds: 30 });
    assert.equal(other.worker.evict(verdict), false);
    assert.equal(other.worker.memory.terminal, undefined);
  });

  it('of a pod that is being made gives up what builds it', async () => {
    const image = stage.call('ensure-image');
    stage.worker.evict(verdict);
    assert.equal(image.context.signal.aborted, true);
  });
});

describe('a worker that is let go of', () => {
  it('cuts off everything, decides nothing more, and leaves no timer', async () => {
    const calls = [...stage.calls];
    stage.worker.close();
    assert.ok(calls.every(({ context }) => context.signal.aborted));
    for (const kind of ['write-record', 'prepare-pod', 'ensure-image'] as const) await stage.fail(kind);
    assert.deepEqual(stage.doing, []);
    assert.equal(stage.clock.nextTimer(), undefined);
  });

  it('in the middle of reading last words does not wake up again', async () => {
    await stage.run();
    let refuse = () => {};
    stage.readMessages = () => new Promise((_, reject) => (refuse = () => reject(new Error('gone'))));
    await stage.see({ containers: [container('Exited')] });
    const reports = stage.reports.length;
    stage.worker.close();
    refuse();
    await settle();
    assert.equal(stage.reports.length, reports);
    assert.equal(stage.clock.nextTimer(), undefined);
  });
});

describe('a worker that follows an earlier agent', () => {
  it('takes hooks of running containers for done and keeps what was remembered', () => {
    const observed: ObservedPod = { ...stage.observed, containers: [container('Running')] };
    const worker = new PodWorker({
      pod: testPod(),
      ports: { clock: stage.clock, observe: () => observed } as unknown as PodWorkerPorts,
      remembered: { startTime: 5, recorded: true },
      onFinished: () => {},
    });
    assert.deepEqual(worker.memory, {
      ...emptyMemory,
      startTime: 5,
      recorded: true,
      hooksDone: { container: true },
    });
  });
});

describe('objects that the pod refers to have changed', () => {
  it('what failed for their sake is tried again at once', async () => {
    const stage = await new Stage().start();
    await stage.ok('prepare-pod');
    await stage.fail('set-up-volumes');
    assert.ok(!stage.doing.includes('set-up-volumes'));
    stage.worker.retryObjects();
    await settle();
    assert.ok(stage.doing.includes('set-up-volumes'));
  });

  it('a failure of what had begun before says nothing', async () => {
    const stage = await new Stage().start();
    await stage.ok('prepare-pod');
    stage.worker.retryObjects();
    await stage.fail('set-up-volumes');
    assert.ok(stage.doing.includes('set-up-volumes'));
    await stage.fail('set-up-volumes');
    assert.ok(!stage.doing.includes('set-up-volumes'));
  });
});
