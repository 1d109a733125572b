/**
 * Listens on one plain HTTP address with the kubelet's limits, so that no client, slow or rude, can hold
 * more than a connection. `node:http` is loaded when the first server starts.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo, Server as NetServer } from 'node:net';
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import { refuseBrokenRequests } from './refuse-broken-requests.ts';
import type { Router } from './router.ts';

export const idleTimeout = 90_000;
const requestTimeout = 4 * 3600 * 1000;
const headersTimeout = 60_000;
export const maxHeaderSize = 1024 * 1024;
/** More than any monitoring needs, and few enough to leave file descriptors for pods. */
const maxConnections = 256;
/** What is being answered when the server closes gets this long, milliseconds. */
export const closeGrace = 2000;

export interface ListenOptions {
  address: string;
  /**
   * 0 takes any free port. (In the configuration 0 turns a server off: whoever reads that does not start
   * the server.)
   */
  port: number;
  clock: Clock;
  log: Logger;
  /** How an operator changes the address, for the error when it cannot be used. */
  setting: { server: string; portFlag: string; addressFlag: string };
}

export interface RunningServer {
  readonly address: string;
  readonly port: number;
  /** Takes no new requests, lets running ones end for two seconds. */
  close(): Promise<void>;
}

/** A server's address cannot be used. */
export class ListenError extends Error {
  override name = 'ListenError';
}

/** Resolves when requests are served; rejects with a {@link ListenError}. */
export async function listen(options: ListenOptions, router: Router): Promise<RunningServer> {
  const { createServer } = process.getBuiltinModule('node:http');
  const limits = { maxHeaderSize, requestTimeout, headersTimeout, keepAliveTimeout: idleTimeout };
  const server = createServer({
    ...limits,
    // Nothing is served here that goes on as another protocol; a wish for one is passed over.
    shouldUpgradeCallback: (request: IncomingMessage) => router.upgrades(request),
  });
  refuseBrokenRequests(server, options.clock);
  server.on('request', (request, response) => router.request(request, response));
  server.on('upgrade', (request, socket, head) => router.upgrade(request, socket, head));
  server.maxConnections = maxConnections;
  // Also ends answers that the client does not read.
  server.setTimeout(idleTimeout);
  await bound(server, options);
  const { clock, log, setting } = options;
  server.on('error', (error) => log.error('A server has trouble', error, { server: setting.server }));
  const { address, port } = server.address() as AddressInfo;
  return { address, port, close: () => close(server, clock) };
}

export function bound(server: NetServer, options: ListenOptions): Promise<void> {
  const { address, port } = options;
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => reject(listenError(error, options));
    server.once('error', onError);
    server.listen({ host: address, port }, () => {
      server.off('error', onError);
      resolve();
    });
  });
}

function listenError(error: NodeJS.ErrnoException, { address, port, setting }: ListenOptions): ListenError {
  const { server, portFlag, addressFlag } = setting;
  const where = `${address.includes(':') ? `[${address}]` : address}:${port}`;
  return new ListenError(`cannot serve ${server} on ${where}: ${cause()}`, { cause: error });

  function cause(): string {
    const otherPort = `choose another port with ${portFlag} (0 turns the server off)`;
    switch (error.code) {
      case 'EADDRINUSE':
        return `port ${port} is in use by another process; stop that process or ${otherPort}`;
      case 'EACCES':
        return `port ${port} may not be used by this user; run the kubelet as root or ${otherPort}`;
      case 'EADDRNOTAVAIL':
        return `this machine has no address ${address}; choose one that it has with ${addressFlag}`;
      default:
        return `${error.message}; check ${addressFlag} and ${portFlag}`;
    }
  }
}

function close(server: Server, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(closeGrace, () => server.closeAllConnections());
    server.close(() => {
      cancel();
      resolve();
    });
    server.closeIdleConnections();
  });
}
