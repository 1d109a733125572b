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
import type { NodeState } from './admission.ts';
import { PodAdmission, preempted, waitLimits } from './pod-admission.ts';

/** A pod that listens on port 80 of the node. */
function listening(name: string, annotations: Record<string, string> = {}): Pod {
  const ports = [{ containerPort: 80, hostPort: 80 }];
  const pod = testPod({ containers: [{ name: 'web', image: 'web:1', ports }] });
  return { ...pod, metadata: { ...pod.metadata, name, uid: `uid-${name}`, annotations } };
}

/** Workers on a node where nothing that is made ever shows up but what a test puts there. */
function startNode(given: { records?: PodRecord[]; running?: Pod[]; state?: Partial<NodeState> } = {}) {
  let state: NodeState = {
    placement: { labels: {}, taints: [], known: true },
    missingDevices: new Set(),
    pressures: [],
    shuttingDown: false,
    ...given.state,
  };
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
      comparedTaints: false,
      undeclaredFeatures: [],
    },
    state: () => state,
    clock,
    events: {
      event: ({ name }, type, reason, message) => events.push(`${name} ${type} ${reason}: ${message}`),
    },
    metrics: {
      ...silentMetrics,
      counter: ({ name }) => ({
        inc: (labels) => counted.push(`${name} ${Object.values(labels ?? {}).join()}`),
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
    admit: (pod, occupants, held) => {
      asked.push(pod.metadata.name);
      return admission.decide(pod, occupants, held);
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
    clock,
    workers,
    events,
    become(changed: Partial<NodeState>) {
      state = { ...state, ...changed };
      workers.reconsider();
      return settle();
    },
    /** The last process of the pod has ended. */
    exit(name: string) {
      running.delete(`uid-${name}`);
      workers.wake(`uid-${name}`);
      return settle();
    },
    condition: (name: string, type: string) => {
      const found = statuses.get(name)?.conditions?.find((condition) => condition.type === type);
      return `${found?.status} ${found?.reason}: ${found?.message}`;
    },
    waiting: (name: string) => statuses.get(name)?.containerStatuses?.[0]?.state?.waiting,
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

suite('waiting to be admitted', () => {
  const message = `NodePorts: ${taken}; waiting for pods to end that still hold it: default/first`;

  async function withLeavingPod() {
    const node = startNode();
    await node.want(listening('first'));
    node.running.add('uid-first');
    await node.want(listening('second'));
    return node;
  }

  test('for a pod that is ending: told in status and event, nothing is done, and no record is left', async () => {
    const node = await withLeavingPod();
    assert.equal(node.phase('second'), 'Pending');
    assert.deepEqual(node.waiting('second'), { reason: 'AdmissionPending', message });
    assert.equal(node.condition('second', 'PodReadyToStartContainers'), `False AdmissionPending: ${message}`);
    assert.deepEqual(node.events, [`second Warning AdmissionPending: ${message}`]);
    assert.deepEqual(node.counted, []);
    assert.deepEqual(
      node.done.filter((action) => action.startsWith('second')),
      [],
    );
    node.workers.close();
  });

  test('it goes on with the event that makes room, not with time', async () => {
    const node = await withLeavingPod();
    await node.exit('first');
    assert.ok(node.done.includes('second write-record'));
    assert.equal(node.waiting('second')?.reason, 'ContainerCreating');
    assert.deepEqual(node.counted, []);
    node.workers.close();
    assert.equal(node.clock.nextTimer(), undefined);
  });

  test('a pod no source wants any more holds up nobody for longer than the limit', async () => {
    const node = await withLeavingPod();
    await node.clock.advance(waitLimits['ending-pods'] - 1);
    assert.equal(node.waiting('second')?.reason, 'AdmissionPending');
    await node.clock.advance(1);
    await settle();
    // Kubernetes would not have counted it in the first place.
    assert.equal(node.waiting('second')?.reason, 'ContainerCreating');
    node.workers.close();
  });

  test('a pod whose object is still there does, and then the reason is Kubernetes’ own', async () => {
    const node = startNode();
    const first = listening('first');
    await node.want(first);
    node.running.add('uid-first');
    const deleted = {
      ...first,
      metadata: {
        ...first.metadata,
        deletionTimestamp: new Date(0).toISOString(),
        deletionGracePeriodSeconds: 3600,
      },
    };
    await node.want(deleted, listening('second'));
    assert.equal(node.waiting('second')?.reason, 'AdmissionPending');
    await node.clock.advance(waitLimits['ending-pods']);
    await settle();
    assert.equal(node.phase('second'), 'Failed');
    assert.equal(node.status('second')?.reason, 'NodePorts');
    assert.equal(node.status('second')?.message, `Pod was rejected: ${taken}`);
    assert.deepEqual(node.counted, ['kubelet_admission_rejections_total NodePorts']);
    node.workers.close();
  });

  test('a pod that runs is not waited for', async () => {
    const node = startNode();
    await node.want(listening('first'));
    node.running.add('uid-first');
    await node.want(listening('first'), listening('second'));
    assert.equal(node.phase('second'), 'Failed');
    node.workers.close();
  });

  test('those that wait hold nothing: one that fits goes first, and of two that do not the earlier', async () => {
    const node = await withLeavingPod();
    const third = testPod({ containers: [{ name: 'web', image: 'web:1' }] });
    const small = { ...third, metadata: { ...third.metadata, name: 'small', uid: 'uid-small' } };
    const later = listening('later');
    await node.want(listening('second'), small, later);
    assert.ok(node.done.includes('small write-record'));
    assert.equal(node.waiting('later')?.reason, 'AdmissionPending');
    await node.exit('first');
    assert.ok(node.done.includes('second write-record'));
    assert.equal(node.phase('later'), 'Failed');
    node.workers.close();
  });

  test('for a device plugin to register again, and in vain', async () => {
    const wanting = testPod({
      containers: [{ name: 'web', image: 'web:1', resources: { limits: { 'example.com/gpu': '1' } } }],
    });
    const pod = { ...wanting, metadata: { ...wanting.metadata, name: 'gpu', uid: 'uid-gpu' } };
    const missing = { missingDevices: new Set(['example.com/gpu']) };
    const node = startNode({ state: missing });
    await node.want(pod);
    assert.match(
      node.waiting('gpu')?.message ?? '',
      /unhealthy devices example.com\/gpu.*; waiting for its device/,
    );
    await node.become({ missingDevices: new Set() });
    assert.ok(node.done.includes('gpu write-record'));
    node.workers.close();

    const forlorn = startNode({ state: missing });
    await forlorn.want(pod);
    await forlorn.clock.advance(waitLimits['device-plugin']);
    await settle();
    assert.equal(forlorn.status('gpu')?.reason, 'UnexpectedAdmissionError');
    forlorn.workers.close();
    assert.equal(forlorn.clock.nextTimer(), undefined);
  });

  test('for the labels of the node, as long as it takes, and then by what they are', async () => {
    const labels = { zone: 'a' };
    for (const [zone, phase] of [
      ['a', 'Pending'],
      ['b', 'Failed'],
    ] as const) {
      const node = startNode({ state: { placement: { labels: {}, taints: [], known: false } } });
      const pod = testPod({ nodeSelector: { zone }, containers: [{ name: 'web', image: 'web:1' }] });
      await node.want(pod);
      const { name } = pod.metadata;
      await node.clock.advance(24 * 3_600_000);
      assert.match(node.waiting(name)?.message ?? '', /^NodeAffinity: .*labels of this node/);
      assert.equal(node.events.length, 1);
      await node.become({ placement: { labels, taints: [], known: true } });
      assert.equal(node.phase(name), phase);
      assert.equal(node.status(name)?.reason, phase === 'Failed' ? 'NodeAffinity' : undefined);
      node.workers.close();
    }
  });

  test('a pod that is deleted while it waits is gone at once', async () => {
    const node = await withLeavingPod();
    await node.want();
    assert.equal(node.workers.get('uid-second'), undefined);
    await node.exit('first');
    assert.ok(!node.done.includes('second prepare-pod'));
    node.workers.close();
    assert.equal(node.clock.nextTimer(), undefined);
  });

  test('after a restart it is asked again', async () => {
    const node = await withLeavingPod();
    node.workers.close();
    const next = startNode({ running: [listening('first')], records: [recordOf(listening('first'))] });
    await next.want(listening('second'));
    assert.equal(next.waiting('second')?.reason, 'AdmissionPending');
    await next.exit('first');
    assert.ok(next.done.includes('second write-record'));
    next.workers.close();
  });
});

suite('a critical pod that does not fit', () => {
  /** Asks for so many milli-CPUs of the node's 1000. */
  function using(name: string, cpu: number, spec: Partial<Pod['spec']> = {}): Pod {
    const resources = { requests: { cpu: `${cpu}m` } };
    const pod = testPod({ containers: [{ name: 'web', image: 'web:1', resources }], ...spec });
    return { ...pod, metadata: { ...pod.metadata, name, uid: `uid-${name}` } };
  }
  const critical = (cpu = 800, spec: Partial<Pod['spec']> = {}) =>
    using('critical', cpu, { priority: 2_000_001_000, ...spec });
  const victim = using('victim', 500, { terminationGracePeriodSeconds: 7 });
  const bystander = using('bystander', 100);

  async function withRunning(...pods: Pod[]) {
    const node = startNode();
    await node.want(...pods);
    for (const { metadata } of pods) node.running.add(metadata.uid);
    return node;
  }

  test('has the least of the others end, says why, and goes on when they have', async () => {
    const node = await withRunning(victim, bystander);
    await node.want(victim, bystander, critical());
    assert.deepEqual(node.workers.get('uid-victim')?.memory.terminal, {
      phase: 'Failed',
      reason: 'Preempting',
      message: 'Preempted in order to admit critical pod',
      disruption: 'This node has ended the pod to make room for a critical one.',
      graceSeconds: 7,
    });
    assert.equal(node.events[0], 'victim Warning Preempting: Preempted in order to admit critical pod');
    assert.deepEqual(node.counted, ['kubelet_preemptions cpu']);
    assert.equal(node.phase('victim'), 'Running', 'the end is told once it has come');
    assert.equal(node.condition('victim', 'DisruptionTarget'), 'undefined undefined: undefined');
    assert.equal(node.waiting('critical')?.reason, 'AdmissionPending');

    // What is being freed is kept for the critical pod.
    await node.want(victim, bystander, critical(), using('late', 300));
    assert.equal(node.status('late')?.reason, 'OutOfcpu');

    await node.exit('victim');
    assert.equal(node.phase('victim'), 'Failed');
    assert.equal(node.status('victim')?.reason, 'Preempting');
    assert.equal(
      node.condition('victim', 'DisruptionTarget'),
      'True TerminationByKubelet: This node has ended the pod to make room for a critical one.',
    );
    assert.ok(node.done.includes('critical write-record'));
    assert.equal(node.workers.get('uid-bystander')?.memory.terminal, undefined);
    assert.equal(node.counted.length, 2, 'it is told once');
    node.workers.close();
    assert.equal(node.clock.nextTimer(), undefined);
  });

  test('has one end that is known from its record alone, and that its source tells of later', async () => {
    const node = startNode({ records: [recordOf(victim)], running: [victim] });
    const wanted = new Map([['uid-critical', critical()]]);
    node.workers.setDesired(wanted, false);
    await settle();
    assert.equal(node.workers.get('uid-victim')?.memory.terminal?.reason, 'Preempting');
    assert.equal(node.waiting('critical')?.reason, 'AdmissionPending');
    await node.want(victim, critical());
    await node.exit('victim');
    assert.equal(node.status('victim')?.reason, 'Preempting');
    assert.ok(node.done.includes('critical write-record'));
    node.workers.close();
  });

  test('and another one, at once: each makes its own room, and no more', async () => {
    const first = critical(400);
    const second = { ...first, metadata: { ...first.metadata, name: 'second', uid: 'uid-second' } };
    const victims = ['one', 'two'].map((name) => using(name, 500));
    const node = await withRunning(...victims);
    await node.want(...victims, first, second);
    assert.equal(node.counted.length, 2);
    for (const name of ['one', 'two']) await node.exit(name);
    assert.ok(node.done.includes('critical write-record'));
    assert.ok(node.done.includes('second write-record'));
    node.workers.close();

    // Both fit into what one of them leaves.
    const small = [critical(200), { ...critical(200), metadata: second.metadata }];
    const roomy = await withRunning(...victims);
    await roomy.want(...victims, ...small);
    assert.equal(roomy.counted.length, 1);
    roomy.workers.close();
  });

  test('is admitted at once when those that go have nothing running', async () => {
    const node = startNode();
    await node.want(victim);
    await node.want(victim, critical());
    assert.equal(node.phase('victim'), 'Failed');
    assert.ok(node.done.includes('critical write-record'));
    node.workers.close();
  });

  test('does not wait for ever for one that hangs', async () => {
    const node = await withRunning(victim);
    await node.want(victim, critical());
    await node.clock.advance(waitLimits['ending-pods']);
    await settle();
    assert.ok(node.done.includes('critical write-record'));
    node.workers.close();
  });

  test('waits for pods that end anyway before anybody has to', async () => {
    const node = await withRunning(victim, bystander);
    await node.want(bystander, critical());
    assert.equal(node.waiting('critical')?.reason, 'AdmissionPending');
    assert.deepEqual(node.counted, []);
    await node.exit('victim');
    assert.ok(node.done.includes('critical write-record'));
    node.workers.close();
  });

  test('and others must not end for it, is refused as in Kubernetes', async () => {
    const node = await withRunning(victim);
    await node.want(victim, critical(1001));
    assert.equal(node.status('critical')?.reason, 'UnexpectedAdmissionError');
    assert.match(
      node.status('critical')?.message ?? '',
      /all that may end for this one would not free 501 of cpu$/,
    );
    assert.equal(node.workers.get('uid-victim')?.memory.terminal, undefined);

    node.workers.close();

    const kept = await withRunning(victim);
    await kept.want(victim, critical(800, { nodeSelector: { zone: 'far' } }));
    assert.equal(kept.status('critical')?.reason, 'NodeAffinity');
    assert.equal(kept.workers.get('uid-victim')?.memory.terminal, undefined);
    kept.workers.close();
  });

  test('and is not critical, is only refused', async () => {
    const node = await withRunning(victim);
    await node.want(victim, critical(800, { priority: 1_999_999_999 }));
    assert.equal(node.status('critical')?.reason, 'OutOfcpu');
    assert.equal(node.workers.get('uid-victim')?.memory.terminal, undefined);
    node.workers.close();
  });

  test('the condition of the preempted pod outlives a restart of the agent', async () => {
    const node = startNode({ records: [recordOf(victim, preempted)] });
    await node.want(victim);
    assert.match(node.condition('victim', 'DisruptionTarget'), /^True TerminationByKubelet/);
    node.workers.close();
  });
});
