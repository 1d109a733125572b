/** Connects to the API server and speaks the newest HTTP it offers. */
import type { Clock } from '../concurrency/clock.ts';
import { Http1Connection } from './http1-connection.ts';
import { Http2Connection } from './http2-connection.ts';
import type { KubeconfigCluster } from './kubeconfig.ts';
import type { ServerConnection } from './server-connection.ts';
import { openServerSocket, type TlsIdentity } from './server-socket.ts';

const connectMs = 10_000;

/** Rejects within ten seconds with what the network or TLS reports. `onClosed` is called once, at its end. */
export async function openConnection(
  cluster: KubeconfigCluster,
  identity: TlsIdentity,
  clock: Clock,
  onClosed: () => void,
): Promise<ServerConnection> {
  const server = new URL(cluster.server);
  const open = () =>
    openServerSocket(
      {
        server,
        tls: identity,
        insecureSkipTlsVerify: cluster.insecureSkipTlsVerify,
        ...(cluster.tlsServerName !== undefined && { tlsServerName: cluster.tlsServerName }),
        ...(cluster.proxyUrl !== undefined && { proxy: new URL(cluster.proxyUrl) }),
      },
      clock,
      connectMs,
    );
  const { socket, protocol } = await open();
  if (protocol === 'h2') return new Http2Connection({ socket, server, clock, onClosed });
  const connect = async () => (await open()).socket;
  return new Http1Connection({ socket, server, clock, connect, onClosed });
}
