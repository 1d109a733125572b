/**
 * Tokens of service accounts for pods (TokenRequest), each bound to its pod. A token is renewed when most of
 * its life is over, and the pod is told; while it cannot be renewed, the old one serves to its end.
 */
import type { ApiClient } from '../client/api-client.ts';
import type { Clock } from '../concurrency/clock.ts';
import { SingleFlight } from '../concurrency/single-flight.ts';
import { podKey } from '../kubernetes/pod-identity.ts';
import type { Pod } from '../kubernetes/types.ts';
import { errorText } from '../telemetry/error-text.ts';
import type { Logger } from '../telemetry/logger.ts';
import { readTokenClaims } from './token-claims.ts';
import { unlessAborted } from './waiting.ts';

/** The pod that a token is bound to. */
export interface TokenPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly serviceAccountName: string;
}

export interface TokenWish {
  readonly pod: TokenPod;
  /** Whom the token is for; the API server itself when absent or empty. */
  readonly audience?: string | undefined;
  /** Seconds the token shall live; 3600 when absent. */
  readonly expirationSeconds?: number | undefined;
  /** A token that the node has written down before; it serves on when it is what is wished for. */
  readonly existing?: string | undefined;
  /**
   * True to have the token renewed without being asked for it, and the pod told; otherwise it is renewed
   * when somebody asks late in its life.
   */
  readonly keepsFresh: boolean;
}

/** No token could be had for a pod. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
  constructor({ namespace, serviceAccountName }: TokenPod, cause: unknown) {
    super(
      `failed to fetch token: service account "${namespace}/${serviceAccountName}": ${errorText(cause)}`,
      { cause },
    );
  }
}

export interface ServiceAccountTokensOptions {
  readonly client: Pick<ApiClient, 'request'>;
  /** A pod's token has been replaced. */
  readonly onRenewed: (podUid: string) => void;
  /** From 0 up to 1, for spreading renewals. */
  readonly random: () => number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The parts of a TokenRequest's answer that count. */
interface TokenAnswer {
  readonly spec?: { readonly expirationSeconds?: number };
  readonly status?: { readonly token?: string };
}

interface HeldToken {
  readonly token: string;
  /** Epoch milliseconds. */
  readonly renewAt: number;
  readonly expiresAt: number;
}

const defaultSeconds = 3600;
const renewAtPart = 0.8;
const longestServiceMs = 24 * 60 * 60_000;
const longestJitterMs = 10_000;
const firstRetryMs = 5_000;
const longestRetryMs = 5 * 60_000;
const requestTimeoutMs = 10_000;

export class ServiceAccountTokens {
  readonly #options: ServiceAccountTokensOptions;
  readonly #tokens = new Map<string, HeldToken>();
  readonly #timers = new Map<string, () => void>();
  readonly #requests = new SingleFlight<HeldToken>();
  /** By pod: the keys of its tokens. */
  readonly #pods = new Map<string, Set<string>>();

  constructor(options: ServiceAccountTokensOptions) {
    this.#options = options;
  }

