/**
 * Service accounts for those who log in to registries on behalf of a pod (credential provider plugins). They
 * are asked for one by one, when an image is pulled, and not followed.
 */
import type { ApiClient } from '../client/api-client.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import type { ServiceAccountTokens, TokenPod } from './service-account-tokens.ts';

export interface ServiceAccountFacts {
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
}

interface ServiceAccountAnswer {
  readonly metadata?: { readonly uid?: string; readonly annotations?: Readonly<Record<string, string>> };
}

const requestTimeoutMs = 10_000;

export class ServiceAccounts {
  readonly #client: Pick<ApiClient, 'request'>;
  readonly #tokens: ServiceAccountTokens;
  readonly #reads = new SingleFlight<ServiceAccountFacts>();

  constructor(options: { client: Pick<ApiClient, 'request'>; tokens: ServiceAccountTokens }) {
    this.#client = options.client;
    this.#tokens = options.tokens;
  }

  /** Rejects with `ApiError`. */
  account(namespace: string, name: string): Promise<ServiceAccountFacts> {
    return this.#reads.run(`${namespace}/${name}`, async () => {
      const { metadata } = await this.#client.request<ServiceAccountAnswer>({
        method: 'GET',
        path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/serviceaccounts/${encodeURIComponent(name)}`,
        timeoutMs: requestTimeoutMs,
      });
      return { uid: metadata?.uid ?? '', annotations: metadata?.annotations ?? {} };
    });
  }

  /** A token bound to the pod, for an audience. Rejects with `TokenError`. */
  async token(
    pod: Omit<TokenPod, 'serviceAccountName'> & { readonly serviceAccountName?: string | undefined },
    audience: string,
  ): Promise<string> {
    const { serviceAccountName = 'default' } = pod;
    const wish = { pod: { ...pod, serviceAccountName }, audience, keepsFresh: false };
    return await this.#tokens.token(wish, new AbortController().signal);
  }
}
