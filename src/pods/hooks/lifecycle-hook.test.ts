import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, it } from 'node:test';
import { VirtualClock } from '../../concurrency/virtual-clock.ts';
import type { LifecycleHandler } from '../../kubernetes/types.ts';
import { MetricsRegistry } from '../../telemetry/metrics-registry.ts';
import { HookMetrics } from './hook-metrics.ts';
import { type HookServices, runLifecycleHook } from './lifecycle-hook.ts';

const clock = new VirtualClock();
const metrics = new MetricsRegistry();
const servers: Server[] = [];
after(() => servers.forEach((server) => server.close()));

function call(handler: LifecycleHandler, signal = new AbortController().signal) {
  const fallbacks: string[] = [];
  const commands: { cmd: string[]; timeout: bigint }[] = [];
  const runtime: HookServices['runtime'] = {
    execSync: async ({ cmd, timeout }) => {
      commands.push({ cmd, timeout });
      return {
        exitCode: cmd[0] === 'false' ? 1 : 0,
        stdout: Buffer.from('out '),
        stderr: Buffer.from('err'),
      };
    },
  };
  const ended = runLifecycleHook(
    {
      handler,
      container: { name: 'web', ports: [{ name: 'admin', containerPort: 1 }] },
      containerId: 'id',
      podIp: '127.0.0.1',
      timeoutSeconds: 7,
      signal,
      onHttpFallback: (host) => fallbacks.push(host),
    },
    { runtime, hookMetrics: new HookMetrics(metrics), clock },
  );
  return { ended, fallbacks, commands };
}

async function serve(status: number): Promise<{ port: number; seen: Record<string, unknown>[] }> {
  const seen: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    seen.push({ url: request.url, ...request.headers });
    response.writeHead(status).end('body');
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, seen };
}

describe('a lifecycle hook', () => {
  it('runs a command within the time it is given', async () => {
    const { ended, commands } = call({ exec: { command: ['true'] } });
    await ended;
    assert.deepEqual(commands, [{ cmd: ['true'], timeout: 7n }]);
  });

  it('fails with the output of the command', async () => {
    await assert.rejects(call({ exec: { command: ['false'] } }).ended, /exited with 1: out err/);
  });

  it('takes any HTTP answer for success and names itself', async () => {
    const { port, seen } = await serve(500);
    await call({ httpGet: { port, path: '/stop', httpHeaders: [{ name: 'X-A', value: 'b' }] } }).ended;
    assert.equal(seen[0]?.['url'], '/stop');
    assert.equal(seen[0]?.['user-agent'], 'kube-lifecycle/1.36');
    assert.equal(seen[0]?.['x-a'], 'b');
  });

  it('asks a plain server that was to be HTTPS again, without its credentials', async () => {
    const { port, seen } = await serve(200);
    const headers = [{ name: 'Authorization', value: 'secret' }];
    const { ended, fallbacks } = call({ httpGet: { port, scheme: 'HTTPS', httpHeaders: headers } });
    await ended;
    assert.deepEqual(fallbacks, ['127.0.0.1']);
    assert.match(await metrics.exposition(), /^kubelet_lifecycle_handler_http_fallbacks_total 1$/m);
    assert.equal(seen.at(-1)?.['authorization'], undefined);
  });

  it('fails on a port without a name and on a server that is not there', async () => {
    await assert.rejects(call({ httpGet: { port: 'nope' } }).ended, /no port named "nope"/);
    await assert.rejects(call({ httpGet: { port: 'admin' } }).ended, /ECONNREFUSED/);
  });

  it('sleeps on the clock and wakes when it is no longer wanted', async () => {
    const slept = call({ sleep: { seconds: 5 } }).ended;
    await clock.advance(5000);
    await slept;
    const abort = new AbortController();
    const cut = call({ sleep: { seconds: 5 } }, abort.signal).ended;
    abort.abort(new Error('ended'));
    await assert.rejects(cut, /ended/);
    assert.match(await metrics.exposition(), /^kubelet_sleep_action_terminated_early_total 1$/m);
  });
});
