import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { after, afterEach, before, describe, it } from 'node:test';
import { startPrivateContainerd } from '../../scripts/machine/private-containerd.ts';
import { podLabels, sandboxConfig } from '../fixtures/cri-runtime/requests.ts';
import { Agent, idle, isReady, shellPod, surroundings } from './agent.ts';

describe('an agent that starts again', () => {
  const agent = new Agent();
  before(() => agent.start());
  after(() => agent.dispose());

  it('adopts what runs, with its restart counts and its start time', async () => {
    agent.write('steady', shellPod('steady', idle));
    agent.write('crashing', shellPod('crashing', 'exit 1'));
    const steady = await agent.ready('steady');
    await agent.until('crashing', 'backing off', ({ status }) => {
      const main = status?.containerStatuses?.[0];
      return main?.restartCount === 1 && main.state?.waiting?.reason === 'CrashLoopBackOff';
    });
    await agent.kill();
    await agent.start();
    const adopted = await agent.ready('steady');
    assert.equal(
      adopted.status?.containerStatuses?.[0]?.containerID,
      steady.status?.containerStatuses?.[0]?.containerID,
    );
    assert.equal(adopted.status?.startTime, steady.status?.startTime);
    // On a slow machine the back-off may have run out meanwhile; it must not have started over.
    const crashing = await agent.until('crashing', 'known', ({ status }) => {
      return (status?.containerStatuses?.[0]?.restartCount ?? 0) >= 1;
    });
    const [carried] = (await agent.instances(crashing.metadata.uid)).slice(-1);
    const next = Number(carried?.annotations['io.kubelet-ts.container.nextBackoffMs']);
    assert.equal(next, 10_000 * 2 ** ((carried?.metadata?.attempt ?? 0) - 1));
  });

  it('does not run a finished pod again', async () => {
    agent.write('done', shellPod('done', 'exit 0', { restartPolicy: 'Never' }));
    const before = await agent.until('done', 'succeeded', ({ status }) => status?.phase === 'Succeeded');
    await agent.kill();
    await agent.start();
    const after = await agent.until('done', 'known', ({ status }) => status?.phase === 'Succeeded');
    assert.equal((await agent.instances(after.metadata.uid)).length, 1);
    assert.equal(before.metadata.uid, after.metadata.uid);
  });

  it('ends what lost its manifest meanwhile', async () => {
    agent.write('orphan', shellPod('orphan', idle));
    const pod = await agent.ready('orphan');
    await agent.kill();
    agent.remove('orphan');
    await agent.start();
    await agent.eventually('gone', async () => (await agent.instances(pod.metadata.uid)).length === 0);
  });

  it('sets a damaged record aside and goes on', async () => {
    agent.write('recorded', shellPod('recorded', idle));
    const before = await agent.ready('recorded');
    await agent.kill();
    const record = agent.path('root', 'kubelet-ts', 'pods', `${before.metadata.uid}.json`);
    writeFileSync(record, '{"checksum": "sha256:');
    await agent.start();
    const after = await agent.ready('recorded');
    assert.equal(
      after.status?.containerStatuses?.[0]?.containerID,
      before.status?.containerStatuses?.[0]?.containerID,
    );
    assert.ok(
      readdirSync(agent.path('root', 'kubelet-ts', 'pods')).some((name) => name.includes('.corrupt-')),
    );
    assert.match(agent.log, /A pod record is damaged/);
  });
});

describe('a container runtime that starts again', () => {
  const agent = new Agent();
  before(() => agent.start());
  after(() => agent.dispose());

  it('finds its containers unharmed and the agent working', async () => {
    const { containerdDirectory } = surroundings();
    agent.write('lasting', shellPod('lasting', idle));
    const before = await agent.ready('lasting');
    const { pid } = await startPrivateContainerd({ directory: containerdDirectory });
    process.kill(pid, 'SIGKILL');
    await startPrivateContainerd({ directory: containerdDirectory });
    agent.write('later', shellPod('later', idle));
    await agent.ready('later');
    const after = await agent.ready('lasting');
    assert.equal(
      after.status?.containerStatuses?.[0]?.containerID,
      before.status?.containerStatuses?.[0]?.containerID,
    );
    assert.equal(after.status?.containerStatuses?.[0]?.restartCount, 0);
  });
});

describe('what is not ours', () => {
  const agent = new Agent();
  const foreign: string[] = [];
  before(() => agent.start());
  afterEach(async () => {
    for (const podSandboxId of foreign.splice(0)) {
      await agent.runtime.stopPodSandbox({ podSandboxId });
      await agent.runtime.removePodSandbox({ podSandboxId });
    }
  });
  after(() => agent.dispose());

  it('is never touched: sandboxes without labels, of an API server, and of another agent', async () => {
    const make = async (
      name: string,
      labels: Record<string, string>,
      annotations: Record<string, string>,
    ) => {
      const config = { ...sandboxConfig(name), labels, annotations, logDirectory: '' };
      const { podSandboxId } = await agent.runtime.runPodSandbox({ config, runtimeHandler: '' });
      foreign.push(podSandboxId);
    };
    await make('plain', {}, {});
    await make('from-api', podLabels('from-api'), { 'kubernetes.io/config.source': 'api' });
    await make('other-agent', podLabels('other-agent'), {
      'kubernetes.io/config.source': 'file',
      'io.kubelet-ts.root-directory': '/somewhere/else',
    });
    await agent.kill('SIGTERM');
    await agent.start();
    agent.write('own', shellPod('own', idle));
    await agent.until('own', 'ready', isReady);
    const { items } = await agent.runtime.listPodSandbox({ filter: undefined });
    for (const id of foreign)
      assert.ok(
        items.some((sandbox) => sandbox.id === id && sandbox.state === 0),
        id,
      );
  });
});
