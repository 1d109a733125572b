import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ContainerStatus, Pod, PodStatus } from '../kubernetes/types.ts';
import { runOnceVerdict } from './run-once.ts';

const pod = (restartPolicy: string): Pod => ({
  metadata: { name: 'web', namespace: 'default', uid: 'u' },
  spec: {
    restartPolicy,
    dnsPolicy: 'Default',
    terminationGracePeriodSeconds: 30,
    containers: [{ name: 'web', image: 'web' }],
  },
});
const container = (status: Partial<ContainerStatus>): ContainerStatus => ({
  name: 'web',
  image: '',
  imageID: '',
  ready: false,
  restartCount: 0,
  ...status,
});
const waiting = (reason: string): PodStatus => ({
  phase: 'Pending',
  containerStatuses: [container({ state: { waiting: { reason, message: 'why' } } })],
});
const ready: PodStatus = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };

describe('the verdict of a single run', () => {
  const table: readonly [
    what: string,
    restartPolicy: string,
    status: PodStatus | undefined,
    kind: 'ran' | 'failed' | 'pending',
    detail?: string,
  ][] = [
    ['nothing known yet', 'Always', undefined, 'pending'],
    ['on its way', 'Always', waiting('ContainerCreating'), 'pending'],
    ['ready, and meant to run for ever', 'Always', ready, 'ran', 'running'],
    ['ready, and meant to end', 'OnFailure', ready, 'pending'],
    ['done', 'Never', { phase: 'Succeeded' }, 'ran', 'succeeded'],
    ['failed', 'Never', { phase: 'Failed' }, 'failed', 'a container ended with an error'],
    ['failed for a reason', 'Never', { phase: 'Failed', reason: 'Evicted' }, 'failed', 'Evicted'],
    ['failed in words', 'Never', { phase: 'Failed', reason: 'R', message: 'too late' }, 'failed', 'too late'],
    ['an image that may come yet', 'Always', waiting('ErrImagePull'), 'pending'],
    [
      'an image that does not come',
      'Always',
      waiting('ImagePullBackOff'),
      'failed',
      'container web: ImagePullBackOff: why',
    ],
    [
      'an image that must not be pulled',
      'Always',
      waiting('ErrImageNeverPull'),
      'failed',
      'container web: ErrImageNeverPull: why',
    ],
    [
      'a name that is none',
      'Always',
      waiting('InvalidImageName'),
      'failed',
      'container web: InvalidImageName: why',
    ],
    [
      'a spec that cannot be met',
      'Always',
      waiting('CreateContainerConfigError'),
      'failed',
      'container web: CreateContainerConfigError: why',
    ],
    [
      'an init container that cannot start',
      'Always',
      { initContainerStatuses: waiting('ErrImageNeverPull').containerStatuses! },
      'failed',
      'container web: ErrImageNeverPull: why',
    ],
    ['four restarts', 'Always', { containerStatuses: [container({ restartCount: 4 })] }, 'pending'],
    [
      'five restarts',
      'Always',
      { containerStatuses: [container({ restartCount: 5, lastState: { terminated: { exitCode: 3 } } })] },
      'failed',
      'container web keeps ending, last with exit code 3',
    ],
    [
      'five restarts of nobody knows what',
      'Always',
      { containerStatuses: [container({ restartCount: 5 })] },
      'failed',
      'container web keeps ending, last with exit code unknown',
    ],
  ];
  for (const [what, restartPolicy, status, kind, detail] of table) {
    it(`${kind}: ${what}`, () => {
      assert.deepEqual(
        runOnceVerdict(pod(restartPolicy), status),
        detail === undefined ? { kind } : { kind, detail },
      );
    });
  }
});
