import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { defaultPod } from '../pod-defaults.ts';
import type { PodManifest } from '../types.ts';
import { podSchema } from './generated/pod-schema.ts';
import { podWith } from './pod-cases.ts';
import { formatFieldError, staticPodReferences, validatePod } from './pod-validation.ts';

const minimal = {
  metadata: { name: 'a', namespace: 'b' },
  spec: { containers: [{ name: 'c', image: 'd' }] },
};

/** Values that get past the types of fields, so that the rules behind see them. */
const texts = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom(
    '',
    'a',
    'app',
    'scratch',
    'Always',
    'Never',
    'None',
    'Localhost',
    '..',
    '/a',
    'hugepages-2Mi',
    'cpu',
  ),
);
const scalars: Record<string, fc.Arbitrary<unknown>> = {
  string: texts,
  bool: fc.boolean(),
  int32: fc.integer(),
  int64: fc.maxSafeInteger(),
  time: fc.constantFrom('2026-01-02T03:04:05Z', 'never'),
  quantity: fc.oneof(fc.constantFrom('1', '500m', '1Gi', '-1', '', '1e400', '0.0000001'), texts),
  intOrString: fc.oneof(fc.integer(), texts),
  any: fc.jsonValue({ maxDepth: 1 }),
};

/** Pods of the published shape with arbitrary content; now and then a value has another type. */
function valueOf(type: string, depth: number): fc.Arbitrary<unknown> {
  const inner = type.slice(1, -1);
  const odd = { weight: 1, arbitrary: fc.constantFrom<unknown>(null, 0, '', [], {}, true) };
  const usual = (arbitrary: fc.Arbitrary<unknown>) => fc.oneof({ weight: 30, arbitrary }, odd);
  if (type.startsWith('[')) return usual(fc.array(valueOf(inner, depth), { maxLength: 3 }));
  if (type.startsWith('{')) return usual(fc.dictionary(texts, valueOf(inner, depth), { maxKeys: 3 }));
  const scalar = scalars[type];
  if (scalar) return usual(scalar);
  if (depth > 7) return fc.constant({});
  const fields = podSchema[type]!.split(' ').map((entry) => entry.split(':') as [string, string]);
  const few = fc.subarray(fields, { maxLength: Math.min(6, fields.length) }).chain((chosen) => {
    const members = chosen.map(([name, fieldType]) => [name, valueOf(fieldType, depth + 1)] as const);
    return fc.record(Object.fromEntries(members));
  });
  return usual(few);
}

const shaped = fc
  .tuple(valueOf('PodSpec', 1), valueOf('ObjectMeta', 1))
  .map(([spec, metadata]) => JSON.parse(JSON.stringify({ metadata, spec })) as PodManifest);

describe('validatePod', () => {
  it('accepts a minimal pod after defaulting', () => assert.deepEqual(validatePod(defaultPod(minimal)), []));

  it('requires what defaulting fills in', () => {
    const found = validatePod(minimal).map(formatFieldError);
    assert.deepEqual(found, [
      'spec.containers[0].imagePullPolicy: Required value',
      'spec.containers[0].terminationMessagePolicy: Required value',
      'spec.restartPolicy: Required value',
      'spec.dnsPolicy: Required value',
    ]);
  });

  it('collects errors of types, names and meaning together', () => {
    const changes = {
      'metadata.name': 'A',
      'spec.priority': 'high',
      'spec.containers[0].imagee': 'x',
      'spec.containers[0].volumeMounts': [{ name: 'x', mountPath: '/a' }],
    };
    const found = validatePod(defaultPod(podWith(changes)));
    assert.deepEqual(
      found.map(({ path }) => path),
      [
        'spec.containers[0].imagee',
        'spec.priority',
        'metadata.name',
        'spec.containers[0].volumeMounts[0].name',
      ],
    );
  });

  it('does not change its input', () => {
    const pod = defaultPod(podWith({ 'metadata.labels': { a: 'b' } }));
    const before = structuredClone(pod);
    validatePod(pod);
    assert.deepEqual(pod, before);
  });

  it('never throws, whatever JSON it gets', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        for (const error of validatePod(value)) assert.equal(typeof formatFieldError(error), 'string');
        defaultPod(value as PodManifest);
      }),
    );
  });

  it('never throws on pods of the published shape; what it accepts has a name and containers', () => {
    fc.assert(
      fc.property(shaped, (manifest) => {
        const pod = defaultPod(manifest);
        const errors = validatePod(pod, { allowEphemeralContainers: true, featureEnabled: () => true });
        for (const error of errors) assert.ok(formatFieldError(error).length < 2000);
        if (errors.length > 0) return;
        assert.ok(pod.metadata?.namespace);
        assert.ok(pod.spec?.containers[0]?.image);
        staticPodReferences(pod);
      }),
      { numRuns: 300 },
    );
  });

  const many = 50_000;
  const hostile: [name: string, manifest: object][] = [
    [
      'unknown fields',
      { spec: Object.fromEntries(Array.from({ length: many }, (_, n) => [`imagee${n}`, n])) },
    ],
    ['containers without anything', { spec: { containers: Array.from({ length: many }, () => ({})) } }],
    [
      'labels',
      { metadata: { labels: Object.fromEntries(Array.from({ length: many }, (_, n) => [`a ${n}`, 'b c'])) } },
    ],
    ['a long name', podWith({ 'metadata.name': `${'a'.repeat(1_000_000)}!` })],
    ['a long image', podWith({ 'spec.containers[0].image': `${' '.repeat(1_000_000)}x` })],
    [
      'a long path',
      podWith({
        'spec.containers[0].volumeMounts': [
          { name: 'scratch', mountPath: '/', subPath: '../'.repeat(300_000) },
        ],
      }),
    ],
    [
      'a long field path',
      podWith({
        'spec.containers[0].env': [
          { name: 'A', valueFrom: { fieldRef: { fieldPath: `metadata.labels['${"']".repeat(300_000)}` } } },
        ],
      }),
    ],
    [
      'a long sysctl',
      podWith({ 'spec.securityContext': { sysctls: [{ name: 'a.'.repeat(300_000), value: '' }] } }),
    ],
    ['a long quantity', podWith({ 'spec.resources': { limits: { cpu: `${'1'.repeat(300_000)}x` } } })],
  ];
  for (const [name, manifest] of hostile) {
    it(`gives a bounded answer to a manifest with ${name}`, { timeout: 30_000 }, () => {
      const errors = validatePod(defaultPod(manifest));
      assert.ok(errors.length > 0 && errors.length <= 402);
      for (const error of errors) assert.ok(formatFieldError(error).length < 2000);
    });
  }
});

describe('defaultPod and validatePod together', () => {
  it('defaulting twice is defaulting once, and never changes the input', () => {
    fc.assert(
      fc.property(shaped, (manifest) => {
        const before = structuredClone(manifest);
        const once = defaultPod(manifest);
        assert.deepEqual(manifest, before);
        assert.deepEqual(defaultPod(once), once);
      }),
      { numRuns: 300 },
    );
  });
});
