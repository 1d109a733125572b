import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ObservedContainer, ObservedSandbox } from './observed-pod.ts';
import { RuntimeKnowledge } from './runtime-knowledge.ts';

const sandbox = (state: ObservedSandbox['state'] = 'Ready'): ObservedSandbox => ({
  id: 's',
  state,
  attempt: 0,
  createdAt: 1,
  ips: [],
  hostNetwork: false,
});

const container = (state: ObservedContainer['state'], id = 'c'): ObservedContainer => ({
  id,
  name: 'main',
  sandboxId: 's',
  attempt: 0,
  state,
  createdAt: 1,
  image: 'image',
  imageId: 'image',
  hash: '',
  annotations: {},
});

function scene() {
  const changes: string[] = [];
  const known = new RuntimeKnowledge((uid) => changes.push(uid));
  const learn = (state: ObservedContainer['state'], learnedAt = known.moment()) =>
    known.learnContainer({ podUid: 'uid', value: container(state), learnedAt });
  const states = () => known.pod('uid').containers.map(({ state }) => state);
  return { known, changes, learn, states };
}

describe('what is known of the runtime', () => {
  it('is the answer asked for last, in whatever order answers come', () => {
    const { known, learn, states } = scene();
    const [first, second] = [known.moment(), known.moment()];
    learn('Running', second);
    learn('Created', first);
    assert.deepEqual(states(), ['Running']);
    learn('Exited');
    learn('Running', second);
    assert.deepEqual(states(), ['Exited']);
  });

  it('takes an older answer that saw more of a life', () => {
    const { known, learn, states } = scene();
    const [first, second] = [known.moment(), known.moment()];
    learn('Running', second);
    learn('Exited', first);
    assert.deepEqual(states(), ['Exited']);
  });

  it('does not raise what was found gone while a question was on its way', () => {
    const { known, learn, states } = scene();
    learn('Running');
    const askedAt = known.ask();
    known.forgetContainer('c');
    learn('Running', askedAt);
    assert.deepEqual(states(), []);
    known.answered(askedAt);
    assert.deepEqual(known.pods(), []);
  });

  it('tells of changes, and of nothing else', () => {
    const { changes, learn } = scene();
    learn('Running');
    learn('Running');
    assert.deepEqual(changes, ['uid']);
    learn('Exited');
    assert.deepEqual(changes, ['uid', 'uid']);
  });

  it('keeps what is newer than the list that lacks it', () => {
    const { known, learn, states } = scene();
    const nothing = { sandboxes: new Set<string>(), containers: new Set<string>() };
    const listedAt = known.moment();
    learn('Running');
    known.forgetUnlisted(nothing, listedAt);
    assert.deepEqual(states(), ['Running']);
    known.forgetUnlisted(nothing, known.moment(), 'another pod');
    assert.deepEqual(states(), ['Running']);
    known.forgetUnlisted(nothing, known.moment());
    assert.deepEqual(states(), []);
  });

  it('names a pod by its sandbox rather than by its containers, and forgets the name with the last of it', () => {
    const { known } = scene();
    const labels = { 'io.kubernetes.pod.name': 'web', 'io.kubernetes.pod.namespace': 'n' };
    const of = (learnedAt: number) => ({ podUid: 'uid', learnedAt, labels });
    known.learnContainer({ ...of(known.moment()), value: container('Running') });
    known.learnSandbox({ ...of(known.moment()), value: sandbox(), annotations: { whose: 'ours' } });
    known.learnContainer({ ...of(known.moment()), value: container('Running', 'd') });
    assert.deepEqual(known.identity('uid')?.annotations, { whose: 'ours' });
    assert.equal(known.pod('uid').name, 'web');
    known.forgetSandboxWithContainers('s');
    assert.equal(known.identity('uid'), undefined);
    assert.deepEqual(known.pods(), []);
  });

  it('asks for details of what a list shows otherwise, unless it learned that later', () => {
    const { known, learn } = scene();
    const before = known.moment();
    learn('Running');
    assert.equal(known.containerDiffers({ id: 'c', state: 'Exited' }, before), false);
    assert.equal(known.containerDiffers({ id: 'c', state: 'Exited' }, known.moment()), true);
    assert.equal(known.containerDiffers({ id: 'c', state: 'Running' }, known.moment()), false);
    assert.equal(known.sandboxDiffers({ id: 's', state: 'Ready' }, before), true);
  });
});
