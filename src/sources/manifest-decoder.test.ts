import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createManifestDecoder } from './manifest-decoder.ts';
import { manifestErrorText, type StaticSource } from './manifest-error.ts';
import { maxManifestBytes } from './manifest-file.ts';

const seenAt = Date.UTC(2026, 0, 1);
const good = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: a
    image: busybox
`;

function decode(text: string | Uint8Array, source: StaticSource = 'file') {
  const content = typeof text === 'string' ? Buffer.from(text) : text;
  const decoder = createManifestDecoder({
    source,
    nodeName: 'Node1',
    now: () => seenAt,
    featureEnabled: (gate) => gate === 'PreventStaticPodAPIReferences',
  });
  const { pods, errors } = decoder(content, '/m/web.yaml');
  return {
    pods,
    errors: errors.map((error) => manifestErrorText({ ...error, keepsLastGood: false })),
    raw: errors,
  };
}

describe('a good manifest', () => {
  it('becomes the pod a kubelet would run', () => {
    const { pods, errors } = decode(good);
    assert.deepEqual(errors, []);
    const [pod] = pods;
    assert.equal(pod?.metadata.name, 'web-node1');
    assert.equal(pod?.metadata.namespace, 'default');
    assert.match(pod?.metadata.uid ?? '', /^[0-9a-f]{32}$/);
    assert.deepEqual(pod?.metadata.annotations, {
      'kubernetes.io/config.hash': pod?.metadata.uid,
      'kubernetes.io/config.source': 'file',
      'kubernetes.io/config.seen': '2026-01-01T00:00:00.000Z',
    });
    assert.equal(pod?.spec.nodeName, 'Node1');
    assert.deepEqual(pod?.spec.tolerations, [{ operator: 'Exists', effect: 'NoExecute' }]);
    assert.equal(pod?.spec.restartPolicy, 'Always');
    assert.deepEqual(pod?.status, { phase: 'Pending' });
  });

  it('has the same uid in YAML and JSON, in any order of keys, and another one for other content', () => {
    const json =
      '{"spec":{"containers":[{"image":"busybox","name":"a"}]},"kind":"Pod","metadata":{"name":"web"},"apiVersion":"v1"}';
    const uid = decode(good).pods[0]?.metadata.uid;
    assert.equal(decode(json).pods[0]?.metadata.uid, uid);
    assert.equal(decode(`# a comment\n${good}`).pods[0]?.metadata.uid, uid);
    assert.notEqual(decode(good.replace('busybox', 'busybox:1')).pods[0]?.metadata.uid, uid);
    assert.notEqual(decode(good, 'http').pods[0]?.metadata.uid, uid);
  });

  it('keeps its own uid, namespace and annotations, and drops what only the API server may set', () => {
    const { pods } = decode(
      good
        .replace(
          '  name: web',
          `  name: web
  namespace: kube-system
  uid: abc-1
  deletionTimestamp: "2026-01-01T00:00:00Z"
  annotations: {a: b, kubernetes.io/config.mirror: x}`,
        )
        .replace(
          'spec:',
          'status: {phase: Running}\nspec:\n  nodeName: other\n  priorityClassName: system-node-critical',
        ),
    );
    const [pod] = pods;
    assert.equal(pod?.metadata.uid, 'abc-1');
    assert.equal(pod?.metadata.namespace, 'kube-system');
    assert.equal(pod?.metadata.annotations?.a, 'b');
    assert.equal(pod?.metadata.annotations?.['kubernetes.io/config.mirror'], undefined);
    assert.equal(pod?.metadata.annotations?.['kubernetes.io/config.hash'], 'abc-1');
    assert.equal(pod?.metadata.deletionTimestamp, undefined);
    assert.equal(pod?.spec.nodeName, 'Node1');
    assert.equal(pod?.spec.priority, 2_000_001_000);
    assert.deepEqual(pod?.status, { phase: 'Pending' });
  });

  it('may begin with a byte order mark and hold empty documents', () => {
    assert.equal(decode(`\ufeff${good}`).pods.length, 1);
    assert.equal(decode(`---\n---\n${good}---\n`).pods.length, 1);
  });
});

