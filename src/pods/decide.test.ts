import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decide } from './decide.ts';
import { PodModel, testPod } from './fixtures/pod-model.ts';
import type { PodView } from './pod-view.ts';

const kinds = (model: PodModel) => model.done.map((action) => action.kind);
const started = (model: PodModel) =>
  model.done.flatMap((action) => (action.kind === 'start-container' ? [action.container] : []));

function running(spec: Parameters<typeof testPod>[0] = {}): PodModel {
  const model = new PodModel(testPod(spec));
  model.settle();
  model.done.length = 0;
  return model;
}

describe('a pod on its way up', () => {
  it('fetches images while directories, volumes and sandbox are made', () => {
    const model = new PodModel();
    assert.deepEqual(
      model.plan().actions.map(({ kind }) => kind),
      ['write-record', 'prepare-pod', 'ensure-image'],
    );
    model.settle();
    assert.deepEqual(kinds(model), [
      'write-record',
      'prepare-pod',
      'ensure-image',
      'set-up-volumes',
      'create-sandbox',
      'create-container',
      'start-container',
    ]);
  });

  it('runs init containers one by one before the main containers', () => {
    const model = new PodModel(
      testPod({
        initContainers: [
          { name: 'one', image: 'i' },
          { name: 'two', image: 'i' },
        ],
      }),
    );
    model.settle();
    assert.deepEqual(started(model), ['one']);
    model.exit('one', 0);
    model.settle();
    assert.deepEqual(started(model), ['one', 'two']);
    model.exit('two', 0);
    model.settle();
    assert.deepEqual(started(model), ['one', 'two', 'web']);
  });

  it('goes on behind a sidecar once it has started', () => {
    const model = new PodModel(
      testPod({ initContainers: [{ name: 'proxy', image: 'p', restartPolicy: 'Always', startupProbe: {} }] }),
    );
    model.settle();
    assert.deepEqual(started(model), ['proxy']);
    model.health = { [model.newest('proxy')!.id]: { started: true, ready: true } };
    model.settle();
    assert.deepEqual(started(model), ['proxy', 'web']);
  });

  it('waits for the network unless the pod is on the host network', () => {
    const model = new PodModel();
    model.networkNotReady = 'cni plugin not initialized';
    model.settle();
    const attempts = () => kinds(model).filter((kind) => kind === 'await-network').length;
    assert.deepEqual([kinds(model).includes('create-sandbox'), attempts()], [false, 1]);
    for (const expected of [2, 3]) {
      model.now = model.plan().wakeAt!;
      model.settle();
      assert.equal(attempts(), expected);
    }
    model.networkNotReady = undefined;
    model.settle();
    assert.deepEqual(started(model), ['web'], 'nothing is waited for once the network is there');
    assert.deepEqual(model.memory.failures, {});
    const host = new PodModel(testPod({ hostNetwork: true }));
    host.networkNotReady = 'cni plugin not initialized';
    host.settle();
    assert.deepEqual(started(host), ['web']);
  });

  it('starts a container that an earlier agent made and did not start, as the same instance', () => {
    const model = new PodModel();
    while (!kinds(model).includes('create-container')) model.step();
    model.restartAgent();
    model.settle();
    assert.equal(model.containers.length, 1);
    assert.equal(model.newest('web')?.state, 'Running');
    assert.equal(model.newest('web')?.attempt, 0);
  });

  it('holds the main containers back while the postStart hook before them runs', () => {
    const hook = { postStart: { exec: { command: ['true'] } } };
    const model = new PodModel(
      testPod({
        containers: [
          { name: 'a', image: 'i', lifecycle: hook },
          { name: 'b', image: 'i' },
        ],
      }),
    );
    while (!model.newest('b')) model.step();
    const plan = model.view(['container/a']);
    assert.equal(decidedStarts(plan).includes('b'), false);
  });

  it('starts the container with the hook first even when both are made together', () => {
    const hook = { postStart: { exec: { command: ['true'] } } };
    const model = new PodModel(
      testPod({
        containers: [
          { name: 'a', image: 'i', lifecycle: hook },
          { name: 'b', image: 'i' },
        ],
      }),
    );
    while (!model.newest('a') || !model.newest('b')) model.step();
    assert.deepEqual(decidedStarts(model.view()), ['a']);
    // Its image may come after the other's; only one that never comes lets the others pass.
    const view = model.view();
    const observed = {
      ...view.observed,
      containers: view.observed.containers.filter(({ name }) => name !== 'a'),
    };
    assert.deepEqual(decidedStarts({ ...view, observed }), []);
    const failure = { reason: 'ErrImagePull', message: 'no', count: 1, retryAt: view.now + 10_000 };
    const memory = { ...view.memory, images: {}, failures: { 'ensure-image:image/a': failure } };
    assert.deepEqual(decidedStarts({ ...view, observed, memory }), ['b']);
  });
});

