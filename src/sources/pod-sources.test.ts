import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Pod } from '../kubernetes/types.ts';
import { type EventRecorder, silentEvents } from '../telemetry/events.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { type Metrics, silentMetrics } from '../telemetry/metrics.ts';
import { type DesiredChange, DesiredPods } from './desired-pods.ts';
import type { ManifestError, StaticSource } from './manifest-error.ts';
import type { PodSource, SourceUpdate } from './pod-source.ts';
import { PodSources } from './pod-sources.ts';

function pod(name: string, uid = name): Pod {
  return {
    metadata: { name, namespace: 'default', uid },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      containers: [],
    },
  };
}

function update(source: StaticSource, pods: Pod[], rest: Partial<SourceUpdate> = {}): SourceUpdate {
  return { source, pods, errors: [], complete: true, ...rest };
}

const broken: ManifestError = {
  source: 'file',
  origin: '/m/a.yaml',
  problems: [{ line: 3, field: 'spec', reason: 'spec: Required value' }],
  remedy: 'Correct it',
  keepsLastGood: false,
};

const uids = (pods: Iterable<Pod>) => [...pods].map(({ metadata }) => metadata.uid);

describe('the desired pods', () => {
  it('change by what a source says, and only by that', () => {
    const desired = new DesiredPods(['file', 'http']);
    const [a, b] = [pod('a'), pod('b')];
    assert.deepEqual(uids(desired.apply(update('file', [a])).set), ['a']);
    assert.deepEqual(uids(desired.apply(update('http', [b])).set), ['b']);
    const change = desired.apply(update('http', [], { errors: [{ ...broken, source: 'http' }] }));
    assert.deepEqual([uids(change.set), uids(change.removed)], [[], ['b']]);
    assert.deepEqual(uids(desired.pods.values()), ['a']);
  });

  it('are ready once every source has delivered all it has', () => {
    const desired = new DesiredPods(['file', 'http']);
    assert.equal(desired.apply(update('file', [])).ready, false);
    assert.equal(desired.apply(update('http', [pod('b')], { complete: false })).ready, false);
    assert.equal(desired.apply(update('http', [pod('b')])).ready, true);
    assert.equal(desired.apply(update('http', [pod('b')], { complete: false })).ready, true);
  });

  it('replace a pod whose manifest changed, and tell a new object of the same uid', () => {
    const desired = new DesiredPods(['file']);
    desired.apply(update('file', [pod('a', '1')]));
    const replaced = desired.apply(update('file', [pod('a', '2')]));
    assert.deepEqual([uids(replaced.set), uids(replaced.removed)], [['2'], ['1']]);
    const updated = desired.apply(update('file', [pod('a', '2')]));
    assert.deepEqual([uids(updated.set), uids(updated.removed)], [['2'], []]);
  });

  it('keep the first of two pods with one name, whichever source speaks later', () => {
    const desired = new DesiredPods(['file', 'http']);
    desired.apply(update('http', [pod('a', 'first')]));
    const change = desired.apply(update('file', [pod('a', 'second')]));
    assert.deepEqual([uids(change.set), uids(change.removed)], [[], []]);
    assert.match(
      desired.errors[0]?.problems[0]?.reason ?? '',
      /a_default from file due to duplicate pod name "a"/,
    );
    assert.deepEqual(uids(desired.apply(update('http', [])).set), ['second']);
    assert.deepEqual(desired.errors, []);
  });

  it('hold one pod per name and uid, all from the last updates, after any updates', () => {
    const somePod = fc
      .tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', '3', '4'))
      .map(([name, uid]) => pod(name, uid));
    const someUpdate = fc
      .tuple(
        fc.constantFrom<StaticSource>('file', 'http'),
        fc.uniqueArray(somePod, { selector: ({ metadata }) => metadata.uid, maxLength: 3 }),
      )
      .map(([source, pods]) => update(source, pods));
    fc.assert(
      fc.property(fc.array(someUpdate), (updates) => {
        const desired = new DesiredPods(['file', 'http']);
        const followed = new Map<string, Pod>();
        for (const each of updates) {
          const { set, removed } = desired.apply(each);
          for (const { metadata } of removed) assert.ok(followed.delete(metadata.uid));
          for (const one of set) followed.set(one.metadata.uid, one);
          assert.deepEqual([...followed.keys()].sort(), [...desired.pods.keys()].sort());
          const names = [...desired.pods.values()].map(({ metadata }) => metadata.name);
          assert.equal(new Set(names).size, names.length);
          const now = new Set(
            (['file', 'http'] as const).flatMap(
              (source) =>
                updates.slice(0, updates.indexOf(each) + 1).findLast((u) => u.source === source)?.pods ?? [],
            ),
          );
          for (const one of desired.pods.values()) assert.ok(now.has(one));
        }
      }),
    );
  });
});

