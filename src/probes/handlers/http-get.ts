/**
 * The httpGet probe: one GET on a fresh connection, same-host redirects followed, status 200 to 399 is a
 * success. The signal's deadline covers everything: name look-up, connection, redirects, body. What a
 * container answers can neither make this throw nor fill memory: of a body 10 KiB are read, then the
 * connection is closed.
 */
import { Agent, type IncomingMessage, request as plainRequest, type RequestOptions } from 'node:http';
import { isIP } from 'node:net';
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { failure, isTimeUp, outputLimit, type ProbeOutcome, success } from '../probe-outcome.ts';
import { type HttpHeader, hostHeader, probeHeaders } from './http-headers.ts';
import { requestPath } from './http-path.ts';
import { bracketed, networkErrorText, withoutBrackets } from './network-error.ts';

/** The request to make. */
export interface HttpGetTarget {
  readonly scheme: 'http' | 'https';
  /** A name or an address; an IPv6 one with or without brackets. */
  readonly host: string;
  readonly port: number;
  /** As the Pod has it. */
  readonly path: string;
  readonly headers: readonly HttpHeader[];
  readonly userAgent: string;
}

interface Hop {
  readonly scheme: string;
  readonly hostname: string;
  readonly port: number;
  readonly path: string;
  readonly headers: readonly string[];
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly location?: string;
}

const maxRedirects = 10;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);
/** As much as a Go client takes, within reason. */
const maxHeaderSize = 1024 * 1024;
/** A connection serves one request. */
const oneShot = new Agent({ keepAlive: false });

/** Asks once, following redirects to the same host. Never rejects. */
export async function probeHttpGet(target: HttpGetTarget, signal: AbortSignal): Promise<ProbeOutcome> {
  const { scheme, port } = target;
  const hostname = withoutBrackets(target.host);
  const host = `${bracketed(hostname)}:${port}`;
  const headers = probeHeaders(target.headers, host, target.userAgent);
  let hop: Hop = { scheme, hostname, port, path: requestPath(target.path), headers };
  const progress = { stage: 'awaiting headers' };
  try {
    for (let redirects = 0; ; redirects++) {
      progress.stage = 'awaiting headers';
      const answer = await exchange(hop, signal, progress);
      if (answer.location === undefined) return judge(answer);
      if (redirects === maxRedirects) return failure(`Get "${urlOf(hop)}": stopped after 10 redirects`);
      hop = redirected(hop, answer.location, target);
    }
  } catch (error) {
    const why = isTimeUp(signal)
      ? `context deadline exceeded (Client.Timeout exceeded while ${progress.stage})`
      : networkErrorText(error);
    return failure(`Get "${urlOf(hop)}": ${why}`);
  }
}

function judge({ status, body }: Answer): ProbeOutcome {
  if (status < 200 || status >= 400) return failure(`HTTP probe failed with statuscode: ${status}`);
  if (status < 300) return success(body);
  return { result: 'warning', output: `Probe terminated redirects, Response body: ${body}` };
}

/** `location` in the answer says that the redirect is to be followed; the body is then left unread. */
async function exchange(hop: Hop, signal: AbortSignal, progress: { stage: string }): Promise<Answer> {
  const request = hop.scheme === 'https' ? await httpsRequest() : plainRequest;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({
      hostname: hop.hostname,
      port: hop.port,
      path: hop.path,
      headers: hop.headers,
      maxHeaderSize,
      // Whatever a Go client would read; nothing is forwarded, so nothing can be smuggled.
      insecureHTTPParser: true,
      signal,
      ...(hop.scheme === 'https' ? tlsOptions(hop.hostname) : { agent: oneShot }),
    });
    sent.on('error', reject);
    sent.once('response', resolve);
    sent.once('upgrade', (upgraded, socket) => {
      socket.destroy();
      resolve(upgraded);
    });
    sent.end();
  });
  const status = response.statusCode ?? 0;
  const { location } = response.headers;
  if (redirectStatuses.has(status) && location && isSameHost(hop, location)) {
    response.on('error', () => {});
    response.destroy();
    return { status, body: '', location };
  }
  if (status < 200) return { status, body: '' };
  progress.stage = 'reading body';
  return { status, body: await readBody(response) };
}

function readBody(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const end = () => resolve(Buffer.concat(chunks).subarray(0, outputLimit).toString());
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size <= outputLimit) return;
      end();
      response.destroy();
    });
    response.on('end', end);
    response.on('error', reject);
    response.on('close', () => reject(new Error('unexpected EOF')));
  });
}

/** Loaded when the first HTTPS probe runs. */
async function httpsRequest() {
  return (await import('node:https')).request;
}

/** Nothing about the certificate is checked, however old or weak; so no trusted ones are loaded either. */
function tlsOptions(hostname: string): RequestOptions & TlsOptions {
  return {
    agent: false,
    rejectUnauthorized: false,
    ca: [],
    servername: isIP(hostname) ? '' : hostname,
  };
}

const urlOf = ({ scheme, hostname, port, path }: Hop) => `${scheme}://${bracketed(hostname)}:${port}${path}`;

/** An address that cannot be read is on no other host: following it then fails with the reason. */
function isSameHost(hop: Hop, location: string): boolean {
  const url = URL.canParse(location, urlOf(hop)) ? new URL(location, urlOf(hop)) : undefined;
  return url === undefined || url.hostname === new URL(urlOf(hop)).hostname;
}

function redirected(hop: Hop, location: string, target: HttpGetTarget): Hop {
  const base = urlOf(hop);
  if (!URL.canParse(location, base)) {
    throw new Error(`failed to parse Location header ${JSON.stringify(location)}`);
  }
  const url = new URL(location, base);
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== 'http' && scheme !== 'https') throw new Error(`unsupported protocol scheme "${scheme}"`);
  const port = url.port === '' ? (scheme === 'https' ? 443 : 80) : Number(url.port);
  // A `Host` of the probe's own goes along only while the redirect names no host itself.
  const isAbsolute = /^[a-z][a-z0-9+.-]*:/i.test(location);
  const given =
    isAbsolute && hostHeader(target.headers)
      ? target.headers.filter(({ name }) => name.toLowerCase() !== 'host')
      : target.headers;
  return {
    scheme,
    hostname: withoutBrackets(url.hostname),
    port,
    path: `${url.pathname}${url.search}`,
    headers: probeHeaders(given, url.host, target.userAgent),
  };
}
