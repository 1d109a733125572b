/** What running containers see of changes: of objects in their volumes, and of the pod's own labels. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Volume } from '../../../../src/kubernetes/types.ts';
import { ClusterScenarios, seen } from './cluster-scenarios.ts';
import { type ObjectKind, objectKinds, objectOf, objectVolume, resourceOf } from './object-volumes.ts';

const scenarios = new ClusterScenarios();

const nameOf = (kind: ObjectKind, part: string) => `${kind.toLowerCase()}-${part}`;
const parts = ['changed', 'deleted', 'created'] as const;

for (const kind of objectKinds) {
  for (const part of ['changed', 'deleted']) {
    scenarios.object(objectOf(kind, nameOf(kind, part), { 'data-1': 'value-1', old: 'old' }));
  }
}
const downwardItems = ['labels', 'annotations'].map((path) => ({
  path,
  fieldRef: { fieldPath: `metadata.${path}` },
}));
const volumes: Volume[] = [
  ...objectKinds.flatMap((kind) =>
    parts.map((part) => objectVolume(kind, nameOf(kind, part), nameOf(kind, part), { optional: true })),
  ),
  { name: 'dw', downwardAPI: { items: downwardItems } },
  { name: 'pdw', projected: { sources: [{ downwardAPI: { items: downwardItems } }] } },
];
const mountsOf = (of: readonly Volume[]) => of.map(({ name }) => ({ name, mountPath: `${seen}/${name}` }));
const follower = scenarios.pod(
  'follower',
  { volumes, containers: [scenarios.idler('main', { volumeMounts: mountsOf(volumes) })] },
  { labels: { stage: 'first' }, annotations: { builder: 'bar' } },
);

/** The container's own view: a file there with this content. */
const has = (path: string, content: string) => `[ "$(cat ${seen}/${path} 2>/dev/null)" = '${content}' ]`;
const lacks = (path: string) => `[ ! -e ${seen}/${path} ]`;

/** Changes keys of an object; null takes one away. */
function change(kind: ObjectKind, part: string, values: Readonly<Record<string, string | null>>): void {
  const isSecret = resourceOf(kind) === 'secrets';
  const data = Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, value !== null && isSecret ? btoa(value) : value]),
  );
  scenarios.server.admin.patch(resourceOf(kind), `default/${nameOf(kind, part)}`, { data });
}

describe('an object that changes', () => {
  for (const [kind, title] of [
    [
      'configMap',
      '[sig-storage] ConfigMap updates should be reflected in volume [NodeConformance] [Conformance]',
    ],
    [
      'projectedConfigMap',
      '[sig-storage] Projected configMap updates should be reflected in volume [NodeConformance] [Conformance]',
    ],
  ] as const) {
    it(title, async () => {
      const path = `${nameOf(kind, 'changed')}/data-1`;
      await scenarios.until(follower, has(path, 'value-1'));
      change(kind, 'changed', { 'data-1': 'value-2' });
      await scenarios.until(follower, has(path, 'value-2'));
    });
  }

  for (const [kind, title] of [
    [
      'configMap',
      '[sig-storage] ConfigMap optional updates should be reflected in volume [NodeConformance] [Conformance]',
    ],
    [
      'projectedConfigMap',
      '[sig-storage] Projected configMap optional updates should be reflected in volume [NodeConformance] [Conformance]',
    ],
    [
      'secret',
      '[sig-storage] Secrets optional updates should be reflected in volume [NodeConformance] [Conformance]',
    ],
    [
      'projectedSecret',
      '[sig-storage] Projected secret optional updates should be reflected in volume [NodeConformance] [Conformance]',
    ],
  ] as const) {
    it(title, async () => {
      const path = (part: string, key: string) => `${nameOf(kind, part)}/${key}`;
      await scenarios.until(follower, has(path('deleted', 'data-1'), 'value-1'));
      await scenarios.until(follower, lacks(path('created', 'data-1')));
      scenarios.server.admin.delete(resourceOf(kind), `default/${nameOf(kind, 'deleted')}`);
      change(kind, 'changed', { old: null, 'data-3': 'value-3' });
      scenarios.server.admin.create(objectOf(kind, nameOf(kind, 'created'), { 'data-1': 'value-1' }));
      const changed = [
        lacks(path('deleted', 'data-1')),
        has(path('changed', 'data-3'), 'value-3'),
        lacks(path('changed', 'old')),
        has(path('created', 'data-1'), 'value-1'),
      ];
      await scenarios.until(follower, `{ ${changed.join(' && ')}; }`);
    });
  }

  const reading = (name: string, value: string): string => scenarios.configMap(name, { 'data-1': value });
  const updated = reading('updated', 'value-1');
  it('[sig-node] ConfigMap should update ConfigMap successfully [NodeConformance] [Conformance]', async () => {
    const keyRef = { configMapKeyRef: { name: updated, key: 'data-1' } };
    const env = [{ name: 'VALUE', valueFrom: keyRef }];
    const create = (name: string) =>
      scenarios.agent.create(scenarios.manifest(name, { containers: [scenarios.idler('main', { env })] }));
    create('before-update');
    assert.equal(await scenarios.run('before-update', 'echo $VALUE'), 'value-1\n');
    const object = scenarios.server.admin.get('configmaps', `default/${updated}`);
    assert.ok(object);
    scenarios.server.admin.update('configmaps', `default/${updated}`, {
      ...object,
      data: { 'data-1': 'value-2' },
    });
    // A pod that starts from now on must not be given what the agent knew before.
    create('after-update');
    assert.equal(await scenarios.run('after-update', 'echo $VALUE'), 'value-2\n');
    assert.equal(await scenarios.run('before-update', 'echo $VALUE'), 'value-1\n');
  });
});

