/**
 * What a service account token says about itself. Pure. The node does not check the signature: it asks only
 * about tokens that it has written to disk itself.
 */

export interface TokenClaims {
  readonly subject: string;
  readonly audiences: readonly string[];
  readonly podUid: string | undefined;
  /** Epoch milliseconds. */
  readonly issuedAt: number;
  /**
   * Epoch milliseconds at which the token is meant to be replaced. The API server may let it live longer, for
   * clients that never read it again, and then says so in a claim of its own (`warnafter`).
   */
  readonly expiresAt: number;
}

/** The claims of a JSON web token; `undefined` for any other text. */
export function readTokenClaims(token: string): TokenClaims | undefined {
  const [, payload] = token.split('.');
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(payload ?? '', 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  const { sub, aud, iat, exp, 'kubernetes.io': bound } = asRecord(claims);
  const { pod, warnafter } = asRecord(bound);
  const { uid } = asRecord(pod);
  const until = typeof warnafter === 'number' ? warnafter : exp;
  if (typeof sub !== 'string' || typeof iat !== 'number' || typeof until !== 'number') return undefined;
  return {
    subject: sub,
    audiences: (Array.isArray(aud) ? aud : [aud]).filter((one) => typeof one === 'string'),
    podUid: typeof uid === 'string' ? uid : undefined,
    issuedAt: iat * 1000,
    expiresAt: until * 1000,
  };
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
