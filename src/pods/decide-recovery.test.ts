/** Decisions about states that only accidents lead to: half-done work, lost answers, things that keep breaking. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decide } from './decide.ts';
import { PodModel, testPod } from './fixtures/pod-model.ts';

const kinds = (model: PodModel) => model.done.map(({ kind }) => kind);

function running(spec: Parameters<typeof testPod>[0] = {}): PodModel {
  const model = new PodModel(testPod(spec));
  model.settle();
  model.done.length = 0;
  return model;
}

/** A pod whose container was made and cannot be started. */
function made(spec: Parameters<typeof testPod>[0] = {}): PodModel {
  const model = new PodModel(testPod(spec));
  model.fails = ({ kind }) =>
    kind === 'start-container' ? { ok: false, reason: 'RunContainerError', message: 'no' } : undefined;
  model.settle();
  model.fails = () => undefined;
  model.done.length = 0;
  return model;
}

describe('a container that was made and never started', () => {
  for (const restartPolicy of ['Always', 'OnFailure', 'Never']) {
    it(`is made anew when its sandbox is gone, without back-off: policy ${restartPolicy}`, () => {
      const model = made({ restartPolicy });
      assert.equal(model.newest('web')?.state, 'Created');
      model.reboot();
      model.settle();
      assert.equal(model.newest('web')?.state, 'Running');
      assert.equal(model.newest('web')?.sandboxId, model.sandboxes.at(-1)?.id);
      assert.equal(model.newest('web')?.attempt, 1);
    });
  }

  it('hands its back-off on to the one that takes its place', () => {
    const model = running();
    model.exit('web', 1);
    model.settle();
    model.exit('web', 1);
    const { wakeAt = 0 } = model.settle();
    model.fails = ({ kind }) =>
      kind === 'start-container' ? { ok: false, reason: 'RunContainerError', message: 'no' } : undefined;
    model.now = wakeAt;
    model.settle();
    const before = model.newest('web');
    assert.equal(before?.state, 'Created');
    model.fails = () => undefined;
    model.reboot();
    model.settle();
    assert.deepEqual(model.newest('web')?.annotations, before?.annotations);
  });
});

describe('an instance that runs where none should', () => {
  it('is stopped before another one is made', () => {
    const model = made();
    const former = model.newest('web')!;
    model.crashSandbox();
    while (!kinds(model).includes('create-sandbox')) model.step();
    // The start that was given up comes about after all, in the former sandbox.
    model.containers = [{ ...former, state: 'Running', startedAt: model.now }];
    const [stop] = model.plan().actions.filter((action) => 'containerId' in action);
    assert.deepEqual(
      [stop?.kind, stop && 'containerId' in stop && stop.containerId],
      ['stop-container', former.id],
    );
    assert.equal(
      model.plan().actions.some(({ kind }) => kind === 'create-container'),
      false,
    );
    model.settle();
    assert.deepEqual(model.containers.filter(({ state }) => state === 'Running').length, 1);
  });
});

describe('a container that runs without its postStart hook', () => {
  const lifecycle = { postStart: { exec: { command: ['true'] } } };

  it('is stopped and started over', () => {
    const model = running({ containers: [{ name: 'web', image: 'w', lifecycle }] });
    model.memory = { ...model.memory, hooksDone: {} };
    model.settle();
    assert.equal(kinds(model)[0], 'stop-container');
    assert.equal(model.newest('web')?.state, 'Running');
  });

  it('is left alone while it is being started, and when an earlier agent started it', () => {
    const model = running({ containers: [{ name: 'web', image: 'w', lifecycle }] });
    model.memory = { ...model.memory, hooksDone: {} };
    assert.deepEqual(decide(model.view(['container/web'])).actions, []);
    model.restartAgent();
    model.settle();
    assert.equal(kinds(model).includes('stop-container'), false);
  });
});

describe('a sandbox that keeps breaking', () => {
  it('is replaced at once the first time, then after 1 s, 2 s, 4 s, … 30 s', () => {
    const model = running();
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) {
      model.crashSandbox();
      const broke = model.sandboxes.at(-1)!.createdAt;
      const plan = model.settle();
      if (plan.wakeAt !== undefined) model.now = plan.wakeAt;
      model.settle();
      waits.push(Math.floor((model.sandboxes.at(-1)!.createdAt - broke) / 1000));
    }
    assert.deepEqual(waits, [0, 1, 2, 4, 8, 16, 30, 30]);
    assert.ok(model.sandboxes.length <= 3, 'the broken ones do not pile up');
  });
});

describe('an image that is gone when its container is to be made', () => {
  it('is looked for again, and the status tells of the failure all the while', () => {
    const model = new PodModel();
    let failures = 2;
    model.fails = ({ kind }) =>
      kind === 'create-container' && failures-- > 0
        ? { ok: false, reason: 'CreateContainerError', message: 'image not found' }
        : undefined;
    const ensured = () => kinds(model).filter((kind) => kind === 'ensure-image').length;
    for (const [times, waitsMs] of [
      [1, 1000],
      [2, 2000],
    ] as const) {
      const plan = model.settle();
      assert.equal(plan.waiting['web']?.reason, 'CreateContainerError');
      const failure = model.memory.failures['create-container:container/web'];
      assert.equal(failure?.count, times);
      assert.ok(plan.wakeAt! - model.now <= waitsMs);
      model.now = plan.wakeAt!;
      assert.equal(model.plan().waiting['web']?.reason, 'CreateContainerError');
    }
    model.settle();
    assert.equal(ensured(), 3);
    assert.equal(model.newest('web')?.state, 'Running');
  });
});

describe('a pod of which nothing is left', () => {
  it('is erased only after its record has been written: it would come back', () => {
    const model = running();
    model.intent = { kind: 'terminate', cause: 'deleted', since: model.now, graceSeconds: 30 };
    while (model.sandboxes.length > 0) model.step();
    assert.deepEqual(decide(model.view(['record'])).actions, []);
    assert.deepEqual(
      model.plan().actions.map(({ kind }) => kind),
      ['erase'],
    );
  });
});
