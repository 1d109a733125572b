/**
 * `/logs/`: the directory `/var/log` of the machine, to look around in and to read from, ranges included; and,
 * where queries are wanted, the logs of services (`?query=kubelet&tailLines=20`).
 *
 * Differs from the kubelet: links that lead out of the directory are not followed, so that a pod which may write
 * to `/var/log` cannot have the node's other files shown.
 */
import { opendir } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../concurrency/clock.ts';
import { type FileBeneath, openBeneath } from './beneath.ts';
import type { Exchange, NodeRoute } from './route.ts';
import { sendText } from './router.ts';
import { sendServiceLogs } from './service-logs.ts';
import { readSystemLogQuery } from './system-log-query.ts';

/** More names than this are not listed. */
const mostNames = 10_000;

export interface SystemLogOptions {
  /** `enableSystemLogHandler`. */
  readonly enabled: boolean;
  /** `enableSystemLogQuery`. */
  readonly queries: boolean;
  /** `/var/log`. */
  readonly directory: string;
  /** Where `journalctl` is looked for: a `PATH`. */
  readonly searchPath: string;
  readonly clock: Clock;
}

/** Queries beyond this are turned away: each may have the whole journal read. */
const mostQueries = 4;

export function systemLogRoutes(options: SystemLogOptions): NodeRoute[] {
  const { enabled, directory } = options;
  const answerQuery = queryAnswers(options);
  return [
    {
      methods: ['GET'],
      path: '/logs/',
      debugging: true,
      handle: enabled
        ? async (exchange) => (await answerQuery(exchange)) || (await sendBeneath(directory, exchange))
        : ({ response }) => sendText(response, 405, 'Debug endpoints are disabled.\n'),
    },
  ];
}

/** Answers exchanges that query something, and tells whether it has. */
function queryAnswers(options: SystemLogOptions): (exchange: Exchange) => Promise<boolean> {
  const { queries, directory, searchPath, clock } = options;
  let going = 0;
  return async (exchange) => {
    const { response } = exchange;
    const query = queries ? readSystemLogQuery(exchange.query) : undefined;
    if (!query) return false;
    if (query.kind === 'refused') {
      sendText(response, query.status, query.text);
    } else if (query.kind === 'file') {
      const path = query.path.replace(/^\/+/, '');
      const found = await openBeneath(directory, path);
      if (found?.kind === 'file') await sendFile(found, { ...exchange, response, rest: path });
      else sendText(response, 406, `query=${JSON.stringify(query.path)}: no such file below ${directory}\n`);
    } else if (going >= mostQueries) {
      response.setHeader('retry-after', '1');
      sendText(response, 429, `${mostQueries} queries are being answered; try again when one has ended\n`);
    } else {
      going++;
      try {
        await sendServiceLogs(query, exchange, { directory, searchPath, clock });
      } finally {
        going--;
      }
    }
    return true;
  };
}

async function sendBeneath(directory: string, exchange: Exchange): Promise<void> {
  const { response, rest, path } = exchange;
  const found = await openBeneath(directory, rest);
  if (!found) return sendText(response, 404, '404: Page Not Found');
  const endsAsDirectory = path.endsWith('/');
  if (found.kind === 'directory') {
    if (endsAsDirectory) return await sendListing(found.path, exchange);
    // Relative, for the client may have come through the API server, under another path.
    const name = encodeURIComponent(path.slice(path.lastIndexOf('/') + 1));
    return void response.writeHead(301, { location: `${name}/` }).end();
  }
  if (!endsAsDirectory) return await sendFile(found, exchange);
  await found.file.close();
  sendText(response, 404, '404: Page Not Found');
}

/** Sends a file, or the part of it that is asked for, and closes it. */
async function sendFile(
  { size, modified, file }: FileBeneath,
  exchange: Pick<Exchange, 'response' | 'rest' | 'headers' | 'method' | 'signal'>,
): Promise<void> {
  const { response, rest } = exchange;
  try {
    const part = requestedPart(exchange.headers.range, size);
    if (part === 'none') {
      response.setHeader('content-range', `bytes */${size}`);
      return sendText(response, 416, '416: Range Not Satisfiable');
    }
    const { start, end } = part ?? { start: 0, end: size - 1 };
    response.writeHead(part ? 206 : 200, {
      'content-type': contentType(rest),
      'x-content-type-options': 'nosniff',
      'accept-ranges': 'bytes',
      'last-modified': modified.toUTCString(),
      'content-length': end - start + 1,
      ...(part && { 'content-range': `bytes ${start}-${end}/${size}` }),
    });
    if (exchange.method === 'HEAD' || end < start) return void response.end();
    // A file that grows meanwhile ends where it ended before; one that shrinks cuts the answer off.
    const content = file.createReadStream({ start, end, autoClose: false });
    await pipeline(content, response, { signal: exchange.signal });
  } finally {
    await file.close();
  }
}

/** One range of bytes; undefined: all of it (also for what this does not understand, as HTTP allows). */
function requestedPart(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'none' | undefined {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? [];
  if (from === '' && to === '') return undefined;
  const start = from === '' ? Math.max(0, size - Number(to)) : Number(from);
  const end = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1);
  if (from !== '' && to !== '' && Number(to) < start) return undefined;
  return start > end ? 'none' : { start, end };
}

function contentType(path: string): string {
  if (path.endsWith('.gz')) return 'application/gzip';
  return /\.(xz|zst|bz2|journal~?)$/.test(path) ? 'application/octet-stream' : 'text/plain; charset=utf-8';
}

async function sendListing(
  directory: string,
  { response, method }: Pick<Exchange, 'response' | 'method'>,
): Promise<void> {
  const names: string[] = [];
  for await (const entry of await opendir(directory)) {
    names.push(entry.isDirectory() ? `${entry.name}/` : entry.name);
    if (names.length >= mostNames) break;
  }
  const lines = names
    .sort()
    // `./` keeps a name with a colon from being read as a scheme.
    .map((name) => `<a href="./${encodeURIComponent(name).replace(/%2F$/, '/')}">${escaped(name)}</a>\n`);
  response.writeHead(200, {
    'content-type': 'text/html; charset=utf-8',
    'x-content-type-options': 'nosniff',
  });
  response.end(method === 'HEAD' ? undefined : `<!DOCTYPE html>\n<pre>\n${lines.join('')}</pre>\n`);
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
