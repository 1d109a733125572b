import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodSpec } from '../kubernetes/types.ts';
import { decide } from './decide.ts';
import { PodModel, testPod } from './fixtures/pod-model.ts';
import { activeDeadline, endsByProbe, podEnd } from './pod-end.ts';
import type { TerminalVerdict } from './pod-view.ts';

const two = [
  { name: 'a', image: 'i' },
  { name: 'b', image: 'i' },
];
const rule = (action: string, ...values: number[]) => ({
  restartPolicy: 'Never',
  restartPolicyRules: [{ action, exitCodes: { operator: 'In', values } }],
});

/** Exit codes by container, in the order they end; everything else runs on. */
type Case = readonly [
  what: string,
  spec: Partial<PodSpec>,
  exits: Readonly<Record<string, number>>,
  end: TerminalVerdict['phase'] | undefined,
];

const cases: readonly Case[] = [
  ['a running pod goes on', { restartPolicy: 'Never' }, {}, undefined],
  ['Always goes on whatever happens', { restartPolicy: 'Always' }, { web: 0 }, undefined],
  ['Never and code 0 is a success', { restartPolicy: 'Never' }, { web: 0 }, 'Succeeded'],
  ['Never and another code is a failure', { restartPolicy: 'Never' }, { web: 2 }, 'Failed'],
  ['OnFailure and code 0 is a success', { restartPolicy: 'OnFailure' }, { web: 0 }, 'Succeeded'],
  ['OnFailure and another code goes on', { restartPolicy: 'OnFailure' }, { web: 2 }, undefined],
  ['all have to end', { restartPolicy: 'Never', containers: two }, { a: 0 }, undefined],
  ['all have to succeed', { restartPolicy: 'Never', containers: two }, { a: 0, b: 1 }, 'Failed'],
  ['and then it is a success', { restartPolicy: 'Never', containers: two }, { a: 0, b: 0 }, 'Succeeded'],
  [
    'a policy of the container’s own counts before the pod’s',
    { restartPolicy: 'Always', containers: [{ name: 'web', image: 'i', restartPolicy: 'Never' }] },
    { web: 1 },
    'Failed',
  ],
  [
    'a rule that matches keeps it going',
    { restartPolicy: 'Never', containers: [{ name: 'web', image: 'i', ...rule('Restart', 42) }] },
    { web: 42 },
    undefined,
  ],
  [
    'a rule that does not match leaves it to the policy',
    { restartPolicy: 'Never', containers: [{ name: 'web', image: 'i', ...rule('Restart', 42) }] },
    { web: 41 },
    'Failed',
  ],
  [
    'a sidecar that runs on does not count, nor does how it ended',
    { restartPolicy: 'Never', initContainers: [{ name: 'proxy', image: 'p', restartPolicy: 'Always' }] },
    { web: 0 },
    'Succeeded',
  ],
  [
    'an init container that fails for good ends the pod',
    { restartPolicy: 'Never', initContainers: [{ name: 'setup', image: 'i' }] },
    { setup: 1 },
    'Failed',
  ],
  [
    'one that may try again does not',
    { restartPolicy: 'OnFailure', initContainers: [{ name: 'setup', image: 'i' }] },
    { setup: 1 },
    undefined,
  ],
];

describe('the end of a pod', () => {
  for (const [what, spec, exits, phase] of cases) {
    it(`${what}: ${phase ?? 'no end'}`, () => {
      const model = new PodModel(testPod(spec));
      model.settle();
      for (const [name, code] of Object.entries(exits)) model.exit(name, code);
      assert.equal(podEnd(model.view())?.phase, phase);
    });
  }

  it('comes with the deadline, in Kubernetes’ own words, and not a moment sooner', () => {
    const model = new PodModel(testPod({ activeDeadlineSeconds: 60 }));
    model.settle();
    const deadline = activeDeadline(model.view());
    assert.equal(deadline, model.memory.startTime! + 60_000);
    model.now = deadline - 1;
    assert.equal(podEnd(model.view()), undefined);
    model.now = deadline;
    assert.deepEqual(podEnd(model.view()), {
      phase: 'Failed',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    });
  });

  it('does not come by the stop of a container for a new image', () => {
    const model = new PodModel(testPod({ restartPolicy: 'Never' }));
    model.settle();
    model.pod = testPod({ restartPolicy: 'Never', containers: [{ name: 'web', image: 'web:2' }] });
    model.exit('web', 143);
    assert.equal(podEnd(model.view()), undefined);
    model.settle();
    assert.equal(model.newest('web')?.state, 'Running');
    assert.equal(model.newest('web')?.image, 'web:2');
  });

  it('is not set by a deadline while the pod has not begun', () => {
    const model = new PodModel(testPod({ activeDeadlineSeconds: 60 }));
    const { startTime: _, ...memory } = model.memory;
    assert.equal(activeDeadline({ ...model.view(), memory }), undefined);
  });
});

describe('a pod whose main container failed its probe for good', () => {
  const spec: Partial<PodSpec> = {
    restartPolicy: 'Never',
    initContainers: [{ name: 'proxy', image: 'p', restartPolicy: 'Always' }],
  };
  const failing = (more: Partial<PodSpec> = {}) => {
    const model = new PodModel(testPod({ ...spec, ...more }));
    model.settle();
    const id = model.newest('web')?.id ?? '';
    model.health = { [id]: { started: true, ready: false, failed: { probe: 'liveness' } } };
    return model;
  };

  it('restarts no sidecar while it stops', () => {
    const model = failing();
    assert.equal(endsByProbe(model.view()), true);
    model.exit('proxy', 1);
    const restarts = decide(model.view(['container/web'])).actions.filter(
      (action) => 'container' in action && action.container === 'proxy' && action.kind !== 'remove-container',
    );
    assert.deepEqual(restarts, []);
  });

  it('goes on when that container, or another one, may run again', () => {
    assert.equal(endsByProbe(failing({ restartPolicy: 'OnFailure' }).view()), false);
    assert.equal(endsByProbe(failing({ containers: [{ name: 'web', image: 'i' }, ...two] }).view()), false);
    const healthy = new PodModel(testPod(spec));
    healthy.settle();
    assert.equal(endsByProbe(healthy.view()), false);
  });
});
