/**
 * What a request for a stream into a container asks for, read from its query as a kubelet reads it.
 */

/** Which of the process's streams the client takes part in. */
export interface StreamOptions {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** A request that is turned down; the message is the answer's text. */
export class StreamRefusal extends Error {
  override readonly name = 'StreamRefusal';
  readonly status: number;

  constructor(status: number, text: string, options?: ErrorOptions) {
    super(text, options);
    this.status = status;
  }
}

/** Of exec and attach. Throws {@link StreamRefusal}. */
export function streamOptions(query: URLSearchParams): StreamOptions {
  const isOn = (name: string) => query.get(name) === '1';
  const tty = isOn('tty');
  const options = {
    stdin: isOn('input'),
    stdout: isOn('output'),
    // A terminal has one output.
    stderr: isOn('error') && !tty,
    tty,
  };
  if (!options.stdin && !options.stdout && !options.stderr) {
    throw new StreamRefusal(400, 'you must specify at least 1 of stdin, stdout, stderr');
  }
  return options;
}

interface UpgradeHeaders {
  readonly upgrade?: string | undefined;
  readonly 'sec-websocket-protocol'?: string | undefined;
}

/** What a client would speak over a WebSocket, what it likes best first; nothing when it asks for none. */
export function offeredProtocols(headers: UpgradeHeaders): string[] {
  if (!isWebSocket(headers.upgrade)) return [];
  return (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
}

/** Whether it names a SPDY connection that a WebSocket carries: `SPDY/3.1+portforward.k8s.io`. */
export const tunnelledForward = (protocol: string): boolean => /^SPDY\/3\.1\+[\w.-]+$/.test(protocol);

/**
 * The ports a WebSocket names when it is opened; with SPDY every stream names its own later. Throws
 * {@link StreamRefusal}.
 */
export function forwardedPorts(query: URLSearchParams, headers: UpgradeHeaders): number[] {
  if (!isWebSocket(headers.upgrade) || offeredProtocols(headers).some(tunnelledForward)) return [];
  const texts = query.getAll('port').flatMap((text) => text.split(','));
  if (texts.length === 0) throw new StreamRefusal(400, 'query parameter "port" is required');
  return texts.map(portOf);
}

function portOf(text: string): number {
  if (text === '') throw new StreamRefusal(400, 'query parameter "port" cannot be empty');
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port === 0) throw new StreamRefusal(400, `port "${text}" must be > 0`);
  if (!(port <= 65_535)) throw new StreamRefusal(400, `unable to parse ${JSON.stringify(text)} as a port`);
  return port;
}

export function isWebSocket(upgrade: string | undefined): boolean {
  return upgrade?.toLowerCase() === 'websocket';
}
