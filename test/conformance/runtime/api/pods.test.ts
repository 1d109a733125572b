/** Pods as objects of the API: what changes in them, what the node tells of them, how they go. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { demoImages } from '../../../../scripts/machine/demo-images.ts';
import type { Pod } from '../../../../src/kubernetes/types.ts';
import { ContainerState } from '../../../../src/runtime/generated/cri.ts';
import { idle } from '../../../e2e/agent.ts';
import { conditionOf, containerOf } from '../scenarios.ts';
import { ClusterScenarios } from './cluster-scenarios.ts';

const scenarios = new ClusterScenarios();

const patch = (pod: string, change: object, subresource = '') =>
  scenarios.server.admin.patch('pods', `default/${pod}`, change as never, {
    kind: 'strategic',
    subresource,
  });
const object = (pod: string): Pod => {
  const found = scenarios.agent.object(pod);
  assert.ok(found, `there is no ${pod}`);
  return found;
};
/** Nothing of the pod runs when its object has gone; its dead containers go soon after. */
const nothingLeft = async (uid: string) => {
  const labelSelector = { 'io.kubernetes.pod.uid': uid };
  const state = { state: ContainerState.CONTAINER_RUNNING };
  const { containers } = await scenarios.agent.runtime.listContainers({
    filter: { id: '', podSandboxId: '', state, labelSelector },
  });
  assert.deepEqual(containers, []);
  await scenarios.agent.eventually(
    'the containers removed',
    async () => (await scenarios.agent.instances(uid)).length === 0,
  );
};

