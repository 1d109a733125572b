import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../kubernetes/types.ts';
import { testPod } from './fixtures/pod-model.ts';
import { fullNameOf, podVersion } from './pod-version.ts';

const pod = testPod();
const withMetadata = (metadata: Partial<Pod['metadata']>): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, ...metadata },
});

describe('the version of a pod', () => {
  const same: readonly [string, Pod][] = [
    ['the same again', testPod()],
    ['its status', { ...pod, status: { phase: 'Running' } }],
    ['when it was seen', withMetadata({ annotations: { 'kubernetes.io/config.seen': 'now' } })],
    ['its resource version', withMetadata({ resourceVersion: '7' })],
    ['labels that are empty', withMetadata({ labels: {} })],
    [
      'the order of its fields',
      { ...pod, spec: Object.fromEntries(Object.entries(pod.spec).reverse()) as unknown as Pod['spec'] },
    ],
  ];
  for (const [what, other] of same) {
    it(`does not depend on ${what}`, () => assert.equal(podVersion(other), podVersion(pod)));
  }

  const different: readonly [string, Pod][] = [
    ['its image', testPod({ containers: [{ name: 'web', image: 'web:2' }] })],
    ['any other field of the spec', testPod({ terminationGracePeriodSeconds: 31 })],
    ['a label', withMetadata({ labels: { a: 'b' } })],
    ['an annotation', withMetadata({ annotations: { a: 'b' } })],
  ];
  for (const [what, other] of different) {
    it(`changes with ${what}`, () => assert.notEqual(podVersion(other), podVersion(pod)));
  }
});

describe('the full name of a pod', () => {
  it('tells pods of one name in two namespaces apart', () => {
    assert.notEqual(fullNameOf(pod), fullNameOf(withMetadata({ namespace: 'other' })));
    assert.equal(fullNameOf(pod), fullNameOf(withMetadata({ uid: 'other' })));
  });
});
