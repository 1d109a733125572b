/** Static pods of a member of a cluster, and their mirrors in the API. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { demoImages } from '../../../../scripts/machine/demo-images.ts';
import type { Pod } from '../../../../src/kubernetes/types.ts';
import { idle, isReady } from '../../../e2e/agent.ts';
import { containerOf } from '../scenarios.ts';
import { ClusterScenarios } from './cluster-scenarios.ts';

const scenarios = new ClusterScenarios();

/** Takes this many seconds to end when it is told to. */
const slow = (seconds: number) => `trap 'sleep ${seconds}; exit' TERM; while :; do sleep 1 & wait $!; done`;

const staticPod = scenarios.staticPod.bind(scenarios);
const write = (name: string, spec: Partial<Pod['spec']> = {}) =>
  scenarios.agent.write(name, scenarios.manifest(name, spec));
const mirror = (name: string) => scenarios.agent.podReady(`${name}-node`);
const idOf = (pod: Pod | undefined, container = 'main') => containerOf(pod, container)?.containerID;
/** Waits for another mirror than the one of `uid`. */
const renewed = async (name: string, uid: string, is: (pod: Pod) => boolean = isReady): Promise<Pod> => {
  const found = await scenarios.agent.untilObject(
    `${name}-node`,
    (pod) => pod !== undefined && pod.metadata.uid !== uid && is(pod),
  );
  assert.ok(found);
  return found;
};
const container = (script: string, more = {}) =>
  scenarios.idler('main', { command: ['sh', '-c', script], ...more });

describe('a mirror pod', () => {
  const changing = staticPod('changing');
  it('[sig-node] MirrorPod when create a mirror pod should be updated when static pod updated [NodeConformance]', async () => {
    const { metadata } = await mirror(changing);
    write(changing, { containers: [scenarios.idler('main', { image: demoImages.numericUser })] });
    const pod = await renewed(changing, metadata.uid);
    assert.equal(pod.spec.containers[0]?.image, demoImages.numericUser);
    assert.equal(containerOf(pod, 'main')?.image, demoImages.numericUser);
  });

  for (const [how, options, title] of [
    [
      'gracefully',
      {},
      '[sig-node] MirrorPod when create a mirror pod should be recreated when mirror pod gracefully deleted [NodeConformance]',
    ],
    [
      'forcibly',
      { gracePeriodSeconds: 0 },
      '[sig-node] MirrorPod when create a mirror pod should be recreated when mirror pod forcibly deleted [NodeConformance]',
    ],
  ] as const) {
    const name = staticPod(`deleted-${how}`);
    it(title, async () => {
      const before = await mirror(name);
      scenarios.server.admin.delete('pods', `default/${name}-node`, options);
      const after = await renewed(name, before.metadata.uid);
      assert.equal(idOf(after), idOf(before), 'the static pod runs on');
      assert.equal(containerOf(after, 'main')?.restartCount, 0);
    });
  }

  const again = staticPod('again');
  it('[sig-node] MirrorPod when create a mirror pod without changes should successfully recreate when file is removed and recreated [NodeConformance]', async () => {
    const before = await mirror(again);
    scenarios.agent.remove(again);
    await scenarios.agent.podGone(`${again}-node`);
    write(again);
    const after = await renewed(again, before.metadata.uid);
    assert.notEqual(idOf(after), idOf(before));
  });

  const busy = staticPod('busy', {
    volumes: [{ name: 'memory', emptyDir: { medium: 'Memory' } }],
    containers: [container(idle, { volumeMounts: [{ name: 'memory', mountPath: '/memory' }] })],
  });
  it('[sig-node] MirrorPod when recreating a static pod it should launch successfully even if it temporarily failed termination due to volume failing to unmount [NodeConformance] [Serial]', async () => {
    const { agent } = scenarios;
    const before = await mirror(busy);
    const { uid } = (await agent.pod(busy))!.metadata;
    // Somebody works in the volume, so that it cannot be unmounted.
    const cwd = agent.path('root', 'pods', uid, 'volumes', 'kubernetes.io~empty-dir', 'memory');
    const holder = spawn('sleep', ['300'], { cwd, stdio: 'ignore' });
    try {
      await once(holder, 'spawn');
      agent.remove(busy);
      await agent.eventually('ended', async () =>
        (await agent.instances(uid)).every(({ finishedAt }) => finishedAt > 0n),
      );
      write(busy, {
        volumes: [{ name: 'memory', emptyDir: { medium: 'Memory' } }],
        containers: [container(idle, { volumeMounts: [{ name: 'memory', mountPath: '/memory' }] })],
      });
    } finally {
      holder.kill('SIGKILL');
      await once(holder, 'exit');
    }
    const after = await renewed(busy, before.metadata.uid);
    assert.notEqual(idOf(after), idOf(before));
  });

  const environment = staticPod('environment', {
    volumes: [{ name: 'config', emptyDir: {} }],
    initContainers: [
      scenarios.idler('writer', {
        command: ['sh', '-c', `echo "CONFIG='\\"value\\"'" >/config/config.env`],
        volumeMounts: [{ name: 'config', mountPath: '/config' }],
      }),
    ],
    containers: [
      container(idle, {
        env: [
          {
            name: 'TOLD',
            valueFrom: { fileKeyRef: { volumeName: 'config', path: 'config.env', key: 'CONFIG' } },
          },
        ],
      }),
    ],
  });
  it('[sig-node] MirrorPod with EnvFiles [NodeConformance] [FeatureGate:EnvFiles] when creating a static pod with EnvFiles should be able to consume variables from a file', async () => {
    assert.equal(await scenarios.run(`${environment}-node`, 'echo "$TOLD"'), '"value"\n');
  });
});