function decidedStarts(view: PodView): string[] {
  return decide(view).actions.flatMap((action) =>
    action.kind === 'start-container' ? [action.container] : [],
  );
}

describe('a container that ends', () => {
  it('restarts at once the first time, then after 10 s, 20 s, 40 s from its end', () => {
    const model = running();
    const delays: number[] = [];
    for (let i = 0; i < 4; i++) {
      model.exit('web', 1);
      const ended = model.now;
      const plan = model.settle();
      if (model.newest('web')?.state !== 'Running') {
        assert.equal(plan.waiting['web']?.reason, 'CrashLoopBackOff');
        model.now = plan.wakeAt!;
        model.settle();
      }
      assert.equal(model.newest('web')?.state, 'Running');
      delays.push(Math.round((model.newest('web')!.createdAt - ended) / 1000));
    }
    assert.deepEqual(delays, [0, 10, 20, 40]);
  });

  it('keeps its back-off when the agent is restarted', () => {
    const model = running();
    model.exit('web', 1);
    model.settle();
    model.exit('web', 1);
    const before = model.settle();
    model.restartAgent();
    const after = model.settle();
    assert.equal(after.waiting['web']?.reason, 'CrashLoopBackOff');
    assert.equal(after.wakeAt, before.wakeAt);
  });

  it('is forgiven after running for twice the longest delay', () => {
    const model = running();
    model.exit('web', 1);
    model.settle();
    model.now += 601_000;
    model.exit('web', 1);
    model.settle();
    assert.equal(model.newest('web')?.state, 'Running');
    assert.equal(model.newest('web')?.attempt, 2);
  });

  it('names the delay, the container and the pod while it waits', () => {
    const model = running();
    model.exit('web', 1);
    model.settle();
    model.exit('web', 1);
    assert.equal(
      model.settle().waiting['web']?.message,
      'back-off 10s restarting failed container=web pod=web-node_default(uid-1)',
    );
  });

  it('keeps one dead instance of each container', () => {
    const model = running();
    for (let i = 0; i < 4; i++) {
      model.exit('web', 1);
      model.now += 400_000;
      model.settle();
    }
    assert.deepEqual(
      model.containers.map(({ state, attempt }) => [state, attempt]),
      [
        ['Exited', 3],
        ['Running', 4],
      ],
    );
  });

  for (const [policy, exitCode, phase] of [
    ['Never', 0, 'Succeeded'],
    ['Never', 3, 'Failed'],
    ['OnFailure', 0, 'Succeeded'],
  ] as const) {
    it(`ends the pod as ${phase} with policy ${policy} and exit code ${exitCode}`, () => {
      const model = running({ restartPolicy: policy });
      model.exit('web', exitCode);
      model.settle();
      assert.equal(model.memory.terminal?.phase, phase);
      assert.deepEqual(kinds(model).sort(), ['stop-sandbox', 'tear-down', 'write-record']);
      assert.equal(model.containers.length, 1, 'the dead container stays for its logs');
    });
  }

  it('stops sidecars when the main containers are done, without counting their exit code', () => {
    const model = running({
      restartPolicy: 'Never',
      initContainers: [{ name: 'proxy', image: 'p', restartPolicy: 'Always' }],
    });
    model.exit('web', 0);
    model.settle();
    assert.equal(model.memory.terminal?.phase, 'Succeeded');
    assert.equal(model.newest('proxy')?.state, 'Exited');
  });

  it('fails the pod when an init container fails for good', () => {
    const model = running({ restartPolicy: 'Never', initContainers: [{ name: 'setup', image: 'i' }] });
    model.exit('setup', 1);
    model.settle();
    assert.equal(model.memory.terminal?.phase, 'Failed');
  });
});

describe('a pod whose sandbox is lost', () => {
  it('gets a new one and runs everything again, init containers too', () => {
    const model = running({ initContainers: [{ name: 'setup', image: 'i' }] });
    model.exit('setup', 0);
    model.settle();
    model.done.length = 0;
    model.reboot();
    model.settle();
    model.exit('setup', 0);
    model.settle();
    assert.deepEqual(started(model), ['setup', 'web']);
    assert.equal(model.newest('web')?.attempt, 1);
    assert.equal(model.sandboxes.at(-1)?.attempt, 1);
  });

  it('is not made again once it has finished', () => {
    const model = running({ restartPolicy: 'Never' });
    model.exit('web', 0);
    model.settle();
    model.restartAgent();
    model.reboot();
    model.done.length = 0;
    model.settle();
    assert.equal(kinds(model).includes('create-sandbox'), false);
    assert.equal(model.memory.terminal?.phase, 'Succeeded');
  });

  it('fails with policy Never', () => {
    const model = running({ restartPolicy: 'Never' });
    model.reboot();
    model.settle();
    assert.equal(model.memory.terminal?.phase, 'Failed');
  });
});

