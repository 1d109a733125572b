import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../concurrency/clock.ts';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import type { Container, Probe } from '../kubernetes/types.ts';
import { rawServer } from './fixtures/loopback-server.ts';
import type { ExecSync } from './handlers/exec.ts';
import { ProbeRunner } from './probe-runner.ts';

const signal = new AbortController().signal;
const noExec: ExecSync = { execSync: () => Promise.reject(new Error('no runtime')) };

function run(
  probe: Probe,
  options: { port?: number; podIp?: string; exec?: ExecSync; clock?: VirtualClock } = {},
) {
  const { port = 1, podIp = '127.0.0.1', exec = noExec, clock = systemClock } = options;
  const container: Container = { name: 'web', ports: [{ name: 'http', containerPort: port }] };
  const subject = { container, containerId: 'c1', podIp: podIp || undefined };
  return new ProbeRunner({ clock, exec }).run({ probe, subject, timeoutMs: 60_000, signal });
}

describe('a run of a probe', () => {
  it('goes to the pod, to a port by its name', async (t) => {
    const server = await rawServer(t, (socket) =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
    );
    const { port } = server;
    assert.equal((await run({ httpGet: { port: 'http', path: '/x' } }, { port })).result, 'success');
    assert.match(
      server.received[0] ?? '',
      /^GET \/x HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\nUser-Agent: kube-probe\/1\.36\r\n/,
    );
    assert.equal((await run({ tcpSocket: { port: 'http' } }, { port })).result, 'success');
    assert.equal((await run({ tcpSocket: { port, host: '127.0.0.1' } }, { podIp: '' })).result, 'success');
  });

  const errors: readonly (readonly [string, Probe, string])[] = [
    ['no handler', {}, 'missing probe handler for container web'],
    [
      'an unknown port',
      { httpGet: { host: '127.0.0.1', port: 'https' } },
      'container web has no port named "https"',
    ],
    ['no address', { grpc: { port: 1 } }, 'the pod of container web has no IP address yet'],
    ['no runtime', { exec: { command: ['true'] } }, 'no runtime'],
  ];
  for (const [name, probe, error] of errors) {
    it(`knows nothing with ${name}`, async () => {
      assert.deepEqual(await run(probe, { podIp: '' }), { result: 'unknown', error });
    });
  }

  it('is tried three times while nothing is known, and not when something is', async () => {
    const codes = ['error', 'error', 0, 1];
    let calls = 0;
    const exec: ExecSync = {
      execSync: async () => {
        const code = codes[calls++];
        if (typeof code !== 'number') throw new Error('no connection');
        return { exitCode: code, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
      },
    };
    const probe = { exec: { command: ['true'] } };
    assert.equal((await run(probe, { exec })).result, 'success');
    assert.equal(calls, 3);
    assert.equal((await run(probe, { exec })).result, 'failure');
    assert.equal(calls, 4);
  });

  it('ends with the time-out, name look-up and connection included', async (t) => {
    const clock = new VirtualClock();
    const server = await rawServer(t, () => void clock.advance(60_000));
    const outcome = await run({ httpGet: { port: server.port } }, { clock });
    assert.ok(outcome.result === 'failure');
    assert.match(outcome.output, /context deadline exceeded/);
    assert.equal(clock.nextTimer(), undefined);
  });
});
