import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { startFakeRuntime } from '../../../test/fixtures/cri-runtime/fake-runtime-server.ts';
import { containerConfig, imageSpec, sandboxConfig } from '../../../test/fixtures/cri-runtime/requests.ts';
import { settle, VirtualClock } from '../../concurrency/virtual-clock.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { silentMetrics } from '../../telemetry/metrics.ts';
import { RuntimeServiceDefinition } from '../generated/cri.ts';
import { RuntimeErrorCode } from '../runtime-call-error.ts';
import { CriClient } from './cri-client.ts';
import { InvalidEndpointError, socketPath } from './endpoint.ts';

async function connected() {
  const clock = new VirtualClock();
  const server = await startFakeRuntime({ clock, images: ['busybox'] });
  const client = new CriClient({ endpoint: `unix://${server.socket}`, clock, metrics: silentMetrics });
  await client.version({ version: '0.1.0' });
  const stop = async () => {
    await client.close();
    await server.close();
  };
  return { clock, client, runtime: server.runtime, server, [Symbol.asyncDispose]: stop };
}

/** Waits, without a clock, until the runtime has got the call that hangs. */
async function arrived(runtime: { calls: readonly { call: string }[] }, call: string): Promise<void> {
  while (!runtime.calls.some((recorded) => recorded.call === call)) await settle(1);
}

describe('socketPath', () => {
  it('reads every spelling of a unix socket', () => {
    for (const endpoint of ['unix:///run/x.sock', 'unix:/run/x.sock', '/run/x.sock']) {
      assert.equal(socketPath(endpoint, '--flag'), '/run/x.sock');
    }
  });

  it('refuses anything else, naming the flag', () => {
    for (const endpoint of [
      'tcp://127.0.0.1:2376',
      'npipe:////./pipe/x',
      'run/x.sock',
      'unix://run/x.sock',
      '',
    ]) {
      assert.throws(
        () => socketPath(endpoint, '--flag'),
        (error) => error instanceof InvalidEndpointError && error.message.startsWith(`--flag=${endpoint} `),
      );
    }
  });
});

