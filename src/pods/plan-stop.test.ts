import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodSpec } from '../kubernetes/types.ts';
import { PodModel, testPod } from './fixtures/pod-model.ts';

const preStop = { preStop: { exec: { command: ['true'] } } };

function ending(spec: Partial<PodSpec>, graceSeconds = 30): PodModel {
  const model = new PodModel(testPod(spec));
  model.settle();
  model.done.length = 0;
  model.intent = { kind: 'terminate', cause: 'deleted', since: model.now, graceSeconds };
  return model;
}

const steps = (model: PodModel) =>
  model.done.flatMap((action) => ('container' in action ? [`${action.kind} ${action.container}`] : []));

describe('stopping a container with a preStop hook', () => {
  it('runs the hook first and gives the stop what the hook has left', () => {
    const model = ending({ containers: [{ name: 'web', image: 'i', lifecycle: preStop }] });
    const [hook] = model.plan().actions;
    assert.equal(hook?.kind === 'run-pre-stop' && hook.graceSeconds, 30);
    model.step();
    model.now += 12_000;
    const [stop] = model.plan().actions;
    assert.equal(stop?.kind === 'stop-container' && stop.graceSeconds, 18);
  });

  it('leaves the stop two seconds after a hook that used everything up', () => {
    const model = ending({ containers: [{ name: 'web', image: 'i', lifecycle: preStop }] });
    model.step();
    model.now += 60_000;
    const [stop] = model.plan().actions;
    assert.equal(stop?.kind === 'stop-container' && stop.graceSeconds, 2);
  });

  it('skips the hook when there is no grace', () => {
    const model = ending({ containers: [{ name: 'web', image: 'i', lifecycle: preStop }] }, 0);
    model.settle();
    assert.deepEqual(steps(model), ['stop-container web']);
  });

  it('runs the hooks of sidecars at once and stops the sidecars in their turn', () => {
    const model = ending({
      initContainers: [{ name: 'proxy', image: 'i', restartPolicy: 'Always', lifecycle: preStop }],
    });
    model.settle();
    assert.deepEqual(steps(model), ['run-pre-stop proxy', 'stop-container web', 'stop-container proxy']);
  });

  it('finds the hook of a container whose spec is lost on the container itself', () => {
    const model = ending({});
    model.pod = testPod({ containers: [{ name: 'web' }] });
    model.containers = model.containers.map((container) => ({
      ...container,
      annotations: { 'io.kubernetes.container.preStopHandler': JSON.stringify(preStop.preStop) },
    }));
    assert.equal(model.plan().actions[0]?.kind, 'run-pre-stop');
  });

  it('counts the hook against a container that is restarted while its pod runs', () => {
    const model = new PodModel(testPod({ containers: [{ name: 'web', image: 'i', lifecycle: preStop }] }));
    model.settle();
    model.health = {
      [model.newest('web')!.id]: {
        started: true,
        ready: false,
        failed: { probe: 'liveness', graceSeconds: 10 },
      },
    };
    model.step();
    model.now += 4000;
    const stop = model.plan().actions.find(({ kind }) => kind === 'stop-container');
    assert.equal(stop?.kind === 'stop-container' && stop.graceSeconds, 6);
  });
});
