/** A gRPC health server on the node, for pods on its network. */
import * as grpc from '@grpc/grpc-js';

/** Requests are read no further than the field they have: `service`, a string. */
const serviceOf = (request: Buffer) => request.subarray(2).toString();
const serving = 1;
const notServing = 2;

export class GrpcHealth {
  /** Known before it listens, for manifests; one of its own for each test process. */
  readonly port = 30_000 + (process.pid % 20_000);
  readonly #server = new grpc.Server();
  readonly #asked: string[] = [];

  constructor() {
    const raw = (bytes: Buffer) => bytes;
    const check: grpc.handleUnaryCall<Buffer, Buffer> = ({ request }, answer) => {
      this.#asked.push(serviceOf(request));
      // Field 1, a number: the status.
      answer(null, Buffer.from([8, serviceOf(request) === 'broken' ? notServing : serving]));
    };
    this.#server.addService(
      {
        check: {
          path: '/grpc.health.v1.Health/Check',
          requestStream: false,
          responseStream: false,
          requestSerialize: raw,
          requestDeserialize: raw,
          responseSerialize: raw,
          responseDeserialize: raw,
        },
      },
      { check },
    );
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const address = `0.0.0.0:${this.port}`;
      this.#server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      );
    });
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  /** How often the health of this service was asked for. */
  asked(service: string): number {
    return this.#asked.filter((one) => one === service).length;
  }
}
