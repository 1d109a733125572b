/** Connects to the API server and speaks the newest HTTP it offers. */
import type { Clock } from '../concurrency/clock.ts';
import { Http1Connection } from './http1-connection.ts';
import { Http2Connection } from './http2-connection.ts';
import type { KubeconfigCluster } from './kubeconfig.ts';
import type { ServerConnection } from './server-connection.ts';
import { openServerSocket, type TlsIdentity } from './server-socket.ts';

const connectMs = 10_000;

export interface ConnectionListener {
  /** Called once, at the connection's end. */
  readonly onClosed: () => void;
  /** A name has been looked up. */
  readonly onResolved?: (host: string, tookMs: number) => void;
}

/** Rejects within ten seconds with what the network or TLS reports. */
export async function openConnection(
  cluster: KubeconfigCluster,
  identity: TlsIdentity,
  clock: Clock,
  { onClosed, onResolved }: ConnectionListener,
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
        ...(onResolved && { onResolved }),
      },
      clock,
      connectMs,
    );
  const { socket, protocol } = await open();
  if (protocol === 'h2') return new Http2Connection({ socket, server, clock, onClosed });
  const connect = async () => (await open()).socket;
  return new Http1Connection({ socket, server, clock, connect, onClosed });
}
