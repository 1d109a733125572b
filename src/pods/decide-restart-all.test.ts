import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container } from '../kubernetes/types.ts';
import { PodModel, testPod } from './fixtures/pod-model.ts';
import { podStatus } from './status/pod-status.ts';

const worker: Container = {
  name: 'worker',
  image: 'w',
  restartPolicy: 'Never',
  restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }],
};

function running(): PodModel {
  const model = new PodModel(
    testPod({
      restartPolicy: 'Never',
      initContainers: [{ name: 'setup', image: 's' }],
      containers: [worker, { name: 'web', image: 'i' }],
    }),
  );
  model.settle();
  model.exit('setup', 0);
  model.settle();
  model.done.length = 0;
  return model;
}

const steps = (model: PodModel) =>
  model.done.flatMap((action) => ('container' in action ? [`${action.kind} ${action.container}`] : []));

describe('RestartAllContainers', () => {
  it('clears the pod, the cause last, and starts it over in its sandbox', () => {
    const model = running();
    model.exit('worker', 42);
    model.settle();
    const removals = steps(model).filter((step) => step.startsWith('remove'));
    assert.equal(removals.at(-1), 'remove-container worker');
    assert.equal(model.newest('setup')?.state, 'Running');
    model.exit('setup', 0);
    model.settle();
    assert.equal(model.sandboxes.length, 1);
    assert.deepEqual(
      model.containers.map(({ name, state, attempt }) => [name, state, attempt]),
      [
        ['setup', 'Exited', 1],
        ['worker', 'Running', 1],
        ['web', 'Running', 1],
      ],
    );
  });

  it('goes on after the agent was killed at any step', () => {
    for (let cut = 1; cut < 8; cut++) {
      const model = running();
      model.exit('worker', 42);
      for (let i = 0; i < cut; i++) model.step();
      model.memory = { ...model.memory, nextAttempts: { setup: 1, worker: 1, web: 1 } };
      model.settle();
      if (model.newest('setup')?.state === 'Running') model.exit('setup', 0);
      model.settle();
      assert.deepEqual(
        model.containers.map(({ attempt }) => attempt),
        [1, 1, 1],
        `cut after ${cut} steps`,
      );
    }
  });

  it('waits longer each time', () => {
    const model = running();
    for (let i = 0; i < 2; i++) {
      model.exit('worker', 42);
      model.settle();
      if (i === 0) model.exit('setup', 0);
      model.settle();
    }
    assert.equal(model.newest('worker')?.state, 'Exited');
    assert.equal(model.plan().wakeAt, model.newest('worker')!.finishedAt! + 10_000);
  });

  it('is told in the status while it goes on', () => {
    const model = running();
    model.exit('worker', 42);
    const view = model.view();
    const input = { view, plan: model.plan(), previous: undefined, runtimeName: 'containerd', hostIps: [] };
    const status = podStatus(input);
    const condition = status.conditions?.find(({ type }) => type === 'AllContainersRestarting');
    assert.deepEqual([condition?.status, condition?.reason], ['True', 'RestartAllContainersStarted']);
  });

  it('does nothing of the kind for other exits', () => {
    const model = running();
    model.exit('worker', 1);
    model.settle();
    assert.deepEqual(steps(model), []);
  });
});
