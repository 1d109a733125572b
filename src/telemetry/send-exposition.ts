/**
 * Sends metrics the way the scraper asks for them: OpenMetrics instead of the text format where that is
 * offered and preferred, gzip where it is accepted.
 */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { openMetricsContentType, prefersOpenMetrics, toOpenMetrics } from './open-metrics.ts';

export const textContentType = 'text/plain; version=0.0.4; charset=utf-8';

export interface ExpositionRequest {
  readonly headers: IncomingHttpHeaders;
  readonly response: ServerResponse;
}

/** Smaller answers are not worth compressing, bytes. */
const smallest = 1400;

/**
 * Answers with `text` in the Prometheus text format. `openMetrics`: offer the other format as well; only
 * `/metrics` does, as on a kubelet.
 */
export async function sendExposition(
  { headers, response }: ExpositionRequest,
  text: string | Buffer,
  { openMetrics = false }: { readonly openMetrics?: boolean } = {},
): Promise<void> {
  const isOpen = openMetrics && prefersOpenMetrics(headers.accept);
  const body = isOpen ? toOpenMetrics(String(text)) : text;
  await sendCompressed(headers, response, body, isOpen ? openMetricsContentType : textContentType);
}

/** Answers 200 with `body`, compressed when the client takes it and it is worth it. */
export async function sendCompressed(
  headers: IncomingHttpHeaders,
  response: ServerResponse,
  body: string | Buffer,
  contentType: string,
): Promise<void> {
  const plain = typeof body === 'string' ? Buffer.from(body) : body;
  const isPacked = plain.length >= smallest && acceptsGzip(headers['accept-encoding']);
  const sent = isPacked ? await gzip(plain) : plain;
  response.writeHead(200, {
    'content-type': contentType,
    'content-length': sent.length,
    vary: 'accept-encoding',
    ...(isPacked && { 'content-encoding': 'gzip' }),
  });
  // Sent bytes may lie in a buffer that its owner writes to again: done when the kernel or the copy has them.
  await new Promise<void>((resolve) => {
    response.once('close', resolve);
    response.end(sent, resolve);
  });
}

function acceptsGzip(accepted: string | string[] | undefined): boolean {
  const offers = String(accepted ?? '').split(',');
  return offers.some((offer) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$)[\d.]+\s*)?$/i.test(offer));
}

/** Fast rather than small: the bytes go over the network of a cluster once. On a thread of the pool. */
function gzip(bytes: Buffer): Promise<Buffer> {
  const { gzip: compress } = process.getBuiltinModule('node:zlib');
  return new Promise((resolve, reject) => {
    compress(bytes, { level: 1 }, (error, packed) => (error ? reject(error) : resolve(packed)));
  });
}
