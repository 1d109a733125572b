/** What holds for every pod and every fate: tried on random ones. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { restartDecision } from '../kubernetes/restart-policy.ts';
import type { PodStatus } from '../kubernetes/types.ts';
import { type Action, actionKey } from './action.ts';
import { PodModel, testPod } from './fixtures/pod-model.ts';
import { type Fate, lives, podSpecs } from './fixtures/random-pods.ts';
import type { Plan } from './plan.ts';
import { podStatus } from './status/pod-status.ts';

const runs = { numRuns: 400 };

/** A pod in its model world, watched at every step. */
class Watched {
  readonly model: PodModel;
  status: PodStatus | undefined;
  #failing: { kind: string; left: number }[] = [];
  #phase: string | undefined;
  /** The world has done what no plan could foresee. */
  #surprised = false;

  constructor(model: PodModel) {
    this.model = model;
    model.fails = (action) => {
      const fault = this.#failing.find(({ kind, left }) => kind === action.kind && left > 0);
      if (!fault) return undefined;
      fault.left--;
      return { ok: false, reason: 'Broken', message: 'it broke' };
    };
  }

  suffer(fate: Fate): void {
    const { model } = this;
    switch (fate.kind) {
      case 'step':
        this.step();
        break;
      case 'settle':
        this.settle();
        break;
      case 'crash-sandbox':
        model.crashSandbox();
        break;
      case 'reboot':
        model.reboot();
        break;
      case 'loss':
        model.loseAll();
        break;
      case 'restart-agent':
        model.restartAgent();
        break;
      case 'exit':
        if (model.newest(fate.container)?.state === 'Running') model.exit(fate.container, fate.code);
        break;
      case 'unknown':
        if (model.newest(fate.container)?.state === 'Running') model.loseTrack(fate.container);
        break;
      case 'late-start':
        this.#surprised = true;
        model.startLate(fate.container);
        break;
      case 'time':
        model.now += fate.ms;
        break;
      case 'fail':
        this.#failing.push({ kind: fate.action, left: fate.times });
        break;
      case 'new-image':
        model.pod = withNewImage(model.pod, fate.container);
        break;
      case 'terminate':
        model.intent = {
          kind: 'terminate',
          cause: 'deleted',
          since: model.now,
          graceSeconds: fate.graceSeconds,
        };
        break;
    }
  }

  step(): Plan {
    const { model } = this;
    const ending = model.intent.kind === 'terminate' || model.memory.terminal !== undefined;
    const plan = model.step();
    if (ending) assert.deepEqual(plan.actions.filter(buildsUp), [], 'a pod that is to end is built up');
    const keys = plan.actions.map(actionKey);
    assert.equal(new Set(keys).size, keys.length, `two actions with one key: ${keys.join(' ')}`);
    if (!this.#surprised) this.#oneInstanceEach();
    this.look();
    return plan;
  }

  settle(): Plan {
    for (let steps = 0; steps < 200; steps++) {
      const plan = this.step();
      if (plan.actions.length === 0 && !plan.terminal) return plan;
    }
    return assert.fail(`no end in sight: ${JSON.stringify(this.model.plan().actions)}`);
  }

  /** The world leaves the pod alone; time goes on as far as the pod waits for it. */
  comeToRest(): Plan {
    this.#failing = [];
    for (let waits = 0; waits < 60; waits++) {
      const plan = this.settle();
      if (plan.wakeAt === undefined) {
        this.#oneInstanceEach();
        return plan;
      }
      this.model.now = Math.max(this.model.now, plan.wakeAt);
    }
    return assert.fail(`it waits for ever: ${JSON.stringify(this.model.plan())}`);
  }

  #oneInstanceEach(): void {
    const alive = this.model.containers.filter(({ state }) => state === 'Running').map(({ name }) => name);
    assert.equal(new Set(alive).size, alive.length, `two instances side by side: ${alive.join(' ')}`);
  }

