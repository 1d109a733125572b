import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { closedPort, rawServer } from '../fixtures/loopback-server.ts';
import { ProbeTimeoutError } from '../probe-outcome.ts';
import { probeTcpSocket } from './tcp-socket.ts';

const forever = new AbortController().signal;

describe('the tcpSocket probe', () => {
  it('succeeds when somebody listens, says nothing and closes at once', async (t) => {
    const server = await rawServer(t, () => {});
    assert.deepEqual(await probeTcpSocket({ host: '127.0.0.1', port: server.port }, forever), {
      result: 'success',
      output: '',
    });
    await server.idle();
    assert.equal(server.received.join(''), '');
  });

  it('fails when nobody listens', async () => {
    const port = await closedPort();
    assert.deepEqual(await probeTcpSocket({ host: '127.0.0.1', port }, forever), {
      result: 'failure',
      output: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
  });

  it('fails when the time is up', async () => {
    const late = AbortSignal.abort(new ProbeTimeoutError(1000));
    assert.deepEqual(await probeTcpSocket({ host: '::1', port: 9 }, late), {
      result: 'failure',
      output: 'dial tcp [::1]:9: i/o timeout',
    });
  });

  it('fails on a name nobody knows', async () => {
    const outcome = await probeTcpSocket({ host: 'no-such-host.invalid', port: 80 }, forever);
    assert.ok(outcome.result === 'failure');
    assert.match(outcome.output, /^lookup no-such-host\.invalid: /);
  });
});
