/** Ports of the loopback interface: the usual one where it is free, else any. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

async function tryPort(port: number): Promise<number | undefined> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  } catch {
    return undefined;
  } finally {
    server.close();
  }
}

/** `usual` when nobody listens there, else a port that the kernel picks. */
export async function freePort(usual: number): Promise<number> {
  const port = (await tryPort(usual)) ?? (await tryPort(0));
  if (port === undefined) throw new Error(`no port of 127.0.0.1 is free (${usual} was asked for)`);
  return port;
}
