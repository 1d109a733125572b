/**
 * Finds out who asks: by client certificate, by bearer token, or nobody in particular (`system:anonymous`), in
 * this order, as a kubelet does. Credentials that are there and do not hold are refused even where anonymous
 * callers are welcome; a token counts although the certificate beside it does not.
 *
 * A certificate is judged at each request, not once for the connection, so one that has expired or whose
 * authority is no longer trusted stops counting on connections that stand.
 */
import { createHmac, randomBytes, type X509Certificate } from 'node:crypto';
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { AccessMetrics } from './access-metrics.ts';
import { AnswerCache } from './answer-cache.ts';
import { certificateUser } from './certificate-user.ts';
import type { Reviews } from './reviews.ts';
import type { User } from './route.ts';

export interface Credentials {
  /** What the client showed and proved to have the key of; undefined when it showed none. */
  readonly certificate: ShownCertificate | undefined;
  /** The `Authorization` header. */
  readonly authorization: string | undefined;
}

export interface ShownCertificate {
  readonly leaf: X509Certificate;
  /** Issued by an authority that is trusted now, for clients. */
  readonly trusted: boolean;
}

export interface AuthenticationOptions {
  /** Whether client certificates count: a client CA is configured. */
  readonly certificates: boolean;
  /** Absent: tokens do not count. */
  readonly tokens?: { readonly reviews: Pick<Reviews, 'tokenReview'>; readonly cacheTtlMs: number };
  readonly anonymous: boolean;
  readonly metrics: AccessMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How many tokens are remembered; every pod that scrapes is one. */
const rememberedTokens = 4096;
const reviewTimeoutMs = 10_000;
/** Longer ones are refused unasked. */
const longestToken = 64 * 1024;

const anonymousUser: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

export class Authentication {
  readonly #options: AuthenticationOptions;
  readonly #tokens: AnswerCache<User | undefined>;
  /** Tokens are kept by a keyed digest: a dump of the memory shows none. */
  readonly #digestKey = randomBytes(32);

  constructor(options: AuthenticationOptions) {
    this.#options = options;
    this.#tokens = new AnswerCache({
      clock: options.clock,
      ttl: () => options.tokens?.cacheTtlMs ?? 0,
      limit: rememberedTokens,
      timeoutMs: reviewTimeoutMs,
    });
  }

  /** Undefined: who asks is not known, and must be. */
  async identify({ certificate, authorization }: Credentials): Promise<User | undefined> {
    const { certificates, anonymous } = this.#options;
    let isWrong = false;
    if (certificates && certificate) {
      const user = this.#byCertificate(certificate);
      if (user) {
        this.#options.metrics.certificate(certificate.leaf.validToDate.getTime());
        return withGroup(user);
      }
      isWrong = true;
    }
    const token = bearerToken(authorization);
    if (this.#options.tokens && token !== undefined) {
      const user = await this.#byToken(token);
      if (user) return withGroup(user);
      isWrong = true;
    }
    return !isWrong && anonymous ? anonymousUser : undefined;
  }

  #byCertificate({ leaf, trusted }: ShownCertificate): User | undefined {
    const now = this.#options.clock.now();
    if (!trusted || now < leaf.validFromDate.getTime() || now > leaf.validToDate.getTime()) return undefined;
    return certificateUser(leaf);
  }

  async #byToken(token: string): Promise<User | undefined> {
    const { tokens, metrics, log } = this.#options;
    if (!tokens || token.length > longestToken) return undefined;
    const digest = createHmac('sha256', this.#digestKey).update(token).digest('base64');
    try {
      return await metrics.token(this.#tokens.has(digest), () =>
        this.#tokens.get(digest, (signal) => metrics.fetch(() => tokens.reviews.tokenReview(token, signal))),
      );
    } catch (error) {
      log.error('A bearer token could not be reviewed by the API server', error);
      return undefined;
    }
  }
}

function bearerToken(authorization: string | undefined): string | undefined {
  const [scheme = '', token = ''] = authorization?.trim().split(/ +/) ?? [];
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : undefined;
}

const authenticatedGroup = 'system:authenticated';

function withGroup(user: User): User {
  if (user.groups.includes(authenticatedGroup) || user.name === anonymousUser.name) return user;
  return { ...user, groups: [...user.groups, authenticatedGroup] };
}