describe('the sources together', () => {
  class Told implements PodSource {
    readonly name: StaticSource;
    say: (update: SourceUpdate) => void = () => {};

    constructor(name: StaticSource) {
      this.name = name;
    }

    run(listener: (update: SourceUpdate) => void, signal: AbortSignal): Promise<void> {
      this.say = listener;
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
  }

  function start(sources: PodSource[]) {
    const changes: DesiredChange[] = [];
    const happened: unknown[] = [];
    const gauge = new Map<string, number>();
    const events: EventRecorder = { ...silentEvents, event: (...event) => void happened.push(event) };
    const metrics: Metrics = {
      ...silentMetrics,
      gauge: () => ({ set: (value, labels) => gauge.set(labels?.source ?? '', value), remove() {} }),
    };
    const all = new PodSources({ sources, nodeName: 'n', log: silentLogger, events, metrics });
    const stop = new AbortController();
    const running = all.run((change) => changes.push(change), stop.signal);
    return { all, changes, happened, gauge, stop: () => (stop.abort(), running) };
  }

  it('tell changes, and once that they are ready', async () => {
    const [file, http] = [new Told('file'), new Told('http')];
    const { changes, all, stop } = start([file, http]);
    file.say(update('file', [pod('a')]));
    http.say(update('http', [], { complete: false }));
    http.say(update('http', []));
    http.say(update('http', []));
    assert.deepEqual(
      changes.map(({ set, ready }) => [set.length, ready]),
      [
        [1, false],
        [0, true],
      ],
    );
    assert.deepEqual([...all.pods.keys()], ['a']);
    await stop();
  });

  it('are ready at once when there are none', async () => {
    const { changes, stop, all } = start([]);
    assert.deepEqual(changes, [{ set: [], removed: [], ready: true }]);
    assert.equal(all.ready, true);
    await stop();
  });

  it('report a bad manifest once, as an event on the pod or the node, and in the gauge while it lasts', async () => {
    const file = new Told('file');
    const { happened, gauge, stop } = start([file]);
    const named = { ...broken, origin: '/m/b.yaml', pod: { namespace: 'default', name: 'b-n' } };
    file.say(update('file', [], { errors: [broken, named] }));
    file.say(update('file', [pod('c')], { errors: [broken, named] }));
    assert.equal(gauge.get('file'), 2);
    assert.deepEqual(happened, [
      [
        { kind: 'Node', name: 'n', uid: 'n' },
        'Warning',
        'FailedValidation',
        '/m/a.yaml:3: spec: Required value. Correct it.',
      ],
      [
        { kind: 'Pod', namespace: 'default', name: 'b-n' },
        'Warning',
        'FailedValidation',
        '/m/b.yaml:3: spec: Required value. Correct it.',
      ],
    ]);
    file.say(update('file', [pod('c')]));
    assert.equal(gauge.get('file'), 0);
    file.say(update('file', [pod('c')], { errors: [broken] }));
    assert.equal(happened.length, 3);
    await stop();
  });
});
