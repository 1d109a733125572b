/** Errors of Node's sockets in the words operators of Kubernetes know. */

const wordsOfCode: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset by peer',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ETIMEDOUT: 'connection timed out',
  ENOTFOUND: 'no such host',
  EPIPE: 'broken pipe',
};

/** What Node says with the code of a reset when the other side has just closed the connection. */
const wordsOfMessage: Readonly<Record<string, string>> = {
  'socket hang up': 'EOF',
  aborted: 'unexpected EOF',
};

/** For example `dial tcp 10.1.0.7:80: connect: connection refused`. */
export function networkErrorText(error: unknown): string {
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
  if (!(first instanceof Error)) return String(first);
  const {
    code = '',
    syscall,
    address,
    port,
    hostname,
  } = first as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
    hostname?: string;
  };
  const words = wordsOfMessage[first.message] ?? wordsOfCode[code] ?? first.message;
  if (syscall === 'connect' && address !== undefined) {
    return `dial tcp ${hostAndPort(address, port)}: connect: ${words}`;
  }
  if (syscall === 'getaddrinfo' && hostname !== undefined) return `lookup ${hostname}: ${words}`;
  return words;
}

/** `host:port`, an IPv6 address in brackets. */
export function hostAndPort(host: string, port: number | undefined): string {
  return `${bracketed(host)}${port === undefined ? '' : `:${port}`}`;
}

/** An address as it stands in a URL: IPv6 in brackets. */
export function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** The address of a URL's host. */
export function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}
