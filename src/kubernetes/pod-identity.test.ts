import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { containerFieldPath, findContainer, podContainers } from './init-containers.ts';
import {
  isCriticalPod,
  isMirrorPod,
  isNodeCriticalPod,
  isStaticPod,
  podKey,
  podLogDirectoryName,
} from './pod-identity.ts';

const annotated = (annotations: Record<string, string>, priority?: number, priorityClassName?: string) => ({
  metadata: { name: 'web', namespace: 'default', uid: 'u-1', annotations },
  spec: {
    ...(priority === undefined ? {} : { priority }),
    ...(priorityClassName ? { priorityClassName } : {}),
  },
});

suite('pod identity', () => {
  test('a static pod comes from anywhere but the API server', () => {
    assert.equal(isStaticPod(annotated({ 'kubernetes.io/config.source': 'file' })), true);
    assert.equal(isStaticPod(annotated({ 'kubernetes.io/config.source': 'http' })), true);
    assert.equal(isStaticPod(annotated({ 'kubernetes.io/config.source': 'api' })), false);
    assert.equal(isStaticPod(annotated({})), false);
    assert.equal(isStaticPod({}), false);
  });

  test('static, mirror and high-priority pods are critical', () => {
    assert.equal(isCriticalPod(annotated({ 'kubernetes.io/config.source': 'file' })), true);
    const mirror = annotated({ 'kubernetes.io/config.source': 'api', 'kubernetes.io/config.mirror': 'abc' });
    assert.equal(isMirrorPod(mirror), true);
    assert.equal(isCriticalPod(mirror), true);
    assert.equal(isCriticalPod(annotated({}, 2_000_000_000)), true);
    assert.equal(isCriticalPod(annotated({}, 1_999_999_999)), false);
    assert.equal(isNodeCriticalPod(annotated({}, 2_000_001_000, 'system-node-critical')), true);
    assert.equal(isNodeCriticalPod(annotated({}, 2_000_000_000, 'system-cluster-critical')), false);
  });

  test('names', () => {
    assert.equal(podKey(annotated({})), 'default/web');
    assert.equal(podLogDirectoryName(annotated({})), 'default_web_u-1');
    assert.equal(podLogDirectoryName(annotated({ 'kubernetes.io/config.hash': 'h-1' })), 'default_web_h-1');
  });
});

suite('containers of a pod', () => {
  const spec = {
    initContainers: [{ name: 'setup' }, { name: 'proxy', restartPolicy: 'Always' }],
    containers: [{ name: 'web' }],
    ephemeralContainers: [{ name: 'debug' }],
  };

  test('are walked in order, with the path events use', () => {
    assert.deepEqual(
      [...podContainers(spec)].map(({ container, kind, fieldPath }) => [container.name, kind, fieldPath]),
      [
        ['setup', 'init', 'spec.initContainers{setup}'],
        ['proxy', 'sidecar', 'spec.initContainers{proxy}'],
        ['web', 'regular', 'spec.containers{web}'],
        ['debug', 'ephemeral', 'spec.ephemeralContainers{debug}'],
      ],
    );
  });

  test('are found by name', () => {
    assert.equal(findContainer(spec, 'proxy')?.kind, 'sidecar');
    assert.equal(containerFieldPath(spec, 'web'), 'spec.containers{web}');
    assert.equal(containerFieldPath(spec, 'nobody'), undefined);
  });
});