describe('a pod that is changed', () => {
  const updated = scenarios.pod('updated', {}, { labels: { time: 'before' } });
  it('[sig-node] Pods should be updated [NodeConformance] [Conformance]', async () => {
    const before = await scenarios.agent.podReady(updated);
    const whole = object(updated);
    const metadata = { ...whole.metadata, labels: { time: 'after' } };
    scenarios.server.admin.update('pods', `default/${updated}`, { ...whole, metadata });
    await scenarios.agent.eventually('the node has the change', async () =>
      (await scenarios.agent.pods()).some(
        (pod) => pod.metadata.name === updated && pod.metadata.labels?.['time'] === 'after',
      ),
    );
    const after = await scenarios.agent.podReady(updated);
    const id = containerOf(before, 'main')?.containerID;
    assert.equal(containerOf(after, 'main')?.containerID, id, 'nothing was started anew');
  });

  const gate = 'example.com/gate';
  const gated = scenarios.pod('gated', { readinessGates: [{ conditionType: gate }] });
  it('[sig-node] Pods should patch a pod status [Conformance]', async () => {
    await scenarios.agent.untilObject(gated, (pod) => containerOf(pod, 'main')?.ready === true);
    assert.equal(conditionOf(object(gated), 'Ready')?.status, 'False');
    const condition = { type: gate, status: 'True', reason: 'Tested', message: 'Patched by a test' };
    patch(gated, { status: { conditions: [condition] } }, 'status');
    const pod = await scenarios.agent.podReady(gated);
    // The node's own report went over it, and left what others say.
    const { status, reason, message } = conditionOf(pod, gate) ?? {};
    assert.deepEqual({ type: gate, status, reason, message }, condition);
  });

  const living = scenarios.pod('living', {}, { labels: { stage: 'created' } });
  it('[sig-node] Pods should run through the lifecycle of Pods and PodStatus [Conformance]', async () => {
    const { metadata, status } = await scenarios.agent.podReady(living);
    assert.equal(status?.phase, 'Running');
    const first = containerOf(object(living), 'main');
    assert.match(first?.containerID ?? '', /^containerd:\/\//);
    const image = demoImages.web;
    patch(living, {
      metadata: { labels: { stage: 'patched' } },
      spec: { containers: [{ name: 'main', image }] },
    });
    const renewed = await scenarios.agent.untilObject(living, (pod) => {
      const main = containerOf(pod, 'main');
      return main?.state?.running !== undefined && main.containerID !== first?.containerID;
    });
    assert.equal(containerOf(renewed, 'main')?.image, image);
    assert.equal(containerOf(renewed, 'main')?.restartCount, 1);
    assert.equal(renewed?.metadata.labels?.['stage'], 'patched');
    const condition = { type: 'example.com/seen', status: 'True', lastTransitionTime: null };
    patch(living, { status: { conditions: [condition] } }, 'status');
    scenarios.server.admin.delete('pods', `default/${living}`);
    assert.ok(object(living).metadata.deletionTimestamp);
    await scenarios.agent.podGone(living);
    await nothingLeft(metadata.uid);
  });

  const collection = ['one', 'two', 'three'].map((name) =>
    scenarios.pod(`collected-${name}`, {}, { labels: { type: 'Testing' } }),
  );
  it('[sig-node] Pods should delete a collection of pods [Conformance]', async () => {
    const pods = await Promise.all(collection.map((name) => scenarios.agent.podReady(name)));
    const labelSelector = 'type=Testing';
    for (const { metadata } of scenarios.server.admin.list('pods', { labelSelector })) {
      scenarios.server.admin.delete('pods', `default/${metadata.name}`);
    }
    await Promise.all(collection.map((name) => scenarios.agent.podGone(name)));
    assert.deepEqual(scenarios.server.admin.list('pods', { labelSelector }), []);
    for (const { metadata } of pods) await nothingLeft(metadata.uid);
  });
});

describe('ephemeral containers', () => {
  const debuggerOf = (name: string) => ({
    name,
    image: scenarios.image,
    command: ['sh', '-c', idle],
    terminationMessagePolicy: 'File',
  });
  const add = (pod: string, ...names: string[]) =>
    patch(pod, { spec: { ephemeralContainers: names.map(debuggerOf) } }, 'ephemeralcontainers');
  const running = (pod: string, name: string) =>
    scenarios.agent.untilObject(pod, (now) => ephemeralOf(now, name)?.state?.running !== undefined);
  const ephemeralOf = (pod: Pod | undefined, name: string) =>
    pod?.status?.ephemeralContainerStatuses?.find((status) => status.name === name);
  /** What a shell command in it prints. */
  const say = async (pod: Pod | undefined, name: string, script: string) => {
    const containerId = (ephemeralOf(pod, name)?.containerID ?? '').replace(/^.*:\/\//, '');
    const cmd = ['sh', '-c', script];
    const { stdout } = await scenarios.agent.runtime.execSync({ containerId, cmd, timeout: 60n });
    return Buffer.from(stdout).toString();
  };

  const inspected = scenarios.pod('inspected');
  it('[sig-node] Ephemeral Containers [NodeConformance] will start an ephemeral container in an existing pod [Conformance]', async () => {
    const before = await scenarios.agent.podReady(inspected);
    add(inspected, 'debugger');
    const after = await running(inspected, 'debugger');
    const address = await say(after, 'debugger', 'hostname -i');
    assert.equal(address.trim(), before.status?.podIP, 'it stands in the pod');
    const main = containerOf(after, 'main');
    assert.equal(main?.containerID, containerOf(before, 'main')?.containerID);
    assert.equal(main?.restartCount, 0);
  });

  const twice = scenarios.pod('inspected-twice');
  it('[sig-node] Ephemeral Containers [NodeConformance] should update the ephemeral containers in an existing pod [Conformance]', async () => {
    await scenarios.agent.podReady(twice);
    add(twice, 'first');
    const one = await running(twice, 'first');
    add(twice, 'first', 'second');
    const two = await running(twice, 'second');
    assert.equal(await say(two, 'second', 'hostname'), `${twice}\n`);
    assert.equal(ephemeralOf(two, 'first')?.containerID, ephemeralOf(one, 'first')?.containerID);
    assert.ok(ephemeralOf(two, 'first')?.state?.running);
  });
});

describe("the generation of a pod's spec", () => {
  const observed = (pod: string, generation: number) =>
    scenarios.agent.untilObject(
      pod,
      (now) =>
        now?.metadata.generation === generation &&
        now.status?.observedGeneration === generation &&
        conditionOf(now, 'Ready')?.observedGeneration === generation,
    );

  const counted = scenarios.pod('counted');
  it('[sig-node] Pods Extended (pod generation) Pod Generation pod generation should start at 1 and increment per update [MinimumKubeletVersion:1.34] [Conformance]', async () => {
    await scenarios.agent.podReady(counted);
    await observed(counted, 1);
    patch(counted, { metadata: { labels: { some: 'label' } } });
    assert.equal(object(counted).metadata.generation, 1, 'metadata is no spec');
    patch(counted, { spec: { activeDeadlineSeconds: 5000 } });
    await observed(counted, 2);
    const { tolerations = [] } = object(counted).spec;
    patch(counted, { spec: { tolerations: [...tolerations, { key: 'some', operator: 'Exists' }] } });
    await observed(counted, 3);
    patch(counted, { spec: { containers: [{ name: 'main', image: demoImages.numericUser }] } });
    await observed(counted, 4);
  });

  const given = scenarios.pod(
    'given-generation',
    {
      terminationGracePeriodSeconds: 60,
      containers: [
        scenarios.idler('main', {
          command: ['sh', '-c', "trap 'sleep 2; exit' TERM; while :; do sleep 1 & wait $!; done"],
        }),
      ],
    },
    { generation: 100 },
  );
  it('[sig-node] Pods Extended (pod generation) Pod Generation custom-set generation on new pods and graceful delete [Conformance]', async () => {
    await scenarios.agent.podReady(given);
    await observed(given, 1);
    scenarios.server.admin.delete('pods', `default/${given}`);
    const going = await scenarios.agent.untilObject(given, (pod) => pod?.status?.observedGeneration === 2);
    assert.equal(going?.metadata.generation, 2);
    assert.ok(going.metadata.deletionTimestamp);
    await scenarios.agent.podGone(given);
  });

  const often = scenarios.pod('often');
  it('[sig-node] Pods Extended (pod generation) Pod Generation issue 500 podspec updates and verify generation and observedGeneration eventually converge [MinimumKubeletVersion:1.34] [Conformance]', async () => {
    await scenarios.agent.podReady(often);
    for (let count = 0; count < 500; count += 1) {
      patch(often, { spec: { activeDeadlineSeconds: 20_000 - count } });
      // Watch and reports are to run meanwhile.
      if (count % 10 === 0) await new Promise(setImmediate);
    }
    const pod = await observed(often, 501);
    assert.equal(containerOf(pod, 'main')?.restartCount, 0);
  });
});

describe('the addresses of the node', () => {
  const addresses = () =>
    (scenarios.server.admin.get('nodes', 'node')?.status?.addresses ?? []).flatMap(({ type, address }) =>
      type === 'InternalIP' ? [address] : [],
    );
  const inPodNetwork = scenarios.pod('in-pod-network');
  const inHostNetwork = scenarios.pod('in-host-network', { hostNetwork: true });

  it('[sig-node] Pods should get a host IP [NodeConformance] [Conformance]', async () => {
    const { status } = await scenarios.agent.podReady(inPodNetwork);
    assert.match(status?.hostIP ?? '', /^[0-9a-f.:]+$/);
    assert.equal(status?.hostIP, addresses()[0]);
  });
  it('[sig-node] Pod Host IPs [NodeConformance] when creating a Pod should add node IPs of all supported families to hostIPs of pod-network pod', async () => {
    const { status } = await scenarios.agent.podReady(inPodNetwork);
    assert.deepEqual(
      status?.hostIPs,
      addresses().map((ip) => ({ ip })),
    );
    assert.notEqual(status?.podIP, status?.hostIP);
  });
  it('[sig-node] Pod Host IPs [NodeConformance] when creating a Pod should add node IPs of all supported families to hostIPs of host-network pod', async () => {
    const { status } = await scenarios.agent.podReady(inHostNetwork);
    assert.deepEqual(
      status?.hostIPs,
      addresses().map((ip) => ({ ip })),
    );
    assert.equal(status?.podIP, status?.hostIP);
  });
});
