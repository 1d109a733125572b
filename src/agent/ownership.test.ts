import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ObservedContainer, ObservedPod } from '../runtime/observed-pod.ts';
import { isOurs, podFromRuntime, rootAnnotation } from './ownership.ts';

const owner = { rootDirectory: '/var/lib/kubelet', sources: new Set(['file', 'http']) };
const source = (name: string) => ({ 'kubernetes.io/config.source': name });

describe('whose a pod in the runtime is', () => {
  const table: readonly [what: string, annotations: Record<string, string>, ours: boolean][] = [
    ['of this agent', { ...source('file'), [rootAnnotation]: '/var/lib/kubelet' }, true],
    ['of another agent on the same runtime', { ...source('file'), [rootAnnotation]: '/other' }, false],
    ['of another kubelet, from a source that is ours', source('http'), true],
    ['of another kubelet, from a source that is not', source('api'), false],
    [
      'of this agent, from a source it no longer has',
      { ...source('api'), [rootAnnotation]: '/var/lib/kubelet' },
      false,
    ],
    ['without a source', { [rootAnnotation]: '/var/lib/kubelet' }, false],
    ['with nothing', {}, false],
  ];
  for (const [what, annotations, ours] of table) {
    it(`${what}: ${ours ? 'ours' : 'not ours'}`, () => assert.equal(isOurs(annotations, owner), ours));
  }
});

describe('a pod that only the runtime knows', () => {
  const container = (name: string, annotations: Record<string, string> = {}): ObservedContainer => ({
    id: `${name}-id`,
    name,
    sandboxId: 's',
    attempt: 0,
    state: 'Running',
    createdAt: 1,
    image: '',
    imageId: '',
    hash: '',
    annotations,
  });
  const observed = (...containers: ObservedContainer[]): ObservedPod => ({
    uid: 'uid',
    name: 'web',
    namespace: 'shop',
    sandboxes: [],
    containers,
  });
  const identity = { labels: { app: 'web' }, annotations: { ...source('file'), [rootAnnotation]: '/x' } };

  it('has the names the runtime tells, each container once, and not our own annotation', () => {
    const { metadata, spec } = podFromRuntime(
      observed(container('a'), container('b'), container('a')),
      identity,
    );
    assert.deepEqual(metadata, {
      name: 'web',
      namespace: 'shop',
      uid: 'uid',
      labels: { app: 'web' },
      annotations: source('file'),
    });
    assert.deepEqual(spec.containers, [{ name: 'a' }, { name: 'b' }]);
    assert.equal(spec.restartPolicy, 'Never');
  });

  const spec = 'io.kubernetes.pod.terminationGracePeriod';
  const deletion = 'io.kubernetes.pod.deletionGracePeriod';
  const periods: readonly [what: string, ObservedContainer[], seconds: number][] = [
    ['the period of its spec', [container('a', { [spec]: '7' })], 7],
    ['the period it was deleted with before that', [container('a', { [spec]: '7', [deletion]: '3' })], 3],
    ['the longest of its containers’', [container('a', { [spec]: '7' }), container('b', { [spec]: '9' })], 9],
    ['the default when nothing tells', [container('a')], 30],
    ['the default when what tells is no number', [container('a', { [spec]: 'long' })], 30],
    ['none when that is what it was given', [container('a', { [spec]: '0' })], 0],
    ['the default without any container', [], 30],
  ];
  for (const [what, containers, seconds] of periods) {
    it(`gets ${what}: ${seconds} s`, () => {
      const pod = podFromRuntime(observed(...containers), identity);
      assert.equal(pod.spec.terminationGracePeriodSeconds, seconds);
    });
  }
});
