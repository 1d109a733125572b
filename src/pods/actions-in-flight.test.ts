import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import type { Action } from './action.ts';
import { ActionsInFlight, type EndedAction } from './actions-in-flight.ts';
import { testPod } from './fixtures/pod-model.ts';
import { emptyMemory } from './pod-view.ts';
import type { Outcome } from './remember.ts';

const pull: Action = { kind: 'ensure-image', container: 'main', attempt: 0, reason: 'test' };
const prepare: Action = { kind: 'prepare-pod', reason: 'test' };
const given = {
  pod: testPod(),
  memory: { ...emptyMemory, startTime: 0 },
  observed: { uid: 'uid-1', name: 'web', namespace: 'default', sandboxes: [], containers: [] },
  status: undefined,
};

function scene() {
  const clock = new VirtualClock();
  const warnings: string[] = [];
  const ended: EndedAction[] = [];
  const begun: ((outcome: Outcome | Promise<never>) => void)[] = [];
  const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
  const execute = () => new Promise<Outcome>((resolve) => begun.push(resolve));
  const actions = new ActionsInFlight({ clock, logger, execute }, (end) => ended.push(end));
  return { clock, warnings, ended, begun, actions };
}

describe('actions in flight', () => {
  it('take their keys until they end', async () => {
    const { actions, begun, ended } = scene();
    actions.start(pull, given);
    actions.start(prepare, given);
    assert.deepEqual([...actions.keys()], ['image/main', 'pod']);
    begun[0]!({ ok: true });
    await settle();
    assert.deepEqual(actions.actions(), [prepare]);
    assert.deepEqual(
      ended.map(({ action, outcome, overtaken }) => [action, outcome, overtaken]),
      [[pull, { ok: true }, false]],
    );
  });

  it('end with a failure when their executor breaks', async () => {
    const { actions, begun, ended } = scene();
    actions.start(pull, given);
    begun[0]!(Promise.reject(new Error('out of luck')));
    await settle();
    assert.equal(actions.size, 0);
    assert.deepEqual(ended[0]?.outcome, {
      ok: false,
      reason: 'InternalError',
      message: 'Error: out of luck',
    });
  });

  it('are cut off by kind, and say so through the signal they had', async () => {
    const { actions, begun, ended } = scene();
    actions.start(pull, given);
    actions.start(prepare, given);
    actions.abort(({ kind }) => kind === 'ensure-image');
    for (const end of begun) end({ ok: false, reason: 'R', message: 'm' });
    await settle();
    assert.deepEqual(
      ended.map(({ context }) => context.signal.aborted),
      [true, false],
    );
  });

  it('are overtaken only when they had begun before', async () => {
    const { actions, begun, ended } = scene();
    actions.start(pull, given);
    actions.overtake();
    actions.start(prepare, given);
    for (const end of begun) end({ ok: true });
    await settle();
    assert.deepEqual(
      ended.map(({ overtaken }) => overtaken),
      [true, false],
    );
  });

  it('are named once when they take long', async () => {
    const { actions, begun, clock, warnings } = scene();
    actions.start(pull, given);
    await clock.advance(29_000);
    assert.deepEqual(warnings, []);
    await clock.advance(120_000);
    assert.equal(warnings.length, 1);
    begun[0]!({ ok: true });
    actions.start(prepare, given);
    begun[1]!({ ok: true });
    await settle();
    await clock.advance(120_000);
    assert.equal(warnings.length, 1);
  });
});
