/**
 * The client that every room shares: requests and watches on one HTTP/2 connection, heartbeats on another.
 *
 * Guarantees: heartbeats wait for no rate limit and for no other request; every call ends within its time
 * limit or when its signal aborts; a request the server may have acted on is never sent twice, unless it only
 * reads; what the server asks to wait (`Retry-After`) is waited for within the call's own time limit; trouble
 * that concerns all callers (server away, credentials refused) is logged once, not by each of them.
 */
import { type Clock, sleep } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { type ApiClient, ApiError, type ApiRequest, type WatchEvent } from './api-client.ts';
import { Complaints } from './complaints.ts';
import { explainConnectionFailure } from './connection-failure.ts';
import { ConnectionPool } from './connection-pool.ts';
import { CredentialError, type CredentialSource } from './credentials.ts';
import { type Answer, AnswerTooLargeError, exchange, LostExchangeError } from './exchange.ts';
import type { KubeconfigCluster } from './kubeconfig.ts';
import { openConnection } from './open-connection.ts';
import { refusalError } from './refusal.ts';
import { RequestGate } from './request-gate.ts';
import { type RequestMetrics, requestMetrics } from './request-metrics.ts';
import { type RequestSubject, requestSubject, subjectText } from './request-subject.ts';
import { ServerAccess } from './server-access.ts';
import type { WireRequest } from './server-connection.ts';
import { WatchLines } from './watch-lines.ts';

export interface Http2ApiClientOptions {
  readonly cluster: KubeconfigCluster;
  readonly credentials: CredentialSource;
  /** Named in messages: the kubeconfig's path. */
  readonly kubeconfig: string;
  /** For example `kubelet/v1.36.2 (linux/amd64)`. */
  readonly userAgent: string;
  /** `kubeAPIQPS` and `kubeAPIBurst`. */
  readonly qps: number;
  readonly burst: number;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Told of every request that was sent and how it ended (0: no answer); a watch counts when it begins. */
  readonly onRequest?: (subject: RequestSubject, status: number) => void;
  /** Told the server's time (epoch milliseconds, whole seconds) by each answer that has it, save a watch's. */
  readonly onDate?: (serverTime: number) => void;
  /** Most bytes of an answer, unpacked; 64 MiB when absent. */
  readonly largestAnswer?: number;
}

const defaultTimeoutMs = 30_000;
const defaultLargestAnswer = 64 * 1024 * 1024;
/** Far above what an API server stores. */
const largestEvent = 16 * 1024 * 1024;
/** A watch that outlives the end it asked for by this much is ended here. */
const watchGraceMs = 30_000;
const mostThrottles = 10;
const mostUntouched = 3;

