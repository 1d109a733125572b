/** When certificates are renewed, and how long to wait after a failure. Pure. */
import { ApiError } from '../client/api-client.ts';
import { CertificateRefusedError } from './certificate-signing.ts';

const firstMs = 2000;
const longestMs = 32_000;
/** Whoever denied a request is not asked again every half minute. */
const longestDeniedMs = 15 * 60_000;

/** Milliseconds to wait after the `failures`-th failure in a row; up to a tenth more by `random`. */
export function retryDelay(failures: number, error: unknown, random: () => number): number {
  const denied = error instanceof CertificateRefusedError && error.denied;
  const longest = denied ? longestDeniedMs : longestMs;
  const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
  const delay = Math.min(firstMs * 2 ** Math.min(failures - 1, 20), longest);
  return Math.max(asked, delay * (1 + random() / 10));
}

/**
 * Epoch milliseconds: somewhere between 70 % and 90 % of the lifetime, as `random` says. For a certificate just
 * issued (`now` given), never sooner than after a tenth of what is left of it: with a clock that is ahead,
 * every new certificate would otherwise be due at once.
 */
export function rotationTime(
  certificate: { readonly notBefore: number; readonly notAfter: number },
  random: number,
  now?: number,
): number {
  const { notBefore, notAfter } = certificate;
  const due = notBefore + (notAfter - notBefore) * (0.7 + 0.2 * random);
  return now === undefined ? due : Math.max(due, now + (notAfter - now) / 10);
}