describe('a pod whose time is up', () => {
  it('is stopped and fails with DeadlineExceeded', () => {
    const model = running({ activeDeadlineSeconds: 60 });
    assert.equal(model.plan().wakeAt, model.memory.startTime! + 60_000);
    model.now = model.memory.startTime! + 60_000;
    model.settle();
    assert.equal(model.memory.terminal?.reason, 'DeadlineExceeded');
    assert.equal(model.newest('web')?.state, 'Exited');
  });
});

describe('a pod that is no longer wanted', () => {
  const sidecars = {
    initContainers: [
      { name: 'first', image: 'p', restartPolicy: 'Always' },
      { name: 'second', image: 'p', restartPolicy: 'Always' },
    ],
  };

  it('stops main containers, then sidecars in reverse order, then the rest, and leaves nothing', () => {
    const model = running(sidecars);
    model.intent = { kind: 'terminate', cause: 'deleted', since: model.now, graceSeconds: 30 };
    const plan = model.settle();
    assert.equal(plan.finished, true);
    assert.deepEqual(
      model.done.map((action) =>
        'container' in action ? `${action.kind} ${action.container}` : action.kind,
      ),
      [
        'stop-container web',
        'stop-container second',
        'stop-container first',
        'stop-sandbox',
        'tear-down',
        'remove-sandbox',
        'erase',
      ],
    );
    assert.deepEqual([model.sandboxes, model.containers], [[], []]);
  });

  it('gives later containers what is left of the grace period, and never less than 2 s', () => {
    const model = running(sidecars);
    model.intent = { kind: 'terminate', cause: 'deleted', since: model.now, graceSeconds: 30 };
    model.step();
    model.now += 20_000;
    const [second] = model.plan().actions;
    assert.equal(second?.kind === 'stop-container' && second.graceSeconds, 10);
    model.now += 20_000;
    const [late] = model.plan().actions;
    assert.equal(late?.kind === 'stop-container' && late.graceSeconds, 2);
  });

  it('waits for what is being made before it takes down the sandbox', () => {
    const model = running();
    model.exit('web', 0);
    model.intent = { kind: 'terminate', cause: 'deleted', since: model.now, graceSeconds: 30 };
    assert.deepEqual(
      model.plan().actions.map(({ kind }) => kind),
      ['stop-sandbox'],
    );
    assert.deepEqual(decide(model.view(['container/web'])).actions, []);
  });
});

describe('a container whose definition changes', () => {
  it('is stopped and made anew without back-off', () => {
    const model = running();
    model.pod = testPod({ containers: [{ name: 'web', image: 'web:2' }] });
    model.settle();
    assert.deepEqual(kinds(model), ['stop-container', 'ensure-image', 'create-container', 'start-container']);
    assert.equal(model.newest('web')?.image, 'web:2');
  });
});

describe('an action that fails', () => {
  it('is tried again later and named as the reason to wait', () => {
    const model = new PodModel();
    model.fails = (action) =>
      action.kind === 'create-container'
        ? { ok: false, reason: 'CreateContainerError', message: 'no space left' }
        : undefined;
    const plan = model.settle();
    assert.deepEqual(plan.waiting['web'], { reason: 'CreateContainerError', message: 'no space left' });
    assert.ok(plan.wakeAt! > model.now - 10);
    model.fails = () => undefined;
    model.now = plan.wakeAt!;
    model.settle();
    assert.equal(model.newest('web')?.state, 'Running');
    assert.deepEqual(model.memory.failures, {});
  });

  it('keeps no sibling from running', () => {
    const model = new PodModel(
      testPod({
        containers: [
          { name: 'bad', image: 'x' },
          { name: 'good', image: 'y' },
        ],
      }),
    );
    model.fails = (action) =>
      action.kind === 'ensure-image' && action.container === 'bad'
        ? { ok: false, reason: 'ErrImagePull', message: 'not found' }
        : undefined;
    const plan = model.settle();
    assert.deepEqual(started(model), ['good']);
    assert.equal(plan.waiting['bad']?.reason, 'ErrImagePull');
  });
});
