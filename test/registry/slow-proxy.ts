/**
 * A proxy in front of a registry that can hold back the rest of a download until the test lets it go.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export class SlowProxy {
  readonly port: number;
  readonly #server: ReturnType<typeof createServer>;
  #held: { readonly path: RegExp; readonly afterBytes: number; readonly released: Promise<void> } | undefined;

  private constructor(server: ReturnType<typeof createServer>, registryPort: number) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on('request', (incoming, outgoing) => this.#forward(incoming, outgoing, registryPort));
  }

  static async start(registryPort: number): Promise<SlowProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new SlowProxy(server, registryPort);
  }

  /** Downloads whose path matches stop after so many bytes; the returned function lets them go on. */
  hold(path: RegExp, afterBytes: number): () => void {
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    this.#held = { path, afterBytes, released };
    return release;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse, port: number): void {
    const { method, url = '/', headers } = incoming;
    const upstream = request({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      const held = this.#held?.path.test(url) && method === 'GET' ? this.#held : undefined;
      void this.#pass(answer, outgoing, held);
    });
    upstream.on('error', () => outgoing.destroy());
    incoming.pipe(upstream);
  }

  async #pass(
    answer: IncomingMessage,
    outgoing: ServerResponse,
    held: { readonly afterBytes: number; readonly released: Promise<void> } | undefined,
  ): Promise<void> {
    let passed = 0;
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        const before = held && passed < held.afterBytes ? held.afterBytes - passed : 0;
        passed += chunk.length;
        if (held && passed > held.afterBytes) {
          outgoing.write(chunk.subarray(0, before));
          await held.released;
          outgoing.write(chunk.subarray(before));
        } else outgoing.write(chunk);
      }
      outgoing.end();
    } catch {
      outgoing.destroy();
    }
  }
}