  /** Reports the status as the worker does, and checks what is true of every status. */
  look(): void {
    const { model } = this;
    const view = model.view();
    const status = podStatus({
      view,
      plan: model.plan(),
      previous: this.status,
      runtimeName: 'containerd',
      hostIps: ['192.0.2.1'],
    });
    const conditions = new Map((status.conditions ?? []).map((condition) => [condition.type, condition]));
    const holds = (type: string) => conditions.get(type)?.status === 'True';
    const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
    if (holds('Ready')) {
      assert.ok(holds('ContainersReady') && holds('Initialized'), 'ready before its parts');
      for (const { name, ready } of status.containerStatuses ?? []) assert.ok(ready, `${name} is not ready`);
    }
    for (const { ready, state, name } of status.containerStatuses ?? [])
      assert.ok(!ready || state?.running, `${name} is ready and does not run`);
    const over = status.phase === 'Succeeded' || status.phase === 'Failed';
    if (over) {
      assert.ok(!holds('Ready') && !holds('ContainersReady'));
      assert.ok(!all.some(({ state }) => state?.running), 'over, and something runs');
      assert.ok(model.memory.terminal, 'over without a verdict');
    }
    for (const { state, lastState } of all) {
      assert.equal(Object.keys(state ?? {}).length, 1, 'a container is in one state');
      assert.ok(Object.keys(lastState ?? {}).every((key) => key === 'terminated'));
    }
    if (this.#phase === 'Succeeded' || this.#phase === 'Failed') {
      assert.equal(status.phase, this.#phase, 'a terminal phase is left');
    }
    // A verdict that was not written down dies with the agent.
    this.#phase = model.record?.terminal ? status.phase : undefined;
    for (const before of this.status?.conditions ?? []) {
      const now = conditions.get(before.type);
      assert.ok(now, `${before.type} has vanished`);
      const changed = now.status !== before.status;
      if (!changed) assert.equal(now.lastTransitionTime, before.lastTransitionTime);
      else assert.ok(now.lastTransitionTime! >= before.lastTransitionTime!, 'time runs backwards');
    }
    this.status = status;
  }
}

function buildsUp({ kind }: Action): boolean {
  return /^(create|start|ensure|prepare|set-up)/.test(kind);
}

function withNewImage(pod: PodModel['pod'], name: string): PodModel['pod'] {
  const change = <T extends { name: string; image?: string }>(container: T): T =>
    container.name === name ? { ...container, image: `${container.image}x` } : container;
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: pod.spec.containers.map(change),
      initContainers: (pod.spec.initContainers ?? []).map(change),
    },
  };
}

describe('any pod, whatever happens to it', () => {
  it('comes to rest in a quiet world, and a second look plans nothing', () => {
    fc.assert(
      fc.property(podSpecs, lives, (spec, life) => {
        const watched = new Watched(new PodModel(testPod(spec)));
        for (const fate of life) watched.suffer(fate);
        const plan = watched.comeToRest();
        assert.deepEqual(watched.model.plan().actions, []);
        assert.deepEqual(plan.actions, []);
      }),
      runs,
    );
  });

  it('leaves nothing when it is no longer wanted', () => {
    fc.assert(
      fc.property(podSpecs, lives, fc.constantFrom(0, 30), (spec, life, graceSeconds) => {
        const watched = new Watched(new PodModel(testPod(spec)));
        for (const fate of life) watched.suffer(fate);
        watched.suffer({ kind: 'terminate', graceSeconds });
        const plan = watched.comeToRest();
        assert.equal(plan.finished, true);
        assert.deepEqual([watched.model.sandboxes, watched.model.containers], [[], []]);
        assert.equal(watched.model.memory.erased, true);
      }),
      runs,
    );
  });

  it('has run every container once the world is quiet, and runs all that may run again', () => {
    fc.assert(
      fc.property(podSpecs, lives, ({ activeDeadlineSeconds: _, ...spec }, life) => {
        const watched = new Watched(new PodModel(testPod({ ...spec, initContainers: [] })));
        for (const fate of life) if (fate.kind !== 'terminate') watched.suffer(fate);
        watched.comeToRest();
        if (watched.model.memory.terminal) return;
        assert.equal(watched.status?.phase, 'Running');
        for (const container of watched.model.pod.spec.containers) {
          const { state, exitCode } = watched.model.newest(container.name) ?? {};
          if (state === 'Running') continue;
          assert.equal(state, 'Exited', container.name);
          assert.equal(restartDecision(container, 'regular', spec, exitCode), 'Stay', container.name);
        }
      }),
      runs,
    );
  });

  it('is not disturbed by a restart of the agent once it rests', () => {
    fc.assert(
      fc.property(podSpecs, lives, (spec, life) => {
        const watched = new Watched(new PodModel(testPod(spec)));
        for (const fate of life) watched.suffer(fate);
        watched.comeToRest();
        const before = JSON.stringify([watched.model.sandboxes, watched.model.containers]);
        watched.suffer({ kind: 'restart-agent' });
        watched.comeToRest();
        assert.equal(JSON.stringify([watched.model.sandboxes, watched.model.containers]), before);
      }),
      runs,
    );
  });
});
