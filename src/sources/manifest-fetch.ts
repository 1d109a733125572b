/**
 * Fetches the text behind a manifest URL: with a deadline and a size limit, following redirects, without
 * keeping a connection. `node:http` and `node:https` are loaded on the first fetch only.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Clock } from '../concurrency/clock.ts';
import { maxManifestBytes } from './manifest-file.ts';

/** Header name to its values, as `--manifest-url-header` gives them. */
export type ManifestHeaders = Readonly<Record<string, readonly string[]>>;

export interface ManifestFetch {
  readonly url: string;
  readonly headers: ManifestHeaders;
  /** Of the answer before; the server may then say that nothing changed. */
  readonly etag: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export type ManifestAnswer =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'text'; readonly content: Uint8Array; readonly etag: string | undefined };

/** The server could not be asked, or its answer is of no use. */
class ManifestFetchError extends Error {
  override name = 'ManifestFetchError';
}

/** Time for a whole fetch, redirects and body included, milliseconds. */
const fetchTimeout = 10_000;
const maxRedirects = 10;

/** Rejects with a {@link ManifestFetchError}, or with the signal's reason when it is aborted. */
export async function fetchManifest(fetch: ManifestFetch): Promise<ManifestAnswer> {
  const deadline = new AbortController();
  const cancel = fetch.clock.after(fetchTimeout, () =>
    deadline.abort(new ManifestFetchError(`no complete answer within ${fetchTimeout / 1000} s`)),
  );
  const signal = AbortSignal.any([fetch.signal, deadline.signal]);
  try {
    return await follow(fetch, signal);
  } catch (error) {
    fetch.signal.throwIfAborted();
    if (deadline.signal.aborted) throw deadline.signal.reason;
    if (error instanceof ManifestFetchError) throw error;
    throw new ManifestFetchError('the request failed', { cause: error });
  } finally {
    cancel();
  }
}

/** The URL as it may be shown and logged. */
export function withoutCredentials(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return url;
  if (parsed.username === '' && parsed.password === '') return url;
  parsed.username = '';
  parsed.password = '';
  return parsed.href;
}

async function follow(fetch: ManifestFetch, signal: AbortSignal): Promise<ManifestAnswer> {
  let url = parseUrl(fetch.url);
  const { origin } = url;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    // Own headers and what was learnt from the first server go to that one only.
    const headers: Record<string, string | string[]> = url.origin === origin ? headersOf(fetch) : {};
    const response = await request(url, headers, signal);
    const { statusCode = 0, headers: answered } = response;
    if (statusCode === 200) return { kind: 'text', content: await body(response), etag: answered.etag };
    response.destroy();
    if (statusCode === 304 && fetch.etag !== undefined) return { kind: 'unchanged' };
    if (statusCode < 300 || statusCode >= 400 || answered.location === undefined) {
      throw new ManifestFetchError(
        `the server answered ${statusCode} ${response.statusMessage ?? ''}`.trim(),
      );
    }
    url = parseUrl(answered.location, url);
  }
  throw new ManifestFetchError(`the server redirected more than ${maxRedirects} times`);
}

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null) throw new ManifestFetchError('the URL is not one');
  if (url.protocol === 'http:' || url.protocol === 'https:') return url;
  throw new ManifestFetchError(`the URL begins with ${url.protocol}//; only http and https can be fetched`);
}

function headersOf({ headers, etag }: ManifestFetch): Record<string, string | string[]> {
  const own = Object.entries(headers).map(([name, values]) => [name, [...values]] as const);
  return { ...Object.fromEntries(own), ...(etag !== undefined && { 'if-none-match': etag }) };
}

function request(
  url: URL,
  headers: Record<string, string | string[]>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const options = {
    headers: { accept: 'application/json, application/yaml, */*', ...headers },
    signal,
    agent: false,
  };
  return new Promise((resolve, reject) => {
    const sent: ClientRequest =
      url.protocol === 'https:'
        ? process.getBuiltinModule('node:https').request(url, { ...options, ca: trustedRoots() })
        : process.getBuiltinModule('node:http').request(url, options);
    sent.on('error', reject).on('response', resolve).end();
  });
}

/** Those of Node.js and those of the machine, as the operator of the machine expects. */
function trustedRoots(): string[] {
  const tls = process.getBuiltinModule('node:tls');
  return [...new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')])];
}

async function body(response: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxManifestBytes) {
      throw new ManifestFetchError(`the answer has more than ${maxManifestBytes} bytes (10 MiB)`);
    }
    chunks.push(chunk);
  }
  if (length === 0) throw new ManifestFetchError('the answer is empty');
  return Buffer.concat(chunks);
}
