/** Counts what it takes to know callers of the node's API: their certificates, their tokens, what is asked. */
import { ApiError } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import type { Counter, Gauge, Histogram, Metrics } from '../telemetry/metrics.ts';
import type { Reviews } from './reviews.ts';

/** A kind of review that the API server answers. */
interface ReviewMetrics {
  readonly requests: Counter;
  readonly durations: Histogram;
}

const hour = 3600;
const day = 24 * hour;

export class AccessMetrics {
  readonly #clock: Clock;
  readonly #lifetimes: Histogram;
  readonly #tokenRequests: Counter;
  readonly #tokenDurations: Histogram;
  readonly #fetches: Counter;
  readonly #active: Gauge;
  readonly #authn: ReviewMetrics;
  readonly #authz: ReviewMetrics;
  readonly #activeCounts = { blocked: 0, in_flight: 0 };

  constructor({ metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock }) {
    this.#clock = clock;
    this.#lifetimes = metrics.histogram({
      name: 'apiserver_client_certificate_expiration_seconds',
      help: '[ALPHA] How long the certificates of callers are still valid.',
      buckets: [
        0,
        hour / 2,
        hour,
        2 * hour,
        6 * hour,
        12 * hour,
        ...[1, 2, 4, 7, 30, 90, 180, 360].map((days) => days * day),
      ],
    });
    const status = { labels: ['status'] };
    this.#tokenRequests = metrics.counter({
      name: 'authentication_token_cache_request_total',
      help: '[ALPHA] Tokens of callers, by whether they were known (hit) or asked about (miss).',
      ...status,
    });
    this.#tokenDurations = metrics.histogram({
      name: 'authentication_token_cache_request_duration_seconds',
      help: '[ALPHA] Time until it was known whose a token is.',
      ...status,
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    });
    this.#fetches = metrics.counter({
      name: 'authentication_token_cache_fetch_total',
      help: '[ALPHA] Times that a token was asked about, by outcome.',
      ...status,
    });
    this.#active = metrics.gauge({
      name: 'authentication_token_cache_active_fetch_count',
      help: '[ALPHA] Tokens that are being asked about (in_flight), and callers who wait for that (blocked).',
      ...status,
    });
    this.#authn = reviewMetrics(metrics, 'authn', 'whose a token is');
    this.#authz = reviewMetrics(metrics, 'authz', 'whether a caller may');
  }

  /** A caller was known by a certificate that is valid until then, epoch milliseconds. */
  certificate(validUntil: number): void {
    this.#lifetimes.observe((validUntil - this.#clock.now()) / 1000);
  }

  /** Finds out whose a token is, by an answer that is kept or not. */
  async token<T>(isKept: boolean, work: () => Promise<T>): Promise<T> {
    const status = isKept ? 'hit' : 'miss';
    const began = this.#clock.now();
    if (!isKept) this.#count('blocked', 1);
    try {
      return await work();
    } finally {
      if (!isKept) this.#count('blocked', -1);
      this.#tokenRequests.inc({ status });
      this.#tokenDurations.observe((this.#clock.now() - began) / 1000, { status });
    }
  }

  /** Asks about one token. */
  async fetch<T>(work: () => Promise<T>): Promise<T> {
    this.#count('in_flight', 1);
    let status = 'error';
    try {
      const answer = await work();
      status = 'ok';
      return answer;
    } finally {
      this.#count('in_flight', -1);
      this.#fetches.inc({ status });
    }
  }

  /** The same reviews, counted. */
  reviews(reviews: Reviews): Reviews {
    return {
      tokenReview: (token, signal) => this.#review(this.#authn, reviews.tokenReview(token, signal)),
      accessReview: (attributes, signal) =>
        this.#review(this.#authz, reviews.accessReview(attributes, signal)),
    };
  }

  async #review<T>({ requests, durations }: ReviewMetrics, answer: Promise<T>): Promise<T> {
    const began = this.#clock.now();
    let code = '201';
    try {
      return await answer;
    } catch (error) {
      code = error instanceof ApiError && error.status > 0 ? String(error.status) : '<error>';
      throw error;
    } finally {
      requests.inc({ code });
      durations.observe((this.#clock.now() - began) / 1000, { code });
    }
  }

  #count(status: 'blocked' | 'in_flight', by: number): void {
    this.#activeCounts[status] += by;
    this.#active.set(this.#activeCounts[status], { status });
  }
}

function reviewMetrics(metrics: Metrics, kind: 'authn' | 'authz', what: string): ReviewMetrics {
  const labels = ['code'];
  return {
    requests: metrics.counter({
      name: `apiserver_delegated_${kind}_request_total`,
      help: `[ALPHA] Times the API server was asked ${what}, by its answer.`,
      labels,
    }),
    durations: metrics.histogram({
      name: `apiserver_delegated_${kind}_request_duration_seconds`,
      help: `[ALPHA] Time the API server took to answer ${what}.`,
      labels,
      buckets: [0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10],
    }),
  };
}
