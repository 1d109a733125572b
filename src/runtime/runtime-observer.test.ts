import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, VirtualClock } from '../concurrency/virtual-clock.ts';
import { silentLogger } from '../telemetry/logger.ts';
import type { ContainerRuntime } from './container-runtime.ts';
import { ContainerState, ContainerStatus, PodSandboxState } from './generated/cri.ts';
import type { RuntimeEvent } from './runtime-event.ts';
import { RuntimeObserver } from './runtime-observer.ts';

const labels = {
  'io.kubernetes.pod.uid': 'uid',
  'io.kubernetes.pod.name': 'web',
  'io.kubernetes.pod.namespace': 'n',
};

/** A runtime with one container whose answers the test decides. */
function scene({ flowing = true } = {}) {
  const clock = new VirtualClock();
  const abort = new AbortController();
  const asked: string[] = [];
  let state: ContainerState = ContainerState.CONTAINER_RUNNING;
  let answer: () => Promise<void> = async () => {};
  let tell: (event: RuntimeEvent) => void = () => {};
  const container = () => ({
    ...ContainerStatus.decode(new Uint8Array()),
    id: 'c',
    metadata: { name: 'main', attempt: 0 },
    state,
    labels,
  });
  const listed = () => ({ ...container(), podSandboxId: 's', imageId: '' });
  const runtime = {
    listPodSandbox: async () => ({ items: [{ id: 's', state: PodSandboxState.SANDBOX_READY, labels }] }),
    listContainers: async () => (asked.push('list'), { containers: [listed()] }),
    podSandboxStatus: async () => ({
      status: { id: 's', state: PodSandboxState.SANDBOX_READY, labels, annotations: {}, createdAt: 1n },
    }),
    containerStatus: async () => {
      asked.push('status');
      const status = container();
      await answer();
      return { status };
    },
  } as unknown as ContainerRuntime;
  const changes: string[] = [];
  const observer = new RuntimeObserver({
    runtime,
    events: {
      name: 'test',
      flowing,
      run: async (listener) => {
        tell = listener;
        await new Promise((resolve) => abort.signal.addEventListener('abort', resolve));
      },
    },
    clock,
    logger: silentLogger,
    onChange: (uid) => changes.push(uid),
  });
  return {
    clock,
    observer,
    asked,
    changes,
    set: (next: ContainerState) => (state = next),
    delayAnswer: (next: () => Promise<void>) => (answer = next),
    tell: (event: RuntimeEvent) => tell(event),
    start: async () => {
      void observer.run(abort.signal);
      await settle();
    },
    stop: () => abort.abort(),
    seen: () => observer.pod('uid').containers[0]?.state,
  };
}

describe('RuntimeObserver', () => {
  it('looks again until an end that was told shows, since the runtime may be a moment behind', async () => {
    const it = scene();
    await it.start();
    it.tell({ kind: 'exited', id: 'c' });
    await settle();
    assert.equal(it.seen(), 'Running');
    it.set(ContainerState.CONTAINER_EXITED);
    await it.clock.advance(20);
    assert.equal(it.seen(), 'Exited');
    it.stop();
  });

  it('looks at once when the runtime has taken the end in', async () => {
    const it = scene();
    await it.start();
    it.tell({ kind: 'exited', id: 'c' });
    await settle();
    it.set(ContainerState.CONTAINER_EXITED);
    it.tell({ kind: 'changed', id: 'c' });
    await settle();
    assert.equal(it.seen(), 'Exited');
    it.stop();
  });

  it('gives up looking after a while and leaves it to the relist', async () => {
    const it = scene();
    await it.start();
    it.tell({ kind: 'exited', id: 'c' });
    await it.clock.advance(30_000);
    const before = it.asked.length;
    await it.clock.advance(20_000);
    assert.equal(it.asked.length, before);
    it.stop();
  });

  it('does not unlearn an end through an answer that was overtaken', async () => {
    const it = scene();
    await it.start();
    const gate = Promise.withResolvers<void>();
    it.delayAnswer(() => gate.promise);
    const late = it.observer.refreshContainer('c');
    it.delayAnswer(async () => {});
    it.set(ContainerState.CONTAINER_EXITED);
    await it.observer.refreshContainer('c');
    gate.resolve();
    await late;
    assert.equal(it.seen(), 'Exited');
    it.stop();
  });

  it('asks for details only of what has changed', async () => {
    const it = scene();
    await it.start();
    const before = it.asked.filter((call) => call === 'status').length;
    await it.clock.advance(600_000);
    assert.equal(it.asked.filter((call) => call === 'status').length, before);
    assert.ok(it.asked.filter((call) => call === 'list').length >= 10, 'the safety net is there');
    it.stop();
  });

  it('tells a change once', async () => {
    const it = scene();
    await it.start();
    const before = it.changes.length;
    await it.observer.refreshContainer('c');
    assert.equal(it.changes.length, before);
    it.set(ContainerState.CONTAINER_EXITED);
    await it.observer.refreshContainer('c');
    assert.deepEqual(it.changes.slice(before), ['uid']);
    it.stop();
  });
});

describe('RuntimeObserver with a runtime that tells nothing', () => {
  it('looks every second', async () => {
    const it = scene({ flowing: false });
    await it.start();
    it.set(ContainerState.CONTAINER_EXITED);
    await it.clock.advance(1000);
    assert.equal(it.seen(), 'Exited');
    it.stop();
  });
});