describe('an object that must not change', () => {
  for (const [kind, title] of [
    ['configMap', '[sig-storage] ConfigMap should be immutable if `immutable` field is set [Conformance]'],
    ['secret', '[sig-storage] Secrets should be immutable if `immutable` field is set [Conformance]'],
  ] as const) {
    const name = nameOf(kind, 'immutable');
    scenarios.object({ ...objectOf(kind, name, { 'data-1': 'value-1' }), immutable: true });
    const volume = objectVolume(kind, 'files', name);
    const pod = scenarios.pod(name, {
      volumes: [volume],
      containers: [scenarios.idler('main', { volumeMounts: mountsOf([volume]) })],
    });
    it(title, async () => {
      await scenarios.until(pod, has('files/data-1', 'value-1'));
      assert.throws(() => change(kind, 'immutable', { 'data-1': 'value-2' }), /immutable/);
      // What cannot change is watched no more, while all the others are again when watches have ended.
      const { requests, watches } = scenarios.server;
      const watched = (object: string, since: number) =>
        requests.slice(since).some((request) => request.verb === 'watch' && request.name === object);
      assert.ok(watched(name, 0));
      const since = requests.length;
      watches.drop();
      await scenarios.agent.eventually('the others are watched again', async () =>
        objectKinds.every((of) => watched(nameOf(of, 'changed'), since)),
      );
      assert.ok(!watched(name, since));
      await scenarios.until(pod, has('files/data-1', 'value-1'));
    });
  }
});

describe('labels and annotations that change', () => {
  for (const [volume, title] of [
    [
      'dw',
      '[sig-storage] Downward API volume should update labels on modification [NodeConformance] [Conformance]',
    ],
    [
      'pdw',
      '[sig-storage] Projected downwardAPI should update labels on modification [NodeConformance] [Conformance]',
    ],
  ] as const) {
    it(title, async () => {
      await scenarios.until(follower, `grep -qx 'stage="first"' ${seen}/${volume}/labels`);
      const labels = { [volume]: 'changed' };
      scenarios.server.admin.patch('pods', `default/${follower}`, { metadata: { labels } });
      await scenarios.until(follower, `grep -qx '${volume}="changed"' ${seen}/${volume}/labels`);
    });
  }
  for (const [volume, title] of [
    [
      'dw',
      '[sig-storage] Downward API volume should update annotations on modification [NodeConformance] [Conformance]',
    ],
    [
      'pdw',
      '[sig-storage] Projected downwardAPI should update annotations on modification [NodeConformance] [Conformance]',
    ],
  ] as const) {
    it(title, async () => {
      await scenarios.until(follower, `grep -q '^builder="ba' ${seen}/${volume}/annotations`);
      const annotations = { builder: `bar-${volume}` };
      scenarios.server.admin.patch('pods', `default/${follower}`, { metadata: { annotations } });
      await scenarios.until(follower, `grep -qx 'builder="bar-${volume}"' ${seen}/${volume}/annotations`);
    });
  }
});
