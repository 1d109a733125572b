import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import {
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js';
import fc from 'fast-check';
import { closedPort, rawServer } from '../fixtures/loopback-server.ts';
import { ProbeTimeoutError } from '../probe-outcome.ts';
import { decodeAnswer, probeGrpcHealth } from './grpc-health.ts';

const forever = new AbortController().signal;
const target = (port: number, service = '') => ({
  host: '127.0.0.1',
  port,
  service,
  userAgent: 'kube-probe/1.36',
});

const raw = (data: Buffer) => data;
const health: ServiceDefinition = {
  Check: {
    path: '/grpc.health.v1.Health/Check',
    requestStream: false,
    responseStream: false,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  },
};

/** A real gRPC server with the health service, or without it. */
async function grpcServer(t: TestContext, check?: handleUnaryCall<Buffer, Buffer>): Promise<number> {
  const server = new Server();
  if (check) server.addService(health, { Check: check });
  t.after(() => server.forceShutdown());
  return await new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    );
  });
}

describe('the grpc probe', () => {
  const answers: readonly (readonly [number[], string, string])[] = [
    [[0x08, 1], 'success', 'service healthy'],
    [[0x08, 2], 'failure', 'service unhealthy (responded with "NOT_SERVING")'],
    [[0x08, 3], 'failure', 'service unhealthy (responded with "SERVICE_UNKNOWN")'],
    [[], 'failure', 'service unhealthy (responded with "UNKNOWN")'],
    [[0x08, 99], 'failure', 'service unhealthy (responded with "99")'],
    [[0x12, 2, 0, 0, 0x08, 1], 'success', 'service healthy'],
    [[0x08], 'failure', 'error: health rpc failed: the answer cannot be read'],
  ];
  for (const [bytes, result, output] of answers) {
    it(`takes the answer [${bytes.join(' ')}] for ${result}`, async (t) => {
      const port = await grpcServer(t, (_call, reply) => reply(null, Buffer.from(bytes)));
      assert.deepEqual(await probeGrpcHealth(target(port), forever), { result, output });
    });
  }

  it('asks for the service, by the name of the kubelet', async (t) => {
    const asked: [string, string][] = [];
    const port = await grpcServer(t, (call, reply) => {
      asked.push([call.request.toString('hex'), String(call.metadata.get('user-agent')[0])]);
      reply(null, Buffer.from([0x08, 1]));
    });
    await probeGrpcHealth(target(port), forever);
    await probeGrpcHealth(target(port, 'db'), forever);
    await probeGrpcHealth(target(port, 'x'.repeat(300)), forever);
    assert.deepEqual(asked, [
      ['', 'kube-probe/1.36'],
      ['0a026462', 'kube-probe/1.36'],
      [`0aac02${'78'.repeat(300)}`, 'kube-probe/1.36'],
    ]);
  });

  it('fails with what the server says', async (t) => {
    const port = await grpcServer(t, (_call, reply) =>
      reply({ code: status.NOT_FOUND, details: 'no service "db" – none' }),
    );
    assert.deepEqual(await probeGrpcHealth(target(port), forever), {
      result: 'failure',
      output: 'error: health rpc failed: no service "db" – none (gRPC status 5)',
    });
  });

  it('fails where there is no health service', async (t) => {
    const outcome = await probeGrpcHealth(target(await grpcServer(t)), forever);
    assert.ok(outcome.result === 'failure');
    assert.match(
      outcome.output,
      /^error: this server does not implement the grpc health protocol \(grpc\.health/,
    );
  });

  it('fails when nobody listens', async () => {
    const port = await closedPort();
    assert.deepEqual(await probeGrpcHealth(target(port), forever), {
      result: 'failure',
      output: `error: failed to connect service "127.0.0.1:${port}": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
  });

  it('fails when something else listens', async (t) => {
    const server = await rawServer(t, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const outcome = await probeGrpcHealth(target(server.port), forever);
    assert.equal(outcome.result, 'failure');
    await server.idle();
  });

  it('fails when the time is up before the server speaks HTTP/2', async (t) => {
    const abort = new AbortController();
    const server = await rawServer(t, () => abort.abort(new ProbeTimeoutError(1000)));
    assert.deepEqual(await probeGrpcHealth(target(server.port), abort.signal), {
      result: 'failure',
      output: `timeout: failed to connect service "127.0.0.1:${server.port}": context deadline exceeded`,
    });
    await server.idle();
  });

  it('fails when the time is up before the answer', async (t) => {
    const abort = new AbortController();
    const port = await grpcServer(t, () => abort.abort(new ProbeTimeoutError(1000)));
    assert.deepEqual(await probeGrpcHealth(target(port), abort.signal), {
      result: 'failure',
      output: 'timeout: health rpc did not complete in time: context deadline exceeded',
    });
  });

  it('reads any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => void decodeAnswer(Buffer.from(bytes))),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const frame = Buffer.concat([Buffer.alloc(5), bytes]);
        frame.writeUInt32BE(bytes.length, 1);
        const value = decodeAnswer(frame);
        assert.ok(value === undefined || value >= 0);
      }),
    );
  });
});