describe('the generation of a mirror pod', () => {
  const init = (image: string) => [scenarios.idler('init', { image, command: ['true'] })];
  type Row = readonly [
    name: string,
    before: Partial<Pod['spec']>,
    after: Partial<Pod['spec']>,
    title: string,
  ];
  const rows: readonly Row[] = [
    [
      'deadline',
      { activeDeadlineSeconds: 5000 },
      { activeDeadlineSeconds: 4000 },
      '[sig-node] MirrorPod (Pod Generation) mirror pod updates mirror pod: update activeDeadlineSeconds [NodeConformance]',
    ],
    [
      'image',
      { containers: [scenarios.idler('main')] },
      { containers: [scenarios.idler('main', { image: demoImages.numericUser })] },
      '[sig-node] MirrorPod (Pod Generation) mirror pod updates mirror pod: update container image [NodeConformance]',
    ],
    [
      'init-image',
      { initContainers: init(scenarios.image) },
      { initContainers: init(demoImages.numericUser) },
      '[sig-node] MirrorPod (Pod Generation) mirror pod updates mirror pod: update initContainer image [NodeConformance]',
    ],
  ];
  for (const [name, before, after, title] of rows) {
    const pod = staticPod(`generation-${name}`, before);
    it(title, async () => {
      const first = await mirror(pod);
      assert.equal(first.metadata.generation, 1);
      // Another manifest is another pod, with a mirror of its own.
      write(pod, after);
      const second = await renewed(pod, first.metadata.uid);
      assert.equal(second.metadata.generation, 1);
      const { spec } = second;
      assert.equal(spec.activeDeadlineSeconds, after.activeDeadlineSeconds);
      assert.equal(spec.initContainers?.[0]?.image, after.initContainers?.[0]?.image);
      assert.equal(spec.containers[0]?.image, after.containers?.[0]?.image ?? scenarios.image);
    });
  }
});

describe('the grace period of a static pod', () => {
  const graceful = (script: string, seconds = 60) => ({
    terminationGracePeriodSeconds: seconds,
    containers: [container(script)],
  });
  const deleted = staticPod('grace-deleted', graceful(slow(4)));
  it('[sig-node] MirrorPodWithGracePeriod when create a mirror pod mirror pod termination should satisfy grace period when static pod is deleted [NodeConformance]', async () => {
    await mirror(deleted);
    const since = Date.now();
    scenarios.agent.remove(deleted);
    await scenarios.agent.podGone(`${deleted}-node`);
    const took = Date.now() - since;
    assert.ok(took > 3900 && took < 60_000, `the mirror went after ${took} ms`);
  });

  const updated = staticPod('grace-updated', graceful(slow(4)));
  it('[sig-node] MirrorPodWithGracePeriod when create a mirror pod mirror pod termination should satisfy grace period when static pod is updated [NodeConformance]', async () => {
    const { metadata } = await mirror(updated);
    const since = Date.now();
    write(updated, graceful(idle));
    const after = await renewed(updated, metadata.uid);
    const started = Date.parse(containerOf(after, 'main')?.state?.running?.startedAt ?? '');
    // Stamps are whole seconds.
    assert.ok(started - since > 2900, `the next one started after ${started - since} ms`);
    assert.equal(after.spec.containers[0]?.command?.[2], idle);
  });

  const often = staticPod('grace-often', graceful(slow(5)));
  it('[sig-node] MirrorPodWithGracePeriod when create a mirror pod should update a static pod when the static pod is updated multiple times during the graceful termination period [NodeConformance]', async () => {
    const { metadata } = await mirror(often);
    const { agent } = scenarios;
    for (const round of [1, 2, 3]) {
      const script = `: round ${round}; ${idle}`;
      const noticed = agent.log.length;
      write(often, graceful(script));
      await agent.eventually('noticed', async () =>
        agent.log.slice(noticed).includes('Desired pods changed'),
      );
    }
    const after = await renewed(often, metadata.uid);
    assert.match(after.spec.containers[0]?.command?.[2] ?? '', /^: round 3;/);
    assert.equal(
      await scenarios.run(`${often}-node`, 'tr "\\0" " " </proc/1/cmdline | cut -c1-18'),
      'sh -c : round 3; t\n',
    );
  });
});

describe('an agent that starts again', () => {
  const lasting = staticPod('lasting');
  it('[sig-node] MirrorPod [Serial] when kubelet restarts should not change container status [NodeConformance]', async () => {
    const before = await mirror(lasting);
    await scenarios.restart();
    await scenarios.agent.eventually('the pod known again', async () => {
      const pod = await scenarios.agent.pod(lasting);
      return pod !== undefined && isReady(pod);
    });
    const after = await mirror(lasting);
    assert.equal(after.metadata.uid, before.metadata.uid);
    assert.deepEqual(after.status?.containerStatuses, before.status?.containerStatuses);
    assert.equal(after.status?.startTime, before.status?.startTime);
  });
});
