import assert from 'node:assert/strict';
import { createServer as createTlsServer } from 'node:https';
import { describe, it, type TestContext } from 'node:test';
import { settle } from '../../concurrency/virtual-clock.ts';
import { closedPort, listening, rawServer } from '../fixtures/loopback-server.ts';
import { weakCertificate } from '../fixtures/weak-certificate.ts';
import { outputLimit, ProbeTimeoutError } from '../probe-outcome.ts';
import { type HttpGetTarget, probeHttpGet } from './http-get.ts';

/** A server that would be refused by anybody who checks. */
const weakServer = { ...weakCertificate, ciphers: 'DEFAULT:@SECLEVEL=0' };
const forever = new AbortController().signal;

const target = (port: number, more: Partial<HttpGetTarget> = {}): HttpGetTarget => ({
  scheme: 'http',
  host: '127.0.0.1',
  port,
  path: '/healthz',
  headers: [],
  userAgent: 'kube-probe/1.36',
  ...more,
});

/** A server with one answer for everything. */
const answering = (t: TestContext, text: string) => rawServer(t, (socket) => socket.end(text));

const answer = (status: string, body = '', headers = '') =>
  `HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\n${headers}Connection: close\r\n\r\n${body}`;

describe('the httpGet probe', () => {
  const statuses: readonly (readonly [string, string, string])[] = [
    ['200 OK', 'success', 'fine'],
    ['204 No Content', 'success', ''],
    ['299 Odd', 'success', 'fine'],
    ['304 Not Modified', 'warning', 'Probe terminated redirects, Response body: '],
    ['302 Found', 'warning', 'Probe terminated redirects, Response body: fine'],
    ['399 Odd', 'warning', 'Probe terminated redirects, Response body: fine'],
    ['400 Bad Request', 'failure', 'HTTP probe failed with statuscode: 400'],
    ['503 Unavailable', 'failure', 'HTTP probe failed with statuscode: 503'],
    ['101 Switching Protocols', 'failure', 'HTTP probe failed with statuscode: 101'],
  ];
  for (const [status, result, output] of statuses) {
    it(`takes ${status} for ${result}`, async (t) => {
      const empty = status.startsWith('204') || status.startsWith('304') || status.startsWith('101');
      const upgrade = status.startsWith('101') ? 'Upgrade: x\r\n' : '';
      const { port } = await answering(
        t,
        answer(status, empty ? '' : 'fine', upgrade).replace('close', upgrade ? 'Upgrade' : 'close'),
      );
      assert.deepEqual(await probeHttpGet(target(port), forever), { result, output });
    });
  }

  it('sends one plain GET and lets go of the connection', async (t) => {
    const server = await answering(t, answer('200 OK', 'ok'));
    await probeHttpGet(
      target(server.port, { path: '/a?b=c', headers: [{ name: 'X-A', value: '1' }] }),
      forever,
    );
    await server.idle();
    assert.deepEqual(server.received, [
      `GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nX-A: 1\r\nConnection: close\r\n\r\n`,
    ]);
  });

  for (const [name, text] of [
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nok'],
    ['no length', 'HTTP/1.1 200 OK\r\n\r\nok'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
    ['an early hint', `HTTP/1.1 103 Early Hints\r\n\r\n${answer('200 OK', 'ok')}`],
  ] as const) {
    it(`reads an answer with ${name}`, async (t) => {
      const { port } = await answering(t, text);
      assert.deepEqual(await probeHttpGet(target(port), forever), { result: 'success', output: 'ok' });
    });
  }

  it('keeps 10 KiB of a body and closes the connection on the rest', async (t) => {
    const server = await rawServer(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const more = () => {
        while (!socket.destroyed && socket.write('x'.repeat(65_536)));
      };
      socket.on('drain', more);
      more();
    });
    const outcome = await probeHttpGet(target(server.port), forever);
    assert.deepEqual(outcome, { result: 'success', output: 'x'.repeat(outputLimit) });
    await server.idle();
  });

  const failing: readonly (readonly [string, string, RegExp])[] = [
    ['hangs up', '', /^Get "http:\/\/127\.0\.0\.1:\d+\/healthz": EOF$/],
    ['cuts its body short', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok', /^Get ".*": unexpected EOF$/],
    ['speaks something else', 'SSH-2.0-OpenSSH_9.2\r\n', /^Get ".*": Parse Error/],
  ];
  for (const [name, text, output] of failing) {
    it(`fails when the server ${name}`, async (t) => {
      const { port } = await answering(t, text);
      const outcome = await probeHttpGet(target(port), forever);
      assert.ok(outcome.result === 'failure');
      assert.match(outcome.output, output);
    });
  }

  it('fails when nobody listens', async () => {
    const port = await closedPort();
    assert.deepEqual(await probeHttpGet(target(port), forever), {
      result: 'failure',
      output: `Get "http://127.0.0.1:${port}/healthz": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
  });

  it('fails, and does not throw, on a header nobody can send', async (t) => {
    const { port } = await answering(t, answer('200 OK'));
    const outcome = await probeHttpGet(target(port, { headers: [{ name: 'X', value: 'a\nb' }] }), forever);
    assert.equal(outcome.result, 'failure');
  });

  describe('when the time is up', () => {
    const stages: readonly (readonly [string, string, string])[] = [
      ['awaiting headers', '', 'nothing came'],
      ['awaiting headers', 'HTTP/1.1 200 OK\r\nX-', 'headers drip'],
      ['reading body', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nslow', 'the body drips'],
    ];
    for (const [stage, sent, name] of stages) {
      it(`has failed while ${stage} (${name}), and lets go of the connection`, async (t) => {
        const abort = new AbortController();
        const server = await rawServer(t, (socket) => {
          if (sent !== '') socket.write(sent);
          // Some turns of the event loop later the client has read it: everything is in this process.
          void settle().then(() => abort.abort(new ProbeTimeoutError(1000)));
        });
        const outcome = await probeHttpGet(target(server.port), abort.signal);
        assert.ok(outcome.result === 'failure');
        const text = `Get "http://127.0.0.1:${server.port}/healthz": context deadline exceeded (Client.Timeout exceeded while ${stage})`;
        assert.equal(outcome.output, text);
        await server.idle();
      });
    }
  });

  describe('on a redirect', () => {
    /** Redirects everything to what `to` says, until it says nothing. */
    const redirecting = (t: TestContext, to: (path: string, port: number) => string | undefined) => {
      const started: { port: number } = { port: 0 };
      const server = rawServer(t, (socket, request) => {
        const location = to(request.split(' ')[1] ?? '', started.port);
        socket.end(
          location === undefined
            ? answer('200 OK', 'there')
            : answer('302 Found', 'moved', `Location: ${location}\r\n`),
        );
      });
      return server.then((made) =>
        Object.assign(made, { started: Object.assign(started, { port: made.port }) }),
      );
    };

    it('follows one on the same host, with its own Host header', async (t) => {
      const server = await redirecting(t, (path) => (path === '/healthz' ? '/ok?x=1' : undefined));
      const headers = [{ name: 'Host', value: 'example.org' }];
      const outcome = await probeHttpGet(target(server.port, { headers }), forever);
      assert.deepEqual(outcome, { result: 'success', output: 'there' });
      assert.match(server.received[1] ?? '', /^GET \/ok\?x=1 HTTP\/1\.1\r\nHost: example\.org\r\n/);
    });

    it('follows one to another port of the host, without it', async (t) => {
      const other = await answering(t, answer('200 OK', 'other port'));
      const server = await redirecting(t, () => `http://127.0.0.1:${other.port}/`);
      const headers = [{ name: 'Host', value: 'example.org' }];
      const outcome = await probeHttpGet(target(server.port, { headers }), forever);
      assert.deepEqual(outcome, { result: 'success', output: 'other port' });
      assert.match(
        other.received[0] ?? '',
        new RegExp(`^GET / HTTP/1.1\\r\\nHost: 127.0.0.1:${other.port}\\r\\n`),
      );
    });

    it('does not go to another host, and warns', async (t) => {
      const server = await redirecting(t, () => 'http://example.invalid/');
      assert.deepEqual(await probeHttpGet(target(server.port), forever), {
        result: 'warning',
        output: 'Probe terminated redirects, Response body: moved',
      });
    });

    it('gives up after ten', async (t) => {
      const server = await redirecting(t, (path) => `${path}x`);
      const outcome = await probeHttpGet(target(server.port), forever);
      assert.ok(outcome.result === 'failure');
      assert.match(outcome.output, /stopped after 10 redirects$/);
      assert.equal(server.received.length, 11);
    });

    it('fails on an address that is none', async (t) => {
      for (const location of ['http://[', 'gopher://127.0.0.1/']) {
        const server = await redirecting(t, () => location);
        const outcome = await probeHttpGet(target(server.port), forever);
        assert.ok(outcome.result === 'failure', location);
        assert.match(outcome.output, /failed to parse Location header|unsupported protocol scheme "gopher"/);
      }
    });
  });

  it('speaks HTTPS with anybody, whatever the certificate', async (t) => {
    const secure = createTlsServer(weakServer, (request, response) => response.end(`at ${request.url}`));
    const { port } = await listening(t, secure);
    assert.deepEqual(await probeHttpGet(target(port, { scheme: 'https' }), forever), {
      result: 'success',
      output: 'at /healthz',
    });
  });

  it('fails where HTTPS is asked for and plain text answers', async (t) => {
    const { port } = await answering(t, answer('200 OK'));
    const outcome = await probeHttpGet(target(port, { scheme: 'https' }), forever);
    assert.equal(outcome.result, 'failure');
  });
});
