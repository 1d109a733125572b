import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Announcement, announcements } from './announcements.ts';
import { PodModel, testPod } from './fixtures/pod-model.ts';
import type { Plan } from './plan.ts';

/** Reports as the worker does: what it has decided, with the plan before it. */
class Told {
  readonly model: PodModel;
  #previousPlan: Plan | undefined;

  constructor(model: PodModel) {
    this.model = model;
  }

  look(): readonly Announcement[] {
    let plan = this.model.plan();
    if (plan.terminal) {
      this.model.memory = { ...this.model.memory, terminal: plan.terminal, recorded: false };
      plan = this.model.plan();
    }
    const previousPlan = this.#previousPlan;
    this.#previousPlan = plan;
    return announcements({ pod: this.model.pod, status: {}, view: this.model.view(), plan, previousPlan });
  }

  /** Everything told until nothing is left to do. */
  settle(): string[] {
    const told: string[] = [];
    for (let i = 0; i < 60; i++) {
      told.push(...this.look().map(({ type, reason, message }) => `${type} ${reason} ${message}`));
      if (this.model.step().actions.length === 0) return told;
    }
    return assert.fail('no end in sight');
  }
}

describe('what is told of a pod', () => {
  it('is nothing while all goes well', () => {
    assert.deepEqual(new Told(new PodModel()).settle(), []);
  });

  it('is each back-off once, about the container', () => {
    const told = new Told(new PodModel());
    const { model } = told;
    told.settle();
    model.exit('web', 1);
    assert.deepEqual(told.settle(), [], 'the first restart is free');
    for (let round = 0; round < 3; round++) {
      model.exit('web', 1);
      const [first, ...others] = told.look();
      assert.deepEqual(first, {
        object: {
          kind: 'Pod',
          namespace: 'default',
          name: 'web-node',
          uid: 'uid-1',
          fieldPath: 'spec.containers{web}',
        },
        type: 'Warning',
        reason: 'BackOff',
        message: 'Back-off restarting failed container web in pod web-node_default(uid-1)',
      });
      assert.deepEqual([others, told.look(), told.look()], [[], [], []]);
      model.now = model.plan().wakeAt!;
      assert.deepEqual(told.settle(), []);
    }
  });

  it('is once that its time is up, even when the record cannot be written at first', () => {
    const model = new PodModel(testPod({ activeDeadlineSeconds: 1 }));
    const told = new Told(model);
    told.settle();
    model.now += 1000;
    let failures = 2;
    model.fails = ({ kind }) =>
      kind === 'write-record' && failures-- > 0
        ? { ok: false, reason: 'RecordError', message: 'full' }
        : undefined;
    const all: string[] = [];
    for (let i = 0; i < 4; i++) {
      all.push(...told.settle());
      model.now += 10_000;
    }
    assert.deepEqual(all, [
      'Normal DeadlineExceeded Pod was active on the node longer than the specified deadline',
    ]);
  });
});