const patchTypes = {
  strategic: 'application/strategic-merge-patch+json',
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

type Sink = { begin(): void; push(chunk: Buffer): void };

interface Call {
  readonly request: ApiRequest;
  readonly subject: RequestSubject;
  readonly wire: WireRequest;
  readonly signal: AbortSignal;
  readonly sink?: Sink;
}

export class Http2ApiClient implements ApiClient {
  readonly #options: Http2ApiClientOptions;
  readonly #access: ServerAccess;
  readonly #gate: RequestGate;
  readonly #pools: { readonly main: ConnectionPool; readonly heartbeat: ConnectionPool };
  readonly #metrics: RequestMetrics;
  readonly #outage: Complaints;
  readonly #denial: Complaints;
  #lastFailure: string | undefined;

  constructor(options: Http2ApiClientOptions) {
    const { cluster, credentials, qps, burst, clock, random, logger, metrics } = options;
    this.#options = options;
    this.#access = new ServerAccess(cluster, credentials, clock);
    this.#gate = new RequestGate({ qps, burst, clock });
    this.#metrics = requestMetrics(metrics, new URL(cluster.server).host);
    this.#outage = new Complaints(logger, clock);
    this.#denial = new Complaints(logger, clock);
    const onResolved = (name: string, tookMs: number) => this.#metrics.resolved(name, tookMs);
    const pool = () =>
      new ConnectionPool({
        connect: (identity, onClosed) => openConnection(cluster, identity, clock, { onClosed, onResolved }),
        clock,
        random,
        onOutcome: (error) => this.#connected(error),
      });
    this.#pools = { main: pool(), heartbeat: pool() };
  }

  async request<T>(request: ApiRequest): Promise<T> {
    const answer = await this.#call(request);
    if (answer.body.length === 0) return undefined as T;
    try {
      return JSON.parse(answer.body.toString('utf8')) as T;
    } catch (cause) {
      const subject = requestSubject(request.method, request.path);
      throw new ApiError(
        {
          status: 0,
          reason: 'BadAnswer',
          message: `cannot ${subjectText(subject)}: the answer is not JSON`,
        },
        { cause },
      );
    }
  }

  async watch<T>(
    request: ApiRequest & { readonly signal: AbortSignal },
    onEvent: (event: WatchEvent<T>) => void,
  ): Promise<void> {
    const subject = requestSubject(request.method, request.path, true);
    const lines = new WatchLines(largestEvent, (line) => onEvent(decodeEvent<T>(line, subject)));
    await this.#call({ ...request, query: { ...request.query, watch: 'true' } }, lines);
  }

  /** Ends all calls. */
  close(): void {
    this.#pools.main.close();
    this.#pools.heartbeat.close();
  }

  async #call(request: ApiRequest, lines?: WatchLines): Promise<Answer> {
    const { clock } = this.#options;
    const subject = requestSubject(request.method, request.path, lines !== undefined);
    const controller = new AbortController();
    const onAbort = () => controller.abort(request.signal?.reason);
    if (request.signal?.aborted) onAbort();
    request.signal?.addEventListener('abort', onAbort, { once: true });
    const timeoutMs = request.timeoutMs ?? defaultTimeoutMs;
    let cancelTimer = clock.after(timeoutMs, () => controller.abort(this.#late(subject, timeoutMs)));
    const sink: Sink | undefined = lines && {
      begin: () => {
        cancelTimer();
        this.#count(subject, 200);
        const seconds = Number(request.query?.timeoutSeconds);
        if (seconds > 0)
          cancelTimer = clock.after(seconds * 1000 + watchGraceMs, () => controller.abort(watchOver));
      },
      push: (chunk) => lines.push(chunk),
    };
    const call: Call = {
      request,
      subject,
      wire: this.#wire(request, lines !== undefined),
      signal: controller.signal,
      ...(sink && { sink }),
    };
    try {
      await this.#passGate(call);
      return await this.#answer(call);
    } catch (error) {
      if (error === watchOver) return { status: 200, headers: {}, body: Buffer.alloc(0) };
      if (controller.signal.aborted) throw controller.signal.reason;
      throw this.#asApiError(error, subject);
    } finally {
      cancelTimer();
      request.signal?.removeEventListener('abort', onAbort);
    }
  }

  async #passGate({ request, signal }: Call): Promise<void> {
    const { clock } = this.#options;
    if (request.priority === 'heartbeat') return;
    const asked = clock.now();
    await this.#gate.pass(request.priority ?? 'normal', signal);
    this.#metrics.limited(request.method, clock.now() - asked);
  }

  /** Sends, as often as is safe and sensible, until there is an answer to give to the caller. */
  async #answer(call: Call): Promise<Answer> {
    const { request, subject, signal } = call;
    let throttles = 0;
    let losses = 0;
    let refreshed = false;
    for (;;) {
      let answer: Answer;
      try {
        answer = await this.#send(call);
      } catch (error) {
        const mayRepeat =
          error instanceof LostExchangeError &&
          (error.untouched ? losses < mostUntouched : request.method === 'GET' && losses === 0);
        if (!mayRepeat) throw error;
        losses++;
        this.#metrics.retried(request.method, '<error>');
        continue;
      }
      const { status } = answer;
      if (status >= 200 && status <= 299) {
        this.#denial.resolve('The API server accepts the credentials again');
        return answer;
      }
      if (status === 401 && !refreshed) {
        refreshed = true;
        if (await this.#access.refresh(signal)) continue;
      }
      const refusal = this.#refusal(subject, answer);
      const waitMs = status === 429 || status >= 500 ? refusal.retryAfterMs : undefined;
      if (waitMs === undefined || throttles++ >= mostThrottles) throw refusal;
      if (waitMs >= (request.timeoutMs ?? defaultTimeoutMs)) throw refusal;
      this.#metrics.retried(request.method, String(status));
      await sleep(this.#options.clock, waitMs, signal).catch(() => {
        // Out of time: what the server said tells more than that.
        throw request.signal?.aborted ? request.signal.reason : refusal;
      });
    }
  }

  async #send({ request, subject, wire, signal, sink }: Call): Promise<Answer> {
    const { clock, largestAnswer = defaultLargestAnswer } = this.#options;
    const { headers, identity } = await this.#access.current(signal);
    const pool = request.priority === 'heartbeat' ? this.#pools.heartbeat : this.#pools.main;
    const connection = await pool.acquire(sink ? 'watch' : 'request', identity, signal);
    const began = clock.now();
    const measure = (code: string, received: number) =>
      this.#metrics.answered({
        method: request.method,
        code,
        tookMs: clock.now() - began,
        sent: wire.body?.length ?? 0,
        received,
      });
    let begun = false;
    const own = sink && {
      begin: () => {
        begun = true;
        measure('200', 0);
        sink.begin();
      },
      push: (chunk: Buffer) => sink.push(chunk),
    };
    try {
      const answer = await exchange(
        connection,
        { ...wire, headers: { ...wire.headers, ...headers } },
        { signal, limit: largestAnswer, ...(own && { sink: own }) },
      );
      // A watch that ends now told its time when it began, which may be long ago.
      if (begun) return answer;
      this.#tellDate(answer.headers.date);
      measure(String(answer.status), answer.body.length);
      this.#count(subject, answer.status);
      return answer;
    } catch (error) {
      if (!begun) {
        measure('<error>', 0);
        this.#count(subject, 0);
      }
      throw error;
    }
  }

  #tellDate(date: string | undefined): void {
    const serverTime = Date.parse(date ?? '');
    if (Number.isFinite(serverTime)) this.#options.onDate?.(serverTime);
  }

  #wire(request: ApiRequest, watch: boolean): WireRequest {
    const { userAgent, cluster } = this.#options;
    const query = new URLSearchParams(request.query).toString();
    const prefix = new URL(cluster.server).pathname.replace(/\/$/, '');
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    return {
      method: request.method,
      path: `${prefix}${request.path}${query === '' ? '' : `?${query}`}`,
      headers: {
        accept: 'application/json',
        'user-agent': userAgent,
        ...(!watch && !cluster.disableCompression && { 'accept-encoding': 'gzip' }),
        ...(body && {
          'content-type':
            request.method === 'PATCH' ? patchTypes[request.patch ?? 'strategic'] : 'application/json',
        }),
      },
      ...(body && { body }),
    };
  }

  #refusal(subject: RequestSubject, { status, headers, body }: Answer): ApiError {
    const text = body.toString('utf8');
    let decoded: unknown = text;
    try {
      decoded = JSON.parse(text);
    } catch {
      // A proxy in between answers with a page.
    }
    const { clock, kubeconfig } = this.#options;
    const error = refusalError({
      subject,
      status,
      body: decoded,
      retryAfter: headers['retry-after'],
      weakness: status === 401 ? this.#access.weakness(clock.now()) : undefined,
      kubeconfig,
    });
    if (status === 401)
      this.#denial.complain(
        'The API server does not accept the credentials',
        error.message.replace(/^.*?: /, ''),
      );
    return error;
  }

  #connected(error: unknown): void {
    if (error === undefined) {
      this.#lastFailure = undefined;
      return this.#outage.resolve('The API server can be reached again');
    }
    this.#lastFailure = this.#explain(error);
    this.#outage.complain('The API server cannot be reached', this.#lastFailure);
  }

  #explain(error: unknown): string {
    const { cluster, kubeconfig, clock } = this.#options;
    return explainConnectionFailure(error, { server: cluster.server, kubeconfig, now: clock.now() });
  }

  #late(subject: RequestSubject, timeoutMs: number): ApiError {
    const why = this.#lastFailure === undefined ? '' : ` (${this.#lastFailure})`;
    const message = `cannot ${subjectText(subject)}: no answer from API server ${this.#options.cluster.server} within ${timeoutMs / 1000} s${why}`;
    return new ApiError({ status: 0, reason: 'Timeout', message });
  }

  #asApiError(error: unknown, subject: RequestSubject): unknown {
    if (error instanceof ApiError) return error;
    const because = (reason: string, text: string) =>
      new ApiError(
        { status: 0, reason, message: `cannot ${subjectText(subject)}: ${text}` },
        { cause: error },
      );
    if (error instanceof CredentialError) {
      this.#denial.complain('There are no credentials for the API server', error.message);
      return because('NoCredentials', error.message);
    }
    if (error instanceof AnswerTooLargeError) return because('AnswerTooLarge', error.message);
    if (error instanceof LostExchangeError) return because('ConnectionLost', error.message);
    if (error instanceof Error && !(error instanceof TypeError))
      return because('Unreachable', this.#explain(error));
    return error;
  }

  #count(subject: RequestSubject, status: number): void {
    this.#options.onRequest?.(subject, status);
  }
}

/** The reason a watch that has outlived its end is aborted with. */
const watchOver = new Error('the watch has outlived its time');

function decodeEvent<T>(line: string, subject: RequestSubject): WatchEvent<T> {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    event = undefined;
  }
  const { type, object } = (event ?? {}) as { type?: unknown; object?: unknown };
  if (typeof type === 'string' && typeof object === 'object' && object !== null)
    return event as WatchEvent<T>;
  const message = `cannot ${subjectText(subject)}: the server sent something that is no watch event`;
  throw new ApiError({ status: 0, reason: 'BadEvent', message });
}
