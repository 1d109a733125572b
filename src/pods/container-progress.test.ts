import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerHash } from '../kubernetes/hash.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { ObservedContainer } from '../runtime/observed-pod.ts';
import { containerProgress } from './container-progress.ts';
import { emptyMemory, type PodIntent, type PodMemory } from './pod-view.ts';

const container = { name: 'main', image: 'busybox' };

interface Case {
  policy?: string;
  instances?: Partial<ObservedContainer>[];
  intent?: PodIntent;
  memory?: Partial<PodMemory>;
}

function progress({ policy = 'Always', instances = [], intent = { kind: 'run' }, memory }: Case) {
  const pod = {
    metadata: { name: 'web', namespace: 'shop', uid: 'u' },
    spec: { restartPolicy: policy, containers: [container] },
  } as unknown as Pod;
  const containers = instances.map((instance, index) => ({
    id: `c${index}`,
    name: 'main',
    attempt: index,
    createdAt: index,
    state: 'Exited',
    exitCode: 0,
    hash: containerHash(container),
    ...instance,
  })) as ObservedContainer[];
  const observed = { uid: 'u', name: 'web', namespace: 'shop', sandboxes: [], containers };
  return containerProgress({ pod, intent, memory: { ...emptyMemory, ...memory } }, observed, 'main');
}

test('tells whether the newest instance runs and whether another will come', () => {
  const running = { state: 'Running' as const };
  const over = { terminal: { phase: 'Failed' as const } };
  const ending: PodIntent = { kind: 'terminate', cause: 'deleted', since: 0, graceSeconds: 5 };
  const cases: [Case, ReturnType<typeof progress>][] = [
    [{}, undefined],
    [{ instances: [{}, running] }, { attempt: 1, isRunning: true, continues: true }],
    [{ instances: [{ state: 'Created' }] }, { attempt: 0, isRunning: true, continues: true }],
    [{ instances: [{}] }, { attempt: 0, isRunning: false, continues: true }],
    [
      { policy: 'Never', instances: [{}] },
      { attempt: 0, isRunning: false, continues: false },
    ],
    [
      { policy: 'OnFailure', instances: [{}] },
      { attempt: 0, isRunning: false, continues: false },
    ],
    [
      { policy: 'OnFailure', instances: [{ exitCode: 1 }] },
      { attempt: 0, isRunning: false, continues: true },
    ],
    [
      { policy: 'Never', instances: [{ hash: 'old' }] },
      { attempt: 0, isRunning: false, continues: true },
    ],
    [
      { instances: [{}], memory: over },
      { attempt: 0, isRunning: false, continues: false },
    ],
    [
      { instances: [running], intent: ending },
      { attempt: 0, isRunning: true, continues: false },
    ],
  ];
  for (const [given, expected] of cases) assert.deepEqual(progress(given), expected, JSON.stringify(given));
});