describe('CriClient', () => {
  it('carries 64-bit numbers, maps and bytes unchanged', async () => {
    await using it = await connected();
    const config = sandboxConfig('web', { annotations: { 'ключ/π': 'значение\n"' } });
    const { podSandboxId } = await it.client.runPodSandbox({ config, runtimeHandler: 'kata' });
    const { status } = await it.client.podSandboxStatus({ podSandboxId, verbose: false });
    assert.deepEqual(status?.annotations, config.annotations);
    assert.equal(status?.createdAt, it.runtime.sandboxes[0]?.createdAt);
    assert.equal(status?.runtimeHandler, 'kata');
  });

  it('turns the answers of the runtime into errors that name call, object and code', async () => {
    await using it = await connected();
    await assert.rejects(it.client.containerStatus({ containerId: 'a'.repeat(64), verbose: false }), {
      name: 'RuntimeCallError',
      call: 'ContainerStatus',
      object: 'container aaaaaaaaaaaaa',
      code: RuntimeErrorCode.NotFound,
      notFound: true,
      message: /^ContainerStatus of container aaaaaaaaaaaaa failed: .*not found \(NotFound\)$/,
    });
  });

  it('ends a call at its limit', async () => {
    await using it = await connected();
    it.runtime.fail('StopPodSandbox', { hang: true });
    const call = assert.rejects(it.client.stopPodSandbox({ podSandboxId: 'x' }), {
      code: RuntimeErrorCode.DeadlineExceeded,
      message: /no answer within 120 s/,
    });
    await arrived(it.runtime, 'StopPodSandbox');
    await it.clock.advance(120_000);
    await call;
    assert.equal(it.clock.nextTimer(), undefined);
  });

  it('puts no limit on a pull, and gives it up on its signal', async () => {
    await using it = await connected();
    it.runtime.fail('PullImage', { hang: true });
    const stop = new AbortController();
    const request = { image: imageSpec('nginx'), auth: undefined, sandboxConfig: undefined };
    const reason = new Error('the pod is gone');
    const call = assert.rejects(it.client.pullImage(request, { signal: stop.signal }), reason);
    await arrived(it.runtime, 'PullImage');
    assert.equal(it.clock.nextTimer(), undefined);
    stop.abort(reason);
    await call;
  });

  it('tells the runtime when it gives a call up', async () => {
    await using it = await connected();
    const sandbox = sandboxConfig('web');
    const { podSandboxId } = await it.client.runPodSandbox({ config: sandbox, runtimeHandler: '' });
    const config = containerConfig('main', { image: 'busybox' });
    const { containerId } = await it.client.createContainer({ podSandboxId, config, sandboxConfig: sandbox });
    await it.client.startContainer({ containerId });
    it.runtime.behave('main', { onStopSignal: 'ignore' });
    const stop = new AbortController();
    const request = { containerId, timeout: 30n };
    const call = assert.rejects(
      it.client.stopContainer(request, { signal: stop.signal, timeoutMs: Number.POSITIVE_INFINITY }),
    );
    while (it.clock.nextTimer() === undefined) await settle(1);
    stop.abort();
    await call;
    // The runtime no longer waits for the process, and has not killed it.
    while (it.clock.nextTimer() !== undefined) await settle(1);
    assert.equal(it.runtime.running('main').id, containerId);
  });

  it('tells that the runtime went away and came back, and works again', async () => {
    await using it = await connected();
    const events: string[] = [];
    const { connection } = it.client;
    connection.onDisconnect(() => events.push('away'));
    connection.onReconnect(() => events.push('back'));
    it.runtime.down();
    await it.server.settled();
    while (events.length === 0) await settle(1);
    assert.equal(connection.connected, false);
    it.runtime.up();
    await it.server.settled();
    await connection.ready(AbortSignal.timeout(10_000));
    await it.client.version({ version: '' });
    assert.deepEqual(events, ['away', 'back']);
  });

  it('fails at once while the runtime is away, with a remedy', async () => {
    await using it = await connected();
    it.runtime.down();
    await it.server.settled();
    while (it.client.connection.connected) await settle(1);
    await assert.rejects(it.client.version({ version: '' }), {
      unavailable: true,
      message: /is the container runtime running\? --container-runtime-endpoint names its endpoint/,
    });
  });

  it('fails calls in flight when it is closed', async () => {
    await using it = await connected();
    it.runtime.fail('PullImage', { hang: true });
    const request = { image: imageSpec('nginx'), auth: undefined, sandboxConfig: undefined };
    const call = assert.rejects(it.client.pullImage(request), /has been closed/);
    await arrived(it.runtime, 'PullImage');
    await it.client.close();
    await call;
    await assert.rejects(it.client.version({ version: '' }), /has been closed/);
  });

  it('leaves no connection open, at whatever moment a call was given up', { timeout: 20_000 }, async () => {
    const clock = new VirtualClock();
    const pipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length;
    for (let moment = 0; moment < 12; moment++) {
      await using server = await startFakeRuntime({ clock, images: [] });
      const client = new CriClient({ endpoint: server.socket, clock, metrics: silentMetrics });
      const before = pipes();
      await client.version({ version: '' });
      server.runtime.fail('PullImage', { hang: true });
      const stop = new AbortController();
      const request = { image: imageSpec('nginx'), auth: undefined, sandboxConfig: undefined };
      const call = assert.rejects(client.pullImage(request, { signal: stop.signal }));
      const method = RuntimeServiceDefinition.methods.getContainerEvents;
      const service = RuntimeServiceDefinition.fullName;
      const stream = client.connection.stream(
        { service, method, request: {}, signal: stop.signal },
        () => {},
      );
      for (let turn = 0; turn < moment; turn++) await Promise.resolve();
      stop.abort();
      await Promise.all([call, stream]);
      await client.close();
      while (pipes() > before) await settle(1);
    }
  });

  it('asks for images where they are served', async () => {
    await using it = await connected();
    await using images = await startFakeRuntime({ clock: it.clock, images: ['only-here'] });
    const client = new CriClient({
      endpoint: it.server.socket,
      imageEndpoint: images.socket,
      clock: it.clock,
      metrics: silentMetrics,
    });
    const { image } = await client.imageStatus({ image: imageSpec('only-here'), verbose: false });
    assert.deepEqual(image?.repoTags, ['docker.io/library/only-here:latest']);
    assert.equal((await client.version({ version: '' })).runtimeName, 'containerd');
    assert.equal(images.runtime.requestsOf('Version').length, 0);
    await client.close();
  });

  it('says when what listens is no runtime', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'kubelet-ts-endpoint-'));
    const clock = new VirtualClock();
    const refused = async (socket: string, expected: RegExp) => {
      const client = new CriClient({ endpoint: socket, clock, metrics: silentMetrics });
      await assert.rejects(client.version({ version: '' }), expected);
      await client.close();
    };
    await refused(
      path.join(folder, 'absent.sock'),
      /: Version failed: connect ENOENT .*absent\.sock \(Unavailable\)\. There is no socket .*absent\.sock/,
    );
    writeFileSync(path.join(folder, 'file'), '');
    await refused(path.join(folder, 'file'), /Nothing listens on .*file/);
    const deaf = createServer((socket) => socket.end('220 mail.example ESMTP\r\n'));
    deaf.listen(path.join(folder, 'deaf.sock'));
    await once(deaf, 'listening');
    await refused(path.join(folder, 'deaf.sock'), /Version failed: .*\(Unavailable\)/);
    deaf.close();
    rmSync(folder, { recursive: true });
  });

  it('counts calls, failures and durations by operation', async () => {
    const clock = new VirtualClock();
    await using server = await startFakeRuntime({ clock });
    const seen: string[] = [];
    const note = (name: string, labels?: Record<string, string>, value?: number) =>
      seen.push([name.replace('kubelet_', ''), ...Object.values(labels ?? {}), value].join(' ').trim());
    const metrics: Metrics = {
      ...silentMetrics,
      counter: ({ name }) => ({ inc: (labels) => note(name, labels), remove() {} }),
      histogram: ({ name }) => ({ observe: (value, labels) => note(name, labels, value), remove() {} }),
    };
    const client = new CriClient({ endpoint: server.socket, clock, metrics });
    await client.version({ version: '' });
    await assert.rejects(client.runPodSandbox({ config: undefined, runtimeHandler: 'kata' }));
    await client.close();
    assert.deepEqual(seen, [
      'runtime_operations_total version',
      'runtime_operations_duration_seconds version 0',
      'runtime_operations_total run_podsandbox',
      'runtime_operations_errors_total run_podsandbox',
      'run_podsandbox_errors_total kata',
      'runtime_operations_duration_seconds run_podsandbox 0',
      'run_podsandbox_duration_seconds kata 0',
    ]);
  });
});
