/**
 * Opens a socket to the API server: plain or TLS, straight or through an HTTP proxy. The server's
 * certificate is always checked unless the kubeconfig says not to.
 */
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls, type TLSSocket } from 'node:tls';
import type { Clock } from '../concurrency/clock.ts';

/** What a connection is made with. A new object means that old connections must give way to new ones. */
export interface TlsIdentity {
  /** PEM; the machine's own authorities when absent. */
  readonly authority?: string;
  readonly certificate?: string;
  readonly key?: string;
}

export interface SocketTarget {
  readonly server: URL;
  readonly tls: TlsIdentity;
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify: boolean;
  readonly proxy?: URL;
  /** Told how long looking up a host's name took, successful or not; addresses need no looking up. */
  readonly onResolved?: (host: string, tookMs: number) => void;
}

/** The peer did not get as far as it should in the time it has. */
export class ConnectTimeoutError extends Error {
  override readonly name = 'ConnectTimeoutError';
}

/** The proxy did not let us through. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

export interface ServerSocket {
  readonly socket: Socket;
  readonly protocol: 'h2' | 'http/1.1';
}

/**
 * A peer that says nothing for so long is asked whether it is there; Node asks ten times, a second apart. So a
 * dead one is noticed after 15 s, also where HTTP/1.1 has no ping of its own.
 */
const keepAliveMs = 5000;
const largestProxyHead = 16 * 1024;

/** Brackets belong to the address in a URL, not to the host. */
const bare = (hostname: string) => hostname.replace(/^\[(.*)\]$/, '$1');

/** Resolves when the TLS handshake is done and the certificate is good; rejects within `timeoutMs`. */
export async function openServerSocket(
  target: SocketTarget,
  clock: Clock,
  timeoutMs: number,
): Promise<ServerSocket> {
  const { server, proxy } = target;
  const port = Number(server.port || (server.protocol === 'https:' ? 443 : 80));
  const host = bare(server.hostname);
  const opened: Socket[] = [];
  const resolved: Resolved = (socket, name) => {
    const began = clock.now();
    socket.once('lookup', () => target.onResolved?.(name, clock.now() - began));
  };
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(timeoutMs, () => {
    const through = proxy ? ` through proxy ${proxy.host}` : '';
    late.reject(new ConnectTimeoutError(`no connection within ${timeoutMs / 1000} s${through}`));
  });
  try {
    const work = async (): Promise<ServerSocket> => {
      let socket: Socket | undefined;
      if (proxy) {
        socket = await toProxy(proxy, opened, resolved);
        await tunnel(socket, proxy, `${server.hostname}:${port}`);
      }
      if (server.protocol === 'http:') {
        return { socket: socket ?? (await plain(host, port, opened, resolved)), protocol: 'http/1.1' };
      }
      const secure = await tls(target, { host, port, through: socket, opened, resolved });
      return { socket: secure, protocol: secure.alpnProtocol === 'h2' ? 'h2' : 'http/1.1' };
    };
    return await Promise.race([work(), late.promise]);
  } catch (error) {
    for (const socket of opened) socket.destroy();
    throw error;
  } finally {
    cancel();
  }
}

/** Measures how long the socket looks its host up. */
type Resolved = (socket: Socket, host: string) => void;

/** Trusted for the way to it are the machine's own authorities, whatever the cluster's are. */
async function toProxy(proxy: URL, opened: Socket[], resolved: Resolved): Promise<Socket> {
  const host = bare(proxy.hostname);
  try {
    if (proxy.protocol === 'http:') return await plain(host, Number(proxy.port || 80), opened, resolved);
    const port = Number(proxy.port || 443);
    const secure = connectTls({
      host,
      port,
      ...(isIP(host) === 0 && { servername: host }),
      minVersion: 'TLSv1.2',
    });
    resolved(secure, host);
    secure.setKeepAlive(true, keepAliveMs);
    return await handshake(secure, opened);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ProxyError(`proxy ${proxy.host} does not let us connect (${why})`, { cause });
  }
}

function plain(host: string, port: number, opened: Socket[], resolved: Resolved): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectPlain({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMs,
    });
    opened.push(socket);
    resolved(socket, host);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      socket.on('error', () => {});
      resolve(socket);
    });
  });
}

interface Way {
  readonly host: string;
  readonly port: number;
  /** A socket that leads there already. */
  readonly through: Socket | undefined;
  readonly opened: Socket[];
  readonly resolved: Resolved;
}

function tls(target: SocketTarget, { host, port, through, opened, resolved }: Way): Promise<TLSSocket> {
  const { tls: identity, tlsServerName, insecureSkipTlsVerify } = target;
  const name = tlsServerName ?? host;
  const socket = connectTls({
    // The host is what the certificate is checked against, also on a socket that leads there already.
    host,
    ...(through ? { socket: through } : { port }),
    // An address is no name to ask for.
    ...(isIP(name) === 0 && { servername: name }),
    ...(identity.authority !== undefined && { ca: identity.authority }),
    ...(identity.certificate !== undefined && { cert: identity.certificate, key: identity.key }),
    ...(tlsServerName !== undefined && {
      checkServerIdentity: (_host, certificate) => checkServerIdentity(tlsServerName, certificate),
    }),
    ALPNProtocols: ['h2', 'http/1.1'],
    minVersion: 'TLSv1.2',
    rejectUnauthorized: !insecureSkipTlsVerify,
  });
  if (!through) resolved(socket, host);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, keepAliveMs);
  return handshake(socket, opened);
}

function handshake(socket: TLSSocket, opened: Socket[]): Promise<TLSSocket> {
  opened.push(socket);
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the connection was closed during the TLS handshake')));
    socket.once('secureConnect', () => {
      socket.off('error', reject);
      socket.on('error', () => {});
      resolve(socket);
    });
  });
}

/** Asks the proxy (`CONNECT`) for a way to `authority`, and leaves the socket at the first byte after it. */
function tunnel(socket: Socket, proxy: URL, authority: string): Promise<void> {
  const user = decodeURIComponent(proxy.username);
  const login = Buffer.from(`${user}:${decodeURIComponent(proxy.password)}`).toString('base64');
  const authorization = user === '' ? '' : `Proxy-Authorization: Basic ${login}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`);
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0);
    const finish = (error?: Error) => {
      socket.off('readable', onReadable);
      socket.off('end', onEnd);
      socket.off('close', onEnd);
      if (error) reject(error);
      else resolve();
    };
    const onEnd = () => finish(new ProxyError(`proxy ${proxy.host} closed the connection`));
    const onReadable = () => {
      for (let chunk = socket.read() as Buffer | null; chunk; chunk = socket.read() as Buffer | null) {
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) {
          if (head.length > largestProxyHead)
            return finish(new ProxyError(`proxy ${proxy.host} answers without end`));
          continue;
        }
        const rest = head.subarray(end + 4);
        if (rest.length > 0) socket.unshift(rest);
        const line = head.subarray(0, head.indexOf('\r\n')).toString('latin1');
        const accepted = /^HTTP\/1\.[01] 200\b/.test(line);
        return finish(
          accepted ? undefined : new ProxyError(`proxy ${proxy.host} refused: ${line.slice(0, 200)}`),
        );
      }
    };
    socket.on('readable', onReadable);
    socket.once('end', onEnd);
    socket.once('close', onEnd);
  });
}
