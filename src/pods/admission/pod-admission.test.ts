import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { amountsOf } from '../../kubernetes/pod-resources.ts';
import type { Pod, PodStatus } from '../../kubernetes/types.ts';
import type { ObservedPod } from '../../runtime/observed-pod.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import { testPod } from '../fixtures/pod-model.ts';
import type { PodRecord } from '../pod-records.ts';
import type { TerminalVerdict } from '../pod-view.ts';
import { PodWorkers } from '../pod-workers.ts';
import { PodAdmission } from './pod-admission.ts';

/** A pod that listens on port 80 of the node. */
function listening(name: string, annotations: Record<string, string> = {}): Pod {
  const ports = [{ containerPort: 80, hostPort: 80 }];
  const pod = testPod({ containers: [{ name: 'web', image: 'web:1', ports }] });
  return { ...pod, metadata: { ...pod.metadata, name, uid: `uid-${name}`, annotations } };
}

/** Workers on a node where nothing that is made ever shows up but what a test puts there. */
function startNode(given: { records?: PodRecord[]; running?: Pod[] } = {}) {
  const clock = new VirtualClock();
  const events: string[] = [];
  const counted: string[] = [];
  const done: string[] = [];
  const statuses = new Map<string, PodStatus>();
  const running = new Set((given.running ?? []).map(({ metadata }) => metadata.uid));
  const admission = new PodAdmission({
    node: {
      name: 'node',
      kernelRelease: '6.1.0',
      allocatable: amountsOf({ cpu: '1', memory: '1Gi', pods: '10' }),
      allowedUnsafeSysctls: [],
      strictGroups: false,
      appArmor: false,
      podLevelResources: true,
    },
    events: {
      event: ({ name }, type, reason, message) => events.push(`${name} ${type} ${reason}: ${message}`),
    },
    metrics: {
      ...silentMetrics,
      counter: ({ name }) => ({
        inc: (labels) => counted.push(`${name} ${labels?.['reason']}`),
        remove() {},
      }),
    },
    logger: silentLogger,
  });
  const observe = (uid: string): ObservedPod => {
    const container = {
      id: `c-${uid}`,
      name: 'web',
      sandboxId: `s-${uid}`,
      attempt: 0,
      state: 'Running',
      createdAt: clock.now(),
      image: 'web:1',
      imageId: 'sha256:1',
      hash: '',
      annotations: {},
    } as const;
    return { uid, name: '', namespace: '', sandboxes: [], containers: running.has(uid) ? [container] : [] };
  };
  const asked: string[] = [];
  const workers = new PodWorkers({
    logger: silentLogger,
    records: given.records ?? [],
    leftovers: () => [],
    onGone: () => {},
    refuse: (pod, others) => {
      asked.push(pod.metadata.name);
      return admission.refuse(pod, others);
    },
    ports: {
      clock,
      logger: silentLogger,
      observe,
      health: () => ({}),
      nodeRules: () => ({ maxRestartBackoffMs: 300_000, deadContainersKept: 1, restartAllContainers: false }),
      execute: async ({ kind }, { pod }) => {
        done.push(`${pod.metadata.name} ${kind}`);
        return { ok: true };
      },
      readMessages: async () => ({}),
      report: ({ pod, status }) => statuses.set(pod.metadata.name, status),
      runtimeName: 'containerd',
      hostIps: [],
    },
  });
  return {
    workers,
    events,
    counted,
    done,
    asked,
    running,
    phase: (name: string) => statuses.get(name)?.phase,
    status: (name: string) => statuses.get(name),
    async want(...pods: Pod[]) {
      workers.setDesired(new Map(pods.map((pod) => [pod.metadata.uid, pod])), true);
      await settle();
    },
  };
}

const taken = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
const recordOf = (pod: Pod, terminal?: TerminalVerdict): PodRecord => ({
  pod,
  startTime: 0,
  ...(terminal && { terminal }),
});

suite('admission of pods to their workers', () => {
  test('a refused pod fails, says why, and nothing is made of it', async () => {
    const node = startNode();
    await node.want(listening('first'), listening('second'));
    assert.equal(node.phase('first'), 'Pending');
    const { phase, reason, message } = node.status('second') ?? {};
    assert.deepEqual(
      { phase, reason, message },
      {
        phase: 'Failed',
        reason: 'NodePorts',
        message: `Pod was rejected: ${taken}`,
      },
    );
    assert.deepEqual(node.events, [`second Warning NodePorts: ${taken}`]);
    assert.deepEqual(node.counted, ['kubelet_admission_rejections_total NodePorts']);
    const made = node.done.filter((action) => action.startsWith('second'));
    assert.deepEqual(made, ['second tear-down']);
    assert.deepEqual(Object.keys(node.status('second') ?? {}).sort(), [
      'message',
      'phase',
      'qosClass',
      'reason',
      'startTime',
    ]);
    node.workers.close();
  });

  test('it is asked once, and a refused pod holds nothing', async () => {
    const node = startNode();
    const both = [listening('first'), listening('second')];
    await node.want(...both);
    await node.want(...both);
    assert.deepEqual(node.asked, ['first', 'second']);
    await node.want(both[1]!, listening('third'));
    assert.equal(node.phase('second'), 'Failed');
    assert.equal(node.phase('third'), 'Pending');
    node.workers.close();
  });

  test('what a pod that left its source holds is free, as in a manifest under a new name', async () => {
    const node = startNode();
    await node.want(listening('old'));
    node.running.add('uid-old');
    await node.want(listening('new'));
    assert.equal(node.phase('new'), 'Pending');
    node.workers.close();
  });

  test('adopted pods keep their place whatever the order they are told in', async () => {
    const adopted = listening('adopted');
    for (const given of [{ records: [recordOf(adopted)] }, { running: [adopted] }]) {
      const node = startNode(given);
      await node.want(listening('newcomer'), adopted);
      assert.deepEqual(node.asked, ['newcomer']);
      assert.equal(node.phase('newcomer'), 'Failed');
      assert.notEqual(node.phase('adopted'), 'Failed');
      node.workers.close();
    }
  });

  test('a pod known from its record alone holds its place until its source has spoken', async () => {
    const silent = listening('silent');
    const node = startNode({ records: [recordOf(silent)] });
    const newcomer = listening('newcomer');
    node.workers.setDesired(new Map([[newcomer.metadata.uid, newcomer]]), false);
    await settle();
    assert.equal(node.phase('newcomer'), 'Failed');
    node.workers.close();
  });

  test('a pod that has come to its end stays so after a restart, and holds nothing', async () => {
    const over = listening('over');
    const verdict: TerminalVerdict = { phase: 'Failed', reason: 'DeadlineExceeded', message: 'x' };
    const node = startNode({ records: [recordOf(over, verdict)] });
    await node.want(over, listening('other'));
    assert.equal(node.phase('over'), 'Failed');
    assert.equal(node.phase('other'), 'Pending');
    assert.deepEqual(node.asked, ['other']);
    node.workers.close();
  });

  test('a static pod that was refused is let in when its manifest no longer clashes', async () => {
    const node = startNode();
    const refused = listening('refused', { 'kubernetes.io/config.source': 'file' });
    await node.want(listening('first'), refused);
    assert.equal(node.phase('refused'), 'Failed');
    const changed = { ...refused, spec: testPod().spec };
    await node.want(listening('first'), changed);
    assert.equal(node.phase('refused'), 'Pending');
    node.workers.close();
  });
});
