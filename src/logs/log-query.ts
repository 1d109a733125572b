/**
 * What a request for a container's log asks for: the query of `/containerLogs/…`, read and checked as
 * `PodLogOptions` are.
 */
import { type LogStream, streams } from './log-entry.ts';

export interface LogQuery {
  readonly follow: boolean;
  /** 0: the newest instance; 1: the one before it; and so on. */
  readonly previous: number;
  readonly timestamps: boolean;
  readonly tailLines?: number;
  readonly sinceMs?: number;
  readonly limitBytes?: number;
  readonly stream?: LogStream;
}

export interface RefusedQuery {
  readonly status: 400 | 422;
  readonly text: string;
}

/** The text is no number, time or stream. */
const undecodable: RefusedQuery = { status: 400, text: '{"message": "Unable to decode query."}' };
/** Each part can be read, and the whole makes no sense. */
const invalid: RefusedQuery = { status: 422, text: '{"message": "Invalid request."}' };

/** `streamsSplit` tells whether `stream` may be asked for (gate PodLogsQuerySplitStreams). */
export function readLogQuery(
  query: URLSearchParams,
  { now, streamsSplit }: { now: number; streamsSplit: boolean },
): LogQuery | RefusedQuery {
  // The old name of the parameter wins, and `all` means that there is no such limit.
  const oldTail = query.get('tail') ?? '';
  const tail = oldTail === 'all' ? null : oldTail || query.get('tailLines');
  const tailLines = wholeNumber(tail);
  const sinceSeconds = wholeNumber(query.get('sinceSeconds'));
  const limitBytes = wholeNumber(query.get('limitBytes'));
  const sinceTime = time(query.get('sinceTime'));
  if ([tailLines, sinceSeconds, limitBytes, sinceTime].some(Number.isNaN)) return undecodable;

  const stream = query.get('stream') ?? undefined;
  if (stream !== undefined && !streamsSplit) {
    return { status: 400, text: '{"message": "stream: needs the feature gate PodLogsQuerySplitStreams."}' };
  }
  const known: Readonly<Record<string, LogStream | 'both'>> = {
    All: 'both',
    Stdout: streams.stdout,
    Stderr: streams.stderr,
  };
  const chosen = known[stream ?? 'All'];
  if (chosen === undefined) return invalid;
  if (tailLines !== undefined && (tailLines < 0 || chosen !== 'both')) return invalid;
  if (limitBytes !== undefined && limitBytes < 1) return invalid;
  if (sinceSeconds !== undefined && (sinceSeconds < 1 || sinceTime !== undefined)) return invalid;
  const sinceMs = sinceSeconds === undefined ? sinceTime : now - sinceSeconds * 1000;
  return {
    follow: truth(query.get('follow')),
    previous: previousInstance(query.get('previous')),
    timestamps: truth(query.get('timestamps')),
    ...(tailLines !== undefined && { tailLines }),
    ...(limitBytes !== undefined && { limitBytes }),
    ...(sinceMs !== undefined && { sinceMs }),
    ...(chosen !== 'both' && { stream: chosen }),
  };
}

/** Anything that is given and says neither `false` nor `0` is true. */
function truth(text: string | null): boolean {
  return text !== null && text !== '0' && text.toLowerCase() !== 'false';
}

/**
 * Differs from the kubelet, which knows one previous instance: a number above 1 asks for an older one. To
 * the kubelet every such number is `true`.
 */
function previousInstance(text: string | null): number {
  if (!truth(text)) return 0;
  return /^[1-9]\d{0,5}$/.test(text ?? '') ? Number(text) : 1;
}

/** NaN for what is no 64-bit integer. */
function wholeNumber(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (!/^[+-]?\d{1,30}$/.test(text)) return Number.NaN;
  const value = BigInt(text);
  return value >= -(2n ** 63n) && value < 2n ** 63n ? Number(value) : Number.NaN;
}

/** Epoch milliseconds; NaN for what is no RFC 3339 time. */
function time(text: string | null): number | undefined {
  if (text === null || text === '' || text === 'null') return undefined;
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text);
  return isTime ? Date.parse(text) : Number.NaN;
}
