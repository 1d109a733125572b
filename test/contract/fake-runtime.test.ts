/** The fake runtime keeps the contract, called directly and through CRI on a socket. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { VirtualClock } from '../../src/concurrency/virtual-clock.ts';
import { CriClient } from '../../src/runtime/cri/cri-client.ts';
import { runtimeEventSource } from '../../src/runtime/events/runtime-event-source.ts';
import { silentLogger } from '../../src/telemetry/logger.ts';
import { silentMetrics } from '../../src/telemetry/metrics.ts';
import { FakeRuntime } from '../fixtures/cri-runtime/fake-runtime.ts';
import { startFakeRuntime } from '../fixtures/cri-runtime/fake-runtime-server.ts';
import { describeContainerRuntime } from './container-runtime.contract.ts';

/** A fake whose containers act as the contract's programs do. */
function fakeWithPrograms() {
  const clock = new VirtualClock();
  const logRoot = mkdtempSync(path.join(tmpdir(), 'kubelet-ts-logs-'));
  const runtime = new FakeRuntime({ clock, images: ['busybox'], writeLogs: true });
  const exec = ([command, ...rest]: readonly string[]) => {
    if (command === 'echo') return { exitCode: 0, stdout: `${rest.join(' ')}\n` };
    if (command === 'sleep') return { exitCode: 0, afterMs: Number(rest[0]) * 1000 };
    return { exitCode: Number(/exit (\d+)/.exec(rest[1] ?? '')?.[1] ?? 0) };
  };
  runtime.behave('obedient', { onStopSignal: { code: 0 }, exec });
  runtime.behave('stubborn', { onStopSignal: 'ignore', exec });
  runtime.behave('failing', { exit: { afterMs: 0, code: 3 } });
  runtime.behave('job', { output: ['done'], exit: { afterMs: 0, code: 0 } });
  runtime.behave('broken', {
    startError: 'exec: "/does/not/exist": stat /does/not/exist: no such file or directory',
  });
  return {
    clock,
    runtime,
    logRoot,
    image: 'busybox',
    passTime: (ms: number) => clock.advance(ms),
    async tearDown() {
      rmSync(logRoot, { recursive: true, force: true });
    },
  };
}

describeContainerRuntime('fake, called directly', async () => {
  const fake = fakeWithPrograms();
  return { ...fake, events: fake.runtime.events() };
});

for (const runtimeName of ['containerd', 'cri-o']) {
  describeContainerRuntime(`fake that calls itself ${runtimeName}, through CRI`, async () => {
    const fake = fakeWithPrograms();
    const { clock } = fake;
    const server = await startFakeRuntime(fake.runtime);
    const client = new CriClient({ endpoint: server.socket, clock, metrics: silentMetrics });
    const { connection } = client;
    // The call has to arrive and start to wait before the clock is moved.
    const passTime = async (ms: number) => {
      while ((clock.nextTimer() ?? Number.POSITIVE_INFINITY) > clock.now() + ms)
        await new Promise((resolve) => setImmediate(resolve));
      await fake.passTime(ms);
    };
    return {
      ...fake,
      runtime: client,
      passTime,
      events: runtimeEventSource({
        runtimeName,
        connection,
        clock,
        logger: silentLogger,
        metrics: silentMetrics,
      }),
      async tearDown() {
        await client.close();
        await server.close();
        await fake.tearDown();
      },
    };
  });
}
