import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import type { PodManifest } from '../kubernetes/types.ts';
import { type ApiPodChange, ApiSource } from './api-source.ts';
import type { SourceUpdate } from './pod-source.ts';

type Change = { set?: readonly unknown[]; removed?: readonly unknown[]; synced?: boolean };

let updates: SourceUpdate[];
let objects: ApiPodChange[];
let tell: (change: Change) => void;
let asked: unknown;

function start(remembered: ConstructorParameters<typeof ApiSource>[0]['remembered'] = []): void {
  updates = [];
  objects = [];
  const source = new ApiSource({
    nodeName: 'node',
    clock: new VirtualClock(),
    remembered,
    onObjects: (change) => objects.push(change),
    reflector: ({ onChange, ...where }) => {
      asked = where;
      tell = ({ set = [], removed = [], synced = true }) =>
        onChange({ set: set as PodManifest[], removed: removed as PodManifest[], synced });
      return { run: async () => {} };
    },
  });
  void source.run((update) => updates.push(update), new AbortController().signal);
}
beforeEach(() => start());

const object = (name: string, extra: object = {}, metadata: object = {}, status: object = {}) => ({
  metadata: {
    name,
    namespace: 'default',
    uid: `uid-${name}`,
    resourceVersion: '1',
    managedFields: [{}],
    ...metadata,
  },
  spec: { nodeName: 'node', containers: [{ name: 'web', image: 'web' }], ...extra },
  status: { phase: 'Pending', ...status },
});
const last = () => updates.at(-1)!;
const names = () => last().pods.map(({ metadata }) => metadata.name);

describe('pods of the API server', () => {
  it('are those of this node, complete when the server has told all', () => {
    assert.deepEqual(asked, { path: '/api/v1/pods', query: { fieldSelector: 'spec.nodeName=node' } });
    tell({ set: [object('one')], synced: false });
    assert.deepEqual(updates, []);
    tell({ set: [object('two'), object('other', { nodeName: 'elsewhere' })] });
    assert.deepEqual(names(), ['one', 'two']);
    assert.equal(last().complete, true);
    const { metadata, spec } = last().pods[0]!;
    assert.equal(metadata.annotations?.['kubernetes.io/config.source'], 'api');
    assert.equal(metadata.annotations?.['kubernetes.io/config.seen'], '2026-01-01T00:00:00.000Z');
    assert.equal(metadata.managedFields, undefined);
    assert.equal(spec.terminationGracePeriodSeconds, 30);
  });

  it('are complete when there are none, and told of only once', () => {
    tell({});
    tell({});
    assert.deepEqual(updates, [{ source: 'api', pods: [], errors: [], complete: true }]);
  });

  it('are those of the last run until the server speaks', () => {
    tell({ set: [object('one')] });
    const remembered = last().pods;
    start(remembered);
    assert.deepEqual([names(), last().complete], [['one'], false]);
    tell({});
    assert.deepEqual([names(), last().complete], [[], true]);
  });

  it('are not delivered again for what the node itself has told', () => {
    tell({ set: [object('one')] });
    const echo = object(
      'one',
      {},
      { resourceVersion: '2' },
      { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    );
    tell({ set: [echo] });
    assert.equal(updates.length, 1);
    assert.equal(objects.length, 2);
  });

  for (const [what, next] of [
    ['labels', object('one', {}, { labels: { a: 'b' } })],
    ['the spec', object('one', { activeDeadlineSeconds: 5 })],
    ['a deletion', object('one', {}, { deletionTimestamp: 't', deletionGracePeriodSeconds: 5 })],
    ['a condition of somebody else', object('one', {}, {}, { conditions: [{ type: 'x', status: 'True' }] })],
    ['an end decided elsewhere', object('one', {}, {}, { phase: 'Failed' })],
  ] as const) {
    it(`are delivered again for ${what}; the others stay the same objects`, () => {
      tell({ set: [object('one'), object('two')] });
      const [before, other] = last().pods;
      tell({ set: [next] });
      assert.equal(updates.length, 2);
      assert.notEqual(last().pods[0], before);
      assert.equal(last().pods[1], other);
    });
  }

  it('leave out mirrors, which are told of as objects', () => {
    tell({ set: [object('m', {}, { annotations: { 'kubernetes.io/config.mirror': 'h' } })] });
    assert.deepEqual(names(), []);
    assert.equal(objects[0]?.set[0]?.metadata.name, 'm');
  });

  it('made again under their name replace the former ones, whether those are taken away or not', () => {
    tell({ set: [object('one')] });
    tell({ set: [object('one', {}, { uid: 'second' })] });
    assert.deepEqual(
      last().pods.map(({ metadata }) => metadata.uid),
      ['second'],
    );
    tell({ removed: [object('one')] });
    assert.deepEqual(
      last().pods.map(({ metadata }) => metadata.uid),
      ['second'],
    );
  });

  it('deleted by force are told with their last grace period, then gone', () => {
    tell({ set: [object('one')] });
    tell({ removed: [object('one', {}, { deletionTimestamp: 't', deletionGracePeriodSeconds: 0 })] });
    assert.deepEqual(
      updates.map(({ pods }) => pods.length),
      [1, 1, 0],
    );
    assert.equal(updates[1]?.pods[0]?.metadata.deletionGracePeriodSeconds, 0);
  });
});

describe('objects that are no usable pods', () => {
  it('are reported and ignored, or go on as they were', () => {
    tell({ set: [object('one'), object('bad', { containers: [{ name: '../x', image: 'i' }] })] });
    assert.deepEqual(names(), ['one']);
    assert.equal(last().errors[0]?.pod?.name, 'bad');
    tell({ set: [object('one', { containers: 'none' })] });
    assert.deepEqual(names(), ['one']);
    assert.equal(last().errors.length, 2);
    assert.equal(last().errors.find(({ pod }) => pod?.name === 'one')?.keepsLastGood, true);
    tell({ set: [object('one'), object('bad')] });
    assert.deepEqual([names(), last().errors], [['one', 'bad'], []]);
  });

  it('may be deleted all the same', () => {
    tell({
      set: [object('bad', { containers: [] }, { deletionTimestamp: 't', deletionGracePeriodSeconds: 1 })],
    });
    assert.deepEqual(names(), ['bad']);
    assert.deepEqual(last().pods[0]?.spec.containers, []);
  });

  it('know more than this version does, and run', () => {
    tell({
      set: [object('one', { inventedLater: 1, containers: [{ name: 'web', image: 'i', new: true }] })],
    });
    assert.deepEqual([names(), last().errors], [['one'], []]);
  });

  it('of any shape never break anything', () => {
    const json = fc.jsonValue({ maxDepth: 4 });
    const odd = fc.oneof(
      json,
      fc.record({ metadata: json, spec: json, status: json }),
      fc.record({
        metadata: fc.record({
          name: fc.constantFrom('one', 'x/y'),
          namespace: fc.constant('default'),
          uid: fc.constantFrom('u', '../u'),
          annotations: json,
          labels: json,
          deletionTimestamp: json,
          deletionGracePeriodSeconds: json,
        }),
        spec: fc.oneof(json, fc.record({ nodeName: fc.constant('node'), containers: json, volumes: json })),
        status: fc.oneof(json, fc.record({ phase: json, conditions: json, containerStatuses: json })),
      }),
    );
    fc.assert(
      fc.property(fc.array(odd, { maxLength: 4 }), fc.array(odd, { maxLength: 2 }), (set, removed) => {
        start();
        tell({ set: [object('good'), ...set] });
        tell({ set, removed });
        assert.ok(names().includes('good'));
      }),
      { numRuns: 200 },
    );
  });
});