describe('a bad manifest gives one error with place and remedy', () => {
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x,x]\n${Array.from(
    { length: 8 },
    (_, n) => `${'bcdefghi'[n]}: &${'bcdefghi'[n]} [${Array(10).fill(`*${'abcdefghi'[n]}`).join(',')}]\n`,
  ).join('')}`;
  const latin1 = Buffer.from(good.replace('busybox', 'b\u00fcsybox'), 'latin1');
  const cases: [name: string, text: string | Uint8Array, expected: RegExp][] = [
    ['empty', '', /^\/m\/web\.yaml: it is empty\. Write a Pod/],
    ['only comments', '# nothing\n', /nothing but comments/],
    ['half a mapping', good.slice(0, good.indexOf('name: web') + 3), /web\.yaml:\d+: /],
    ['broken YAML', 'kind: [Pod', /^\/m\/web\.yaml:1: .*column.*Correct the syntax\.$/],
    ['a duplicate key', 'kind: Pod\nkind: Pod\n', /web\.yaml:2: duplicate key "kind"/],
    ['an alias bomb', bomb, /aliases expand to too many values/],
    ['invalid UTF-8', latin1, /^\/m\/web\.yaml:8: it holds bytes that are not UTF-8\. Save it as UTF-8\.$/],
    ['UTF-16', Buffer.from(`\ufeff${good}`, 'utf16le'), /not UTF-8/],
    ['too much', new Uint8Array(maxManifestBytes + 1), /more than 10485760 bytes/],
    [
      'two documents',
      `${good}---\n${good}`,
      /web\.yaml:10: it holds more than one YAML document.*Put each Pod/,
    ],
    [
      'a list in a file',
      'apiVersion: v1\nkind: PodList\nitems: []\n',
      /:2: kind: "PodList" cannot be run.*file of its own/,
    ],
    [
      'another kind',
      good.replace('kind: Pod', 'kind: Deployment'),
      /:2: kind: "Deployment" cannot be run; it must be Pod/,
    ],
    [
      'another version',
      good.replace('v1', 'apps/v1'),
      /:1: apiVersion: "apps\/v1" has no Pods; it must be v1/,
    ],
    ['no kind', good.replace('kind: Pod', ''), /kind: Required value/],
    ['no version', good.replace('apiVersion: v1', ''), /apiVersion: Required value/],
    ['a scalar', '42', /it holds 42, not a Pod/],
    ['a sequence', '- kind: Pod', /it holds a list, not a Pod/],
    ['no name', good.replace('  name: web', '  labels: {}'), /:3: metadata\.name: Required value/],
    [
      'a prefix instead of a name',
      good.replace('name: web', 'generateName: web-'),
      /metadata\.name: Required value/,
    ],
    ['a name that gets too long', good.replace('web', 'w'.repeat(250)), /metadata\.name: Invalid value.*253/],
    [
      'a uid that leaves its directory',
      good.replace('name: web', 'name: web\n  uid: ../../etc'),
      /:5: metadata\.uid: Invalid value: "..\/..\/etc"/,
    ],
    [
      'no image',
      good.replace('    image: busybox\n', ''),
      /:7: spec\.containers\[0\]\.image: Required value/,
    ],
    [
      'a mistyped field',
      good.replace('image:', 'imaeg:'),
      /:8: spec\.containers\[0\]\.imaeg: Forbidden: unknown field; did you mean "image"\?/,
    ],
    ['a wrong type', good.replace('metadata:\n  name: web', 'metadata: web'), /:3: metadata: /],
    [
      'containers that are no list',
      good.replace(/containers:[^]*/, 'containers: x\n'),
      /:6: spec\.containers: /,
    ],
    [
      'a secret',
      `${good}    envFrom: [{secretRef: {name: s}}]\n`,
      /:9: spec\.containers\[0\]\.envFrom\[0\]\.secretRef: Forbidden: static pods may not/,
    ],
  ];
  for (const [name, text, expected] of cases) {
    it(name, () => {
      const { pods, errors } = decode(text);
      assert.deepEqual(pods, []);
      assert.equal(errors.length, 1);
      assert.match(errors[0] ?? '', expected);
    });
  }

  it('names the pod it is about', () => {
    const { raw } = decode(good.replace('    image: busybox\n', ''));
    assert.deepEqual(raw[0]?.pod, { name: 'web-node1', namespace: 'default' });
  });

  it('shows some of many problems and counts the others', () => {
    const containers = Array.from({ length: 50 }, (_, n) => `  - name: c${n}\n`).join('');
    const [text] = decode(`${good.slice(0, good.indexOf('  - name'))}${containers}`).errors;
    assert.match(text ?? '', /and 45 more problems/);
  });
});

describe('a list from a URL', () => {
  const pod = (name: string, image = 'i') =>
    `{"metadata":{"name":"${name}"},"spec":{"containers":[{"name":"c"${image && `,"image":"${image}"`}}]}}`;
  const list = (...items: string[]) =>
    `{"apiVersion":"v1","kind":"PodList","items":[\n${items.join(',\n')}]}`;

  it('may be a PodList, a List or one Pod', () => {
    assert.equal(decode(list(pod('a'), pod('b')), 'http').pods.length, 2);
    assert.equal(decode(list().replace('PodList', 'List'), 'http').pods.length, 0);
    assert.equal(decode(good, 'http').pods[0]?.metadata.annotations?.['kubernetes.io/config.source'], 'http');
  });

  it('gives the good pods and says which one is bad', () => {
    const { pods, errors, raw } = decode(list(pod('a'), pod('b', ''), '7'), 'http');
    assert.deepEqual(
      pods.map(({ metadata }) => metadata.name),
      ['a-node1'],
    );
    assert.match(errors[0] ?? '', /:3: items\[1\]\.spec\.containers\[0\]\.image: Required value/);
    assert.equal(raw[0]?.pod?.name, 'b-node1');
    assert.match(errors[1] ?? '', /:4: items\[2\] must be a Pod, not 7/);
  });

  it('takes the first of two pods of one name', () => {
    const { pods, errors } = decode(list(pod('a', 'x'), pod('a', 'y')), 'http');
    assert.equal(pods[0]?.spec.containers[0]?.image, 'x');
    assert.equal(pods.length, 1);
    assert.match(errors[0] ?? '', /pod default\/a-node1 has the name or uid of another pod/);
  });
});

describe('any input', () => {
  const sane = ({ pods, raw }: ReturnType<typeof decode>) => {
    assert.ok(pods.length + raw.length > 0);
    for (const error of raw) assert.ok(error.problems.length > 0);
    for (const { metadata } of pods) assert.match(metadata.uid, /^[-.A-Za-z0-9]+$/);
  };

  it('bytes end in pods or errors', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => sane(decode(bytes))));
  });

  it('a good manifest with any value at any place ends in pods or errors', () => {
    const places = [
      'metadata',
      'metadata.name',
      'metadata.uid',
      'metadata.annotations',
      'spec',
      'spec.containers',
      'spec.tolerations',
      'spec.priorityClassName',
      'status',
      '__proto__',
    ];
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.jsonValue({ maxDepth: 3 }), (place, value) => {
        const [first = '', second] = place.split('.');
        const text = JSON.stringify({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'web' },
          spec: { containers: [{ name: 'a', image: 'i' }] },
        });
        const manifest = JSON.parse(text) as Record<string, Record<string, unknown>>;
        if (second === undefined) manifest[first] = value as Record<string, unknown>;
        else manifest[first]![second] = value;
        sane(decode(JSON.stringify(manifest)));
      }),
    );
  });

  it('a good manifest that is cut anywhere never starts a pod of another name', () => {
    for (let end = 0; end <= good.length; end++) {
      const { pods } = decode(good.slice(0, end));
      for (const { metadata } of pods) assert.equal(metadata.name, 'web-node1');
    }
  });
});
