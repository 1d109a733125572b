import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type FakeRuntimeServer,
  startFakeRuntime,
} from '../../../test/fixtures/cri-runtime/fake-runtime-server.ts';
import { containerConfig, sandboxConfig } from '../../../test/fixtures/cri-runtime/requests.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import { silentLogger } from '../../telemetry/logger.ts';
import { MetricsRegistry } from '../../telemetry/metrics-registry.ts';
import { GrpcConnection } from '../cri/grpc-connection.ts';
import type { RuntimeEvent } from '../runtime-event.ts';
import { runtimeEventSource } from './runtime-event-source.ts';

/** Waits, moving no clock, until `condition` holds. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await settle(1);
}

async function listening(runtimeName: string, server: FakeRuntimeServer, clock: VirtualClock) {
  const connection = new GrpcConnection({
    endpoint: server.socket,
    flag: '--container-runtime-endpoint',
    clock,
  });
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => warnings.push(message) };
  const heard: RuntimeEvent[] = [];
  const stop = new AbortController();
  const metrics = new MetricsRegistry();
  const source = runtimeEventSource({ runtimeName, connection, clock, logger, metrics });
  const done = source.run((event) => heard.push(event), stop.signal);
  await until(() => heard.length > 0 || warnings.length > 0);
  const close = async () => {
    stop.abort();
    await done;
    await connection.close();
  };
  return { heard, warnings, source, metrics, [Symbol.asyncDispose]: close };
}

/** A running container, made while nobody listens. */
async function runContainer({ runtime }: FakeRuntimeServer) {
  const sandbox = sandboxConfig('web');
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandbox, runtimeHandler: '' });
  const config = containerConfig('main', { image: 'busybox' });
  const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig: sandbox });
  await runtime.startContainer({ containerId });
  return { podSandboxId, containerId };
}

async function setUp() {
  const clock = new VirtualClock();
  const server = await startFakeRuntime({ clock, images: ['busybox'] });
  return { clock, server, runtime: server.runtime, [Symbol.asyncDispose]: () => server.close() };
}

/** The server subscribes some turns after the client has asked; events before that are lost, as in life. */
const subscribed = () => settle(50);

describe('events of containerd', () => {
  it('tells memory kills, exits and removals, and no exits of commands inside', async () => {
    await using it = await setUp();
    const { runtime } = it;
    const { containerId, podSandboxId } = await runContainer(it.server);
    await using listener = await listening('containerd', it.server, it.clock);
    await subscribed();
    await runtime.execSync({ containerId, cmd: ['true'], timeout: 0n });
    runtime.oom(containerId);
    await runtime.removePodSandbox({ podSandboxId });
    await until(() => listener.heard.length >= 6);
    assert.equal(listener.source.name, 'containerd');
    assert.deepEqual(listener.heard, [
      { kind: 'gap' },
      { kind: 'oom', id: containerId },
      { kind: 'exited', id: containerId },
      { kind: 'exited', id: podSandboxId },
      { kind: 'changed', id: containerId },
      { kind: 'changed', id: podSandboxId },
    ]);
  });

  it('says gap once more shortly after subscribing, and after each reconnect', async () => {
    await using it = await setUp();
    await using listener = await listening('containerd', it.server, it.clock);
    const { heard } = listener;
    await it.clock.advance(500);
    assert.deepEqual(heard, [{ kind: 'gap' }, { kind: 'gap' }]);
    const counted = async () => {
      const text = await listener.metrics.exposition();
      return [...text.matchAll(/^kubelet_evented_pleg_connection_(\w+_count) (\d+)$/gm)].map(
        ([, name, value]) => `${name} ${value}`,
      );
    };
    assert.deepEqual(await counted(), ['latency_seconds_count 1', 'success_count 1', 'error_count 0']);
    it.runtime.restart();
    await it.server.settled();
    // The stream breaks, waits its back-off on the clock, and waits for the connection in real time.
    await until(() => it.clock.nextTimer() !== undefined);
    await it.clock.advance(100);
    await until(() => heard.length === 3);
    await subscribed();
    const { podSandboxId } = await it.runtime.runPodSandbox({
      config: sandboxConfig('web'),
      runtimeHandler: '',
    });
    await until(() => heard.length === 5);
    assert.deepEqual(heard.slice(2), [
      { kind: 'gap' },
      { kind: 'changed', id: podSandboxId },
      { kind: 'changed', id: podSandboxId },
    ]);
    assert.deepEqual(await counted(), ['latency_seconds_count 2', 'success_count 2', 'error_count 1']);
  });
});

describe('events of CRI', () => {
  it('tells exits, and changes with the uid of their pod', async () => {
    await using it = await setUp();
    const { containerId, podSandboxId } = await runContainer(it.server);
    await using listener = await listening('cri-o', it.server, it.clock);
    await subscribed();
    it.runtime.exit(containerId, 1);
    await it.runtime.removeContainer({ containerId });
    await until(() => listener.heard.length >= 3);
    assert.equal(listener.source.name, 'cri');
    assert.deepEqual(listener.heard, [
      { kind: 'gap' },
      { kind: 'exited', id: containerId },
      { kind: 'changed', id: containerId, podUid: 'uid-of-web' },
    ]);
    assert.equal(it.runtime.sandboxes[0]?.id, podSandboxId);
  });

  it('says that there are none, and asks again when the runtime was restarted', async () => {
    await using it = await setUp();
    it.runtime.facts.unimplemented.add('GetContainerEvents');
    await using listener = await listening('other', it.server, it.clock);
    await until(() => listener.warnings.length === 1);
    const before = listener.heard.length;
    it.runtime.down();
    await it.server.settled();
    it.runtime.facts.unimplemented.delete('GetContainerEvents');
    it.runtime.up();
    await until(() => listener.heard.length > before);
    await subscribed();
    const { podSandboxId } = await it.runtime.runPodSandbox({
      config: sandboxConfig('web'),
      runtimeHandler: '',
    });
    it.runtime.crashSandbox(podSandboxId);
    await until(() => listener.heard.at(-1)?.kind === 'exited');
    assert.equal(listener.warnings.length, 1);
  });
});