  /** The token that serves now. Rejects with {@link TokenError}, or with the signal's reason. */
  async token(wish: TokenWish, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const key = tokenKey(wish);
    this.#pods.set(wish.pod.uid, (this.#pods.get(wish.pod.uid) ?? new Set()).add(key));
    const held = this.#tokens.get(key) ?? this.#adopt(key, wish);
    const now = this.#options.clock.now();
    if (held && now < (wish.keepsFresh ? held.expiresAt : held.renewAt)) return held.token;
    return (await unlessAborted(this.#request(key, wish), signal)).token;
  }

  /** The pod is gone: its tokens are not renewed any more. */
  forget(podUid: string): void {
    for (const key of this.#pods.get(podUid) ?? []) {
      this.#timers.get(key)?.();
      this.#timers.delete(key);
      this.#tokens.delete(key);
    }
    this.#pods.delete(podUid);
  }

  close(): void {
    for (const uid of this.#pods.keys()) this.forget(uid);
  }

  /** After a restart of the node agent the tokens of all pods are still there; none is asked for again. */
  #adopt(key: string, wish: TokenWish): HeldToken | undefined {
    const claims = readTokenClaims(wish.existing ?? '');
    if (!wish.existing || !claims) return undefined;
    const { namespace, serviceAccountName, uid } = wish.pod;
    const { subject, podUid, audiences, issuedAt, expiresAt } = claims;
    const isOurs =
      subject === `system:serviceaccount:${namespace}:${serviceAccountName}` &&
      podUid === uid &&
      // Which audience stands for the API server only the API server knows.
      (wish.audience ? audiences.length === 1 && audiences[0] === wish.audience : audiences.length > 0);
    const now = this.#options.clock.now();
    const held = this.#schedule({ token: wish.existing, from: issuedAt, expiresAt });
    // One of the future tells of a clock that was set back: nothing can be reckoned from it.
    if (!isOurs || held.renewAt <= now || issuedAt > now) return undefined;
    this.#hold(key, wish, held);
    return held;
  }

  #request(key: string, wish: TokenWish): Promise<HeldToken> {
    return this.#requests.run(key, async () => {
      const { pod, audience, expirationSeconds = defaultSeconds } = wish;
      const { namespace, name, uid, serviceAccountName } = pod;
      const { client, clock } = this.#options;
      const from = clock.now();
      const account = `${encodeURIComponent(namespace)}/serviceaccounts/${encodeURIComponent(serviceAccountName)}`;
      try {
        const answer = await client.request<TokenAnswer>({
          method: 'POST',
          path: `/api/v1/namespaces/${account}/token`,
          body: {
            apiVersion: 'authentication.k8s.io/v1',
            kind: 'TokenRequest',
            spec: {
              audiences: audience ? [audience] : [],
              expirationSeconds,
              boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid },
            },
          },
          timeoutMs: requestTimeoutMs,
        });
        const token = answer.status?.token;
        if (!token) throw new TypeError('the answer holds no token');
        // Reckoned from this node's own clock, whatever the server's clock says.
        const expiresAt = from + (answer.spec?.expirationSeconds ?? expirationSeconds) * 1000;
        const held = this.#schedule({ token, from, expiresAt });
        this.#hold(key, wish, held);
        return held;
      } catch (error) {
        throw new TokenError(pod, error);
      }
    });
  }

  #schedule({ token, from, expiresAt }: { token: string; from: number; expiresAt: number }): HeldToken {
    const jitter = this.#options.random() * longestJitterMs;
    const life = Math.min((expiresAt - from) * renewAtPart, longestServiceMs);
    return { token, expiresAt, renewAt: from + Math.max(life - jitter, 0) };
  }

  #hold(key: string, wish: TokenWish, held: HeldToken): void {
    // The pod may have gone while its token was on the way.
    if (!this.#pods.get(wish.pod.uid)?.has(key)) return;
    this.#tokens.set(key, held);
    if (wish.keepsFresh) this.#renewIn(held.renewAt - this.#options.clock.now(), key, wish, firstRetryMs);
  }

  #renewIn(ms: number, key: string, wish: TokenWish, retryMs: number): void {
    this.#timers.get(key)?.();
    const renew = () => void this.#renew(key, wish, retryMs);
    this.#timers.set(key, this.#options.clock.after(ms, renew));
  }

  async #renew(key: string, wish: TokenWish, retryMs: number): Promise<void> {
    const { uid } = wish.pod;
    try {
      await this.#request(key, wish);
      if (this.#tokens.has(key)) this.#options.onRenewed(uid);
    } catch (error) {
      if (!this.#tokens.has(key)) return;
      const fields = { pod: podKey({ metadata: wish.pod }), podUID: uid, err: errorText(error) };
      this.#options.logger.warn(
        'A service account token could not be renewed; the old one serves on',
        fields,
      );
      this.#renewIn(retryMs, key, wish, Math.min(retryMs * 2, longestRetryMs));
    }
  }
}

/** Names a pod's service account as a token is asked for. */
export function tokenPod({ metadata, spec }: Pod): TokenPod {
  const { namespace, name, uid } = metadata;
  return { namespace, name, uid, serviceAccountName: spec.serviceAccountName || 'default' };
}

function tokenKey({ pod, audience = '', expirationSeconds = defaultSeconds, keepsFresh }: TokenWish): string {
  return [pod.uid, pod.serviceAccountName, expirationSeconds, keepsFresh, audience].join('/');
}
