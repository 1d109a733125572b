/** What the observer holds on to, and what it lets go of, on a runtime whose answers may be held back. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import type { ContainerRuntime } from './container-runtime.ts';
import { ContainerState, ContainerStatus, PodSandboxState } from './generated/cri.ts';
import { RuntimeCallError, RuntimeErrorCode } from './runtime-call-error.ts';
import { RuntimeObserver } from './runtime-observer.ts';

const labels = {
  'io.kubernetes.pod.uid': 'uid',
  'io.kubernetes.pod.name': 'web',
  'io.kubernetes.pod.namespace': 'n',
};

function scene() {
  const present = new Set(['s', 'c']);
  const held: (() => void)[] = [];
  let holding = false;
  const answer = async (id: string) => {
    const isThere = present.has(id);
    if (holding) await new Promise<void>((resolve) => held.push(resolve));
    if (!isThere)
      throw new RuntimeCallError({ call: 'Status', code: RuntimeErrorCode.NotFound, detail: 'not found' });
  };
  const runtime = {
    listPodSandbox: async () => ({
      items: present.has('s') ? [{ id: 's', state: PodSandboxState.SANDBOX_READY, labels }] : [],
    }),
    listContainers: async () => ({
      containers: present.has('c')
        ? [{ id: 'c', podSandboxId: 's', state: ContainerState.CONTAINER_RUNNING, labels }]
        : [],
    }),
    podSandboxStatus: async () => {
      await answer('s');
      return {
        status: {
          id: 's',
          state: PodSandboxState.SANDBOX_READY,
          labels,
          annotations: { a: 'b' },
          createdAt: 1n,
        },
      };
    },
    containerStatus: async () => {
      await answer('c');
      const status = {
        id: 'c',
        metadata: { name: 'main', attempt: 0 },
        state: ContainerState.CONTAINER_RUNNING,
        labels,
      };
      return { status: { ...ContainerStatus.decode(new Uint8Array()), ...status } };
    },
  } as unknown as ContainerRuntime;
  const observer = new RuntimeObserver({
    runtime,
    events: undefined,
    clock: new VirtualClock(),
    logger: silentLogger,
    onChange: () => {},
  });
  return {
    observer,
    present,
    hold: () => (holding = true),
    release: async () => {
      holding = false;
      for (const resolve of held.splice(0)) resolve();
      await settle();
    },
  };
}

describe('what an observer remembers', () => {
  it('is nothing of a pod that is gone, however often somebody asks', async () => {
    const { observer, present } = scene();
    await observer.relist();
    assert.equal(observer.pod('uid').containers.length, 1);
    present.clear();
    await observer.relist();
    assert.deepEqual(observer.pods(), []);
    assert.equal(observer.identity('uid'), undefined);
    // No two questions get the same object: nothing is kept for the next one.
    assert.notEqual(observer.pod('uid'), observer.pod('uid'));
    assert.deepEqual(observer.pod('uid').containers, []);
  });

  it('is one picture of a pod as long as nothing changes', async () => {
    const { observer } = scene();
    await observer.relist();
    assert.equal(observer.pod('uid'), observer.pod('uid'));
  });

  it('does not bring back what was removed while an older answer was on its way', async () => {
    const { observer, present, hold, release } = scene();
    await observer.relist();
    hold();
    const late = [observer.refreshContainer('c'), observer.refreshSandbox('s')];
    present.clear();
    observer.removedContainer('c');
    observer.removedSandbox('s');
    await release();
    await Promise.all(late);
    assert.deepEqual(observer.pods(), []);
    assert.equal(observer.identity('uid'), undefined);
  });

  it('does not make a pod of a removal that came before the first answer', async () => {
    const { observer, present, hold, release } = scene();
    hold();
    const late = observer.refreshContainer('c', { sandboxId: 's' });
    await settle();
    present.delete('c');
    observer.removedContainer('c');
    await release();
    await late;
    assert.deepEqual(observer.pods(), []);
  });
});
