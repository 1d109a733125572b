/**
 * Turns an answer that is no success into an {@link ApiError}: what was asked, what the server said, and,
 * where it lies with the operator, what helps. Pure.
 */
import { ApiError } from './api-client.ts';
import { type RequestSubject, subjectText } from './request-subject.ts';

/** `Status` (meta/v1), as far as it is used. */
interface StatusBody {
  readonly message?: unknown;
  readonly reason?: unknown;
  readonly details?: unknown;
}

/** Reasons for answers that carry no `Status`, such as those of a proxy in between. */
const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

export interface Refusal {
  readonly subject: RequestSubject;
  readonly status: number;
  /** The decoded body, or its text. */
  readonly body: unknown;
  /** The header `Retry-After`. */
  readonly retryAfter?: string | undefined;
  /** What is known to be wrong with the credentials. */
  readonly weakness?: string | undefined;
  readonly kubeconfig: string;
}

export function refusalError(refusal: Refusal): ApiError {
  const { subject, status, body, weakness, kubeconfig } = refusal;
  const said = (typeof body === 'object' && body !== null ? body : {}) as StatusBody;
  const reason =
    typeof said.reason === 'string' && said.reason !== '' ? said.reason : (reasons[status] ?? 'Unknown');
  const text = typeof body === 'string' ? body.trim().slice(0, 300) : '';
  const message =
    typeof said.message === 'string' && said.message !== '' ? said.message : text || `HTTP status ${status}`;
  return new ApiError({
    status,
    reason,
    message: `cannot ${subjectText(subject)}: ${message}${remedy(status, message, kubeconfig, weakness)}`,
    retryAfterMs: retryAfterMs(refusal.retryAfter) ?? detailsRetryMs(said.details),
  });
}

function remedy(status: number, message: string, kubeconfig: string, weakness: string | undefined): string {
  if (status === 401) {
    const why = weakness ?? `the API server does not accept the credentials of ${kubeconfig}: renew them`;
    return `; ${why}`;
  }
  if (status !== 403) return '';
  // Passes by itself once the pod that refers to the object is known to be on this node.
  if (message.includes('no relationship found')) return '';
  if (message.includes('is not allowed to modify'))
    return "; the node's name must be the one in its credentials (CN=system:node:<name>): see --hostname-override";
  return (
    `; the user of ${kubeconfig} lacks rights: its certificate must say O=system:nodes and ` +
    'CN=system:node:<name of this node>, or give it the cluster role system:node'
  );
}

/** Seconds, or an HTTP date. */
export function retryAfterMs(header: string | undefined, now = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

function detailsRetryMs(details: unknown): number | undefined {
  const seconds = (details as { retryAfterSeconds?: unknown } | null | undefined)?.retryAfterSeconds;
  return typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined;
}
