import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import type { ContainerStatus, Pod, PodStatus } from '../kubernetes/types.ts';
import { runOnce, runOnceVerdict } from './run-once.ts';

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
const now = Date.parse('2026-01-01T00:00:30Z');
/** A container that has run for so many seconds. */
const running = (seconds: number): PodStatus => {
  const startedAt = new Date(now - seconds * 1000).toISOString();
  return { phase: 'Running', containerStatuses: [container({ state: { running: { startedAt } } })] };
};
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
    ['running for a moment', 'OnFailure', running(9), 'pending'],
    ['running for a while', 'OnFailure', running(10), 'ran', 'running, not ready'],
    ['running for a while, for ever', 'Always', running(10), 'ran', 'running, not ready'],
    ['ready and running for a while', 'Never', { ...ready, ...running(11) }, 'ran', 'running'],
    [
      'a container that has ended well beside others',
      'Never',
      { containerStatuses: [container({ state: { terminated: { exitCode: 0 } } })] },
      'ran',
      'running, not ready',
    ],
    [
      'a container that has ended badly beside others',
      'Never',
      { containerStatuses: [container({ state: { terminated: { exitCode: 1 } } })] },
      'pending',
    ],
    ['no container known', 'Never', { phase: 'Pending', containerStatuses: [] }, 'pending'],
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
        runOnceVerdict(pod(restartPolicy), status, { now, since: now - 60_000 }),
        detail === undefined ? { kind } : { kind, detail },
      );
    });
  }
});

describe('a single run', () => {
  /** Runs with one pod of this policy; `status` tells how it is after so many seconds. */
  async function outcome(policy: string, status: (seconds: number) => PodStatus | undefined) {
    const clock = new VirtualClock();
    const began = clock.now();
    const lines: string[] = [];
    const agent = {
      sources: { pods: new Map([['u', pod(policy)]]), ready: true, errors: [] },
      workers: { get: () => ({ status: status((clock.now() - began) / 1000) }) },
    };
    const run = runOnce(agent, clock, (line) => lines.push(line));
    await settle();
    for (let next = clock.nextTimer(); next !== undefined; next = clock.nextTimer()) {
      await clock.advance(next - clock.now());
      await settle();
    }
    const code = await run;
    return { code, lines, seconds: (clock.now() - began) / 1000 };
  }

  it('ends for a pod that may end and stays up', async () => {
    const clock = new VirtualClock();
    const startedAt = new Date(clock.now()).toISOString();
    const status: PodStatus = {
      phase: 'Running',
      containerStatuses: [container({ state: { running: { startedAt } } })],
    };
    const { code, lines, seconds } = await outcome('OnFailure', () => status);
    assert.deepEqual([code, lines, seconds], [0, ['default/web\tran\trunning, not ready'], 10]);
  });

  it('fails for a pod that falls while it is watched', async () => {
    const { code, lines } = await outcome('Never', (seconds) => ({
      phase: seconds < 3 ? 'Running' : 'Failed',
      containerStatuses: [],
    }));
    assert.deepEqual([code, lines], [1, ['default/web\tfailed\ta container ended with an error']]);
  });

  it('gives a pod up that never comes', async () => {
    const { code, lines, seconds } = await outcome('Always', () => waiting('ContainerCreating'));
    assert.equal(code, 1);
    assert.deepEqual(lines, [
      'default/web\tfailed\tnot running after 1023 s: container web: ContainerCreating',
    ]);
    assert.ok(seconds >= 1023 && seconds < 1024);
  });
});
