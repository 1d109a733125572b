import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PodManifest } from '../types.ts';
import { FieldErrors, formatFieldError } from './field-error.ts';
import { podWith, testCases } from './pod-cases.ts';
import { checkPodStructure, normalizePod } from './pod-structure.ts';

const c = 'spec.containers[0]';

function check(manifest: unknown): { pod: PodManifest; texts: string[] } {
  const errors = new FieldErrors();
  const { pod } = checkPodStructure(manifest, errors);
  return { pod, texts: errors.list().map(formatFieldError) };
}

describe('types of fields', () => {
  testCases([
    [{ [`${c}.image`]: 5 }, `Invalid ${c}.image`],
    [{ [`${c}.args`]: ['a', 1] }, `Invalid ${c}.args[1]`],
    [{ [`${c}.args`]: 'a' }, `Invalid ${c}.args`],
    [{ [`${c}.tty`]: 'yes' }, `Invalid ${c}.tty`],
    [{ [`${c}.env`]: [{ name: 'A', value: 1 }] }, `Invalid ${c}.env[0].value`],
    [{ [`${c}.env`]: { A: 'b' } }, `Invalid ${c}.env`],
    [{ [`${c}.resources`]: { limits: { cpu: true } } }, `Invalid ${c}.resources.limits[cpu]`],
    [{ [`${c}.resources`]: { limits: { cpu: 'lots' } } }, `Invalid ${c}.resources.limits[cpu]`],
    [{ [`${c}.resources`]: { limits: { cpu: '1'.repeat(10_000) } } }, `Invalid ${c}.resources.limits[cpu]`],
    [
      { [`${c}.livenessProbe`]: { exec: { command: ['a'] }, periodSeconds: 1.5 } },
      `Invalid ${c}.livenessProbe.periodSeconds`,
    ],
    [{ [`${c}.livenessProbe`]: { tcpSocket: { port: true } } }, `Invalid ${c}.livenessProbe.tcpSocket.port`],
    [{ 'spec.priority': 2 ** 31 }, 'Invalid spec.priority'],
    [{ 'spec.terminationGracePeriodSeconds': '30' }, 'Invalid spec.terminationGracePeriodSeconds'],
    [{ 'metadata.labels': { a: 1 } }, 'Invalid metadata.labels[a]'],
    [{ 'metadata.creationTimestamp': '2026-01-02T03:04:05Z' }],
    [{ 'metadata.creationTimestamp': 'yesterday' }, 'Invalid metadata.creationTimestamp'],
    [{ 'spec.containers': 'app' }, 'Invalid spec.containers'],
    [{ spec: [] }, 'Invalid spec'],
    [{ metadata: 'web' }, 'Invalid metadata'],
    [{ 'spec.volumes[0]': 'scratch' }, 'Invalid spec.volumes[0]'],
    [{ 'spec.volumes[0].emptyDir': 'x' }, 'Invalid spec.volumes[0].emptyDir'],
  ]);

  it('reports nothing that only follows from a wrong type', () => {
    const mount = { [`${c}.volumeMounts`]: [{ name: '5', mountPath: '/a' }] };
    const { texts } = check(podWith({ 'spec.volumes[0].name': 5, ...mount }));
    assert.equal(texts.length, 1);
  });

  it('says what to do about a number or boolean where text is wanted', () => {
    const { texts } = check({ metadata: { labels: { on: true } } });
    assert.deepEqual(texts, [
      'metadata.labels[on]: Invalid value: true: must be a string, not a boolean; write it in quotes',
    ]);
  });

  for (const value of [null, undefined, 5, 'pod', [], true]) {
    it(`refuses ${JSON.stringify(value)} as a pod`, () =>
      assert.match(check(value).texts[0] ?? '', /^pod: Invalid/));
  }
});

describe('unknown fields', () => {
  it('names the nearest known one', () => {
    const { texts } = check({ spec: { containers: [{ imagee: 'x' }], restartpolicy: 'Never', zzzzzz: 1 } });
    assert.deepEqual(texts, [
      `${c}.imagee: Forbidden: unknown field; did you mean "image"?`,
      'spec.restartpolicy: Forbidden: unknown field; did you mean "restartPolicy"?',
      'spec.zzzzzz: Forbidden: unknown field',
    ]);
  });

  it('is not misled by names that every object has', () => {
    const manifest = JSON.parse('{"constructor": 1, "__proto__": {"spec": 1}, "toString": 2}') as unknown;
    assert.deepEqual(
      check(manifest).texts.map((text) => text.split(':')[0]),
      ['constructor', '__proto__', 'toString'],
    );
  });

  it('does not look into the status', () => assert.deepEqual(check({ status: { anything: 1 } }).texts, []));
});

describe('normal form', () => {
  const normalize = (manifest: object) => normalizePod(manifest);

  it('takes nulls for absent, and for empty values in lists and maps', () => {
    const manifest = {
      metadata: { creationTimestamp: null, labels: { a: null } },
      spec: {
        nodeName: null,
        containers: [null, { args: [null], resources: { limits: { cpu: null } }, env: [null] }],
      },
    };
    assert.deepEqual(normalize(manifest), {
      metadata: { labels: { a: '' } },
      spec: { containers: [{}, { args: [''], resources: { limits: { cpu: '0' } }, env: [{}] }] },
    });
  });

  it('writes quantities canonically, and rounds resources up to a thousandth', () => {
    const limits = { cpu: 0.5, memory: '1024Ki', 'example.com/x': '0.0001', 'ephemeral-storage': '1e3' };
    const manifest = { spec: { containers: [{ resources: { limits } }], overhead: { cpu: '1000m' } } };
    assert.deepEqual(normalize(manifest), {
      spec: {
        containers: [
          {
            resources: {
              limits: { cpu: '500m', memory: '1Mi', 'example.com/x': '1m', 'ephemeral-storage': '1e3' },
            },
          },
        ],
        overhead: { cpu: '1' },
      },
    });
  });

  it('keeps what is wrong, for validation to report', () => {
    const manifest = { spec: { containers: 'x', priority: 'high', unknown: [null] } };
    assert.deepEqual(normalize(manifest), manifest);
  });

  it('keeps a label named __proto__ a label', () => {
    const manifest = JSON.parse('{"metadata":{"labels":{"__proto__":"x"}}}') as object;
    const labels = normalize(manifest).metadata?.labels ?? {};
    assert.deepEqual(Object.entries(labels), [['__proto__', 'x']]);
    assert.equal(Object.getPrototypeOf(labels), Object.prototype);
  });
});
