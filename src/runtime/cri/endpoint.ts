/**
 * Where a runtime listens. Only unix sockets are spoken on Linux; a bare path means one.
 */

/** An endpoint that is not a unix socket; the message names the flag to correct. */
export class InvalidEndpointError extends Error {
  override readonly name = 'InvalidEndpointError';
  readonly endpoint: string;

  constructor(endpoint: string, flag: string, why: string) {
    super(
      `${flag}=${endpoint} is no runtime endpoint: ${why}. Example: unix:///run/containerd/containerd.sock`,
    );
    this.endpoint = endpoint;
  }
}

/**
 * The absolute path of the socket that `endpoint` names: `unix:///run/x.sock`, `unix:/run/x.sock` or
 * `/run/x.sock`.
 */
export function socketPath(endpoint: string, flag: string): string {
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/i.exec(endpoint) ?? [];
  if (scheme !== undefined && scheme !== 'unix') {
    throw new InvalidEndpointError(endpoint, flag, `"${scheme}" is not served on Linux, only "unix" is`);
  }
  const path = scheme === undefined ? endpoint : rest.replace(/^\/\//, '');
  if (!path.startsWith('/')) throw new InvalidEndpointError(endpoint, flag, 'the path is not absolute');
  return path;
}
