import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Action } from './action.ts';
import { failureKey } from './plan.ts';
import { emptyMemory, type PodMemory } from './pod-view.ts';
import { forgetGone, forgetObjectFailures, forgetUnwanted, type Outcome, remember } from './remember.ts';

const now = 1_000_000;
const ok: Outcome = { ok: true };
const broken: Outcome = { ok: false, reason: 'Broken', message: 'it broke' };
const reason = 'because';
const create: Action = {
  kind: 'create-container',
  container: 'web',
  attempt: 3,
  sandboxId: 's',
  imageRef: 'i',
  nextBackoffMs: 0,
  reason,
};
const start: Action = { kind: 'start-container', container: 'web', containerId: 'c', reason };
const stop: Action = { kind: 'stop-container', container: 'web', containerId: 'c', graceSeconds: 1, reason };

describe('what is learned of an action', () => {
  const table: readonly [action: Action, before: Partial<PodMemory>, after: Partial<PodMemory>][] = [
    [{ kind: 'write-record', reason }, {}, { recorded: true }],
    [{ kind: 'prepare-pod', reason }, {}, { prepared: true }],
    [{ kind: 'set-up-volumes', reason }, {}, { volumesReady: true }],
    [{ kind: 'create-sandbox', attempt: 0, reason }, {}, {}],
    [create, { images: { web: { ref: 'i', attempt: 3 } } }, { images: {}, nextAttempts: { web: 4 } }],
    [create, { nextBackoffs: { web: 5 } }, { nextBackoffs: {}, nextAttempts: { web: 4 } }],
    [start, {}, { hooksDone: { c: true } }],
    [stop, { hooksDone: { c: true }, preStopBegan: { c: 5 } }, { hooksDone: {}, preStopBegan: {} }],
    [{ kind: 'stop-sandbox', sandboxId: 's', reason }, {}, { stoppedSandboxes: { s: true } }],
    [
      { kind: 'remove-sandbox', sandboxId: 's', reason },
      { stoppedSandboxes: { s: true } },
      { stoppedSandboxes: {} },
    ],
    [
      { kind: 'tear-down', reason },
      { prepared: true, volumesReady: true },
      { tornDown: true, prepared: false, volumesReady: false },
    ],
    [{ kind: 'release-object', reason }, {}, { released: true }],
    [{ kind: 'erase', reason }, {}, { erased: true }],
  ];
  for (const [action, before, after] of table) {
    it(`${action.kind} that succeeds: ${JSON.stringify(after)}`, () => {
      const memory = remember({ ...emptyMemory, ...before }, action, ok, now);
      assert.deepEqual(memory, { ...emptyMemory, ...before, ...after });
    });
  }

  it('an image is known for the attempt it was ensured for', () => {
    const image = { container: 'web', ref: 'sha256:1', attempt: 2 };
    const action: Action = { kind: 'ensure-image', container: 'web', attempt: 2, reason };
    const { images } = remember(emptyMemory, action, { ok: true, learned: { image } }, now);
    assert.deepEqual(images, { web: { ref: 'sha256:1', attempt: 2 } });
  });

  it('attempts seen in logs do not overrule what is known', () => {
    const memory = { ...emptyMemory, nextAttempts: { web: 5 } };
    const learned = { nextAttempts: { web: 2, other: 1 } };
    const { nextAttempts } = remember(memory, { kind: 'prepare-pod', reason }, { ok: true, learned }, now);
    assert.deepEqual(nextAttempts, { web: 5, other: 1 });
  });
});

describe('what is learned of a failure', () => {
  it('counts those in a row and waits longer each time', () => {
    const key = failureKey(start);
    let memory = emptyMemory;
    for (const [count, waits] of [
      [1, 1000],
      [2, 2000],
      [3, 4000],
    ] as const) {
      memory = remember(memory, start, broken, now);
      assert.deepEqual(memory.failures[key], {
        reason: 'Broken',
        message: 'it broke',
        count,
        retryAt: now + waits,
      });
    }
    assert.deepEqual(remember(memory, start, ok, now).failures, {});
  });

  it('takes the time the executor names', () => {
    const { failures } = remember(emptyMemory, start, { ...broken, retryAt: 5 }, now);
    assert.equal(failures[failureKey(start)]?.retryAt, 5);
  });

  it('of a creation is that the image may be missing', () => {
    const memory = {
      ...emptyMemory,
      images: { web: { ref: 'i', attempt: 3 }, other: { ref: 'j', attempt: 0 } },
    };
    assert.deepEqual(remember(memory, create, broken, now).images, { other: { ref: 'j', attempt: 0 } });
  });

  it('is let go of with the wish for the action', () => {
    const memory = remember(remember(emptyMemory, start, broken, now), create, broken, now);
    assert.deepEqual(Object.keys(forgetUnwanted(memory, new Set([failureKey(start)])).failures), [
      failureKey(start),
    ]);
    const all = new Set(Object.keys(memory.failures));
    assert.equal(forgetUnwanted(memory, all), memory);
  });
});

describe('what is remembered of containers and sandboxes', () => {
  const seen = {
    uid: 'u',
    name: 'p',
    namespace: 'n',
    sandboxes: [{ id: 's', state: 'Ready', attempt: 0, createdAt: 1, ips: [], hostNetwork: false }],
    containers: [
      {
        id: 'c',
        name: 'web',
        sandboxId: 's',
        attempt: 0,
        state: 'Running',
        createdAt: 1,
        image: '',
        imageId: '',
        hash: '',
        annotations: {},
      },
    ],
  } as const;
  const kept = {
    hooksDone: { c: true },
    endedByProbe: { c: true },
    preStopBegan: { c: 5 },
    stoppedSandboxes: { s: true },
  } as const;

  it('goes with them', () => {
    const memory: PodMemory = {
      ...emptyMemory,
      hooksDone: { ...kept.hooksDone, old: true },
      endedByProbe: { ...kept.endedByProbe, old: true },
      preStopBegan: { ...kept.preStopBegan, old: 4 },
      stoppedSandboxes: { ...kept.stoppedSandboxes, gone: true },
    };
    assert.deepEqual(forgetGone(memory, seen), { ...emptyMemory, ...kept });
  });

  it('stays the same object while nothing has gone', () => {
    const memory: PodMemory = { ...emptyMemory, ...kept };
    assert.equal(forgetGone(memory, seen), memory);
  });
});

it('a change of objects lets go of the failures they may have caused, and of no others', () => {
  const failure = (reason: string) => ({ reason, message: '', count: 3, retryAt: now });
  const others = { 'create-sandbox:sandbox': failure('FailedCreatePodSandBox') };
  const memory: PodMemory = {
    ...emptyMemory,
    failures: {
      ...others,
      'set-up-volumes:volumes': failure('FailedMount'),
      'create-container:container/web': failure('CreateContainerConfigError'),
    },
  };
  const noClass = { 'create-sandbox:sandbox': failure('SandboxConfigError') };
  assert.deepEqual(forgetObjectFailures({ ...emptyMemory, failures: noClass }).failures, {});
  const after = forgetObjectFailures(memory);
  assert.deepEqual(after.failures, others);
  assert.equal(forgetObjectFailures(after), after);
});
