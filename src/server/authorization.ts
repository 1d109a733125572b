/**
 * Decides whether a caller may: everybody may everything (`AlwaysAllow`), or whoever the API server says may
 * (`Webhook`). Answers are kept, granted ones longer than refused ones. An answer that cannot be had is no
 * right: it is told apart from a refusal, so that people look in the right place.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Access } from './access.ts';
import { AnswerCache } from './answer-cache.ts';
import type { AccessAttributes, Reviews } from './reviews.ts';
import type { User } from './route.ts';

export type Decision =
  | { readonly outcome: 'allowed' }
  | { readonly outcome: 'forbidden' }
  | { readonly outcome: 'unknown'; readonly cause: unknown };

export interface Authorizer {
  decide(user: User, access: Access): Promise<Decision>;
}

export const alwaysAllow: Authorizer = { decide: async () => ({ outcome: 'allowed' }) };

export interface WebhookAuthorizationOptions {
  readonly reviews: Pick<Reviews, 'accessReview'>;
  readonly nodeName: string;
  readonly allowedTtlMs: number;
  readonly deniedTtlMs: number;
  readonly clock: Clock;
}

const rememberedDecisions = 8192;
const reviewTimeoutMs = 10_000;
/** What is longer than this together is asked for anew each time instead of being kept, characters. */
const longestKey = 10_000;

export class WebhookAuthorization implements Authorizer {
  readonly #options: WebhookAuthorizationOptions;
  readonly #answers: AnswerCache<boolean>;

  constructor(options: WebhookAuthorizationOptions) {
    const { clock, allowedTtlMs, deniedTtlMs } = options;
    this.#options = options;
    this.#answers = new AnswerCache({
      clock,
      ttl: (allowed) => (allowed ? allowedTtlMs : deniedTtlMs),
      limit: rememberedDecisions,
      timeoutMs: reviewTimeoutMs,
    });
  }

  /** Sub-resources are asked for one after the other: the narrow right first, the wide one only if need be. */
  async decide(user: User, { verb, subresources }: Access): Promise<Decision> {
    const { nodeName } = this.#options;
    let trouble: Decision | undefined;
    for (const subresource of subresources) {
      try {
        if (await this.#may({ user, verb, subresource, nodeName })) return { outcome: 'allowed' };
      } catch (cause) {
        trouble ??= { outcome: 'unknown', cause };
      }
    }
    return trouble ?? { outcome: 'forbidden' };
  }

  #may(attributes: AccessAttributes): Promise<boolean> {
    const { reviews } = this.#options;
    const ask = async (signal: AbortSignal) => (await reviews.accessReview(attributes, signal)).allowed;
    const key = JSON.stringify(attributes);
    return key.length > longestKey ? ask(AbortSignal.timeout(reviewTimeoutMs)) : this.#answers.get(key, ask);
  }
}
