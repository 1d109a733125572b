/**
 * Counts what is asked of the node's API, refused requests among it, by method, first part of the path and port.
 * Callers cannot make up series: what no route begins with is `other`.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../concurrency/clock.ts';
import type { Counter, Gauge, Histogram, Labels, Metrics } from '../telemetry/metrics.ts';
import type { NodeRoute } from './route.ts';
import { offeredProtocols, tunnelledForward } from './streaming/stream-request.ts';
import { streamCloseProtocol } from './streaming/stream-translation.ts';

export interface RequestMeterOptions {
  readonly routes: readonly Pick<NodeRoute, 'path'>[];
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** The port with authentication, or the one without. */
export type ServerType = 'readwrite' | 'readonly';

export interface MeteredRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** What goes on for as long as its client likes. */
const longRunning = new Set(['attach', 'debug', 'exec', 'portForward']);
const streaming = new Set(['attach', 'exec', 'portForward']);
const knownMethods = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'CONNECT',
  'TRACE',
]);
const isCounted = (protocol: string) => protocol === streamCloseProtocol || tunnelledForward(protocol);
const labels = ['long_running', 'method', 'path', 'server_type'];

export class RequestMeter {
  readonly #clock: Clock;
  readonly #roots: ReadonlySet<string>;
  readonly #requests: Counter;
  readonly #durations: Histogram;
  readonly #inFlight: Gauge;
  readonly #webSockets: Counter;
  readonly #current = new Map<string, number>();

  constructor({ routes, metrics, clock }: RequestMeterOptions) {
    this.#clock = clock;
    this.#roots = new Set(routes.map(({ path }) => rootOf(path)));
    this.#requests = metrics.counter({
      name: 'kubelet_http_requests_total',
      help: '[ALPHA] Number of HTTP requests received since the start.',
      labels,
    });
    this.#durations = metrics.histogram({
      name: 'kubelet_http_requests_duration_seconds',
      help: '[ALPHA] Time until an HTTP request was served.',
      labels,
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    });
    this.#inFlight = metrics.gauge({
      name: 'kubelet_http_inflight_requests',
      help: '[ALPHA] HTTP requests that are being served.',
      labels,
    });
    this.#webSockets = metrics.counter({
      name: 'kubelet_websocket_streaming_requests_total',
      help: '[ALPHA] Streaming requests that came as WebSockets with an end of input, or with SPDY inside.',
      labels: ['subresource'],
    });
  }

  /** A request has come; the answer is to be called once when it is over, however it ends. */
  begin(serverType: ServerType, { method = '', url = '/', headers }: MeteredRequest): () => void {
    const root = rootOf(url);
    const path = this.#roots.has(root) ? root : 'other';
    const series: Labels = {
      long_running: String(longRunning.has(path)),
      method: knownMethods.has(method) ? method : 'other',
      path,
      server_type: serverType,
    };
    this.#requests.inc(series);
    if (streaming.has(path) && offeredProtocols(headers).some(isCounted)) {
      this.#webSockets.inc({ subresource: path.toLowerCase() });
    }
    const began = this.#clock.now();
    this.#count(series, 1);
    return () => {
      this.#count(series, -1);
      this.#durations.observe((this.#clock.now() - began) / 1000, series);
    };
  }

  #count(series: Labels, by: number): void {
    const key = JSON.stringify(series);
    const count = (this.#current.get(key) ?? 0) + by;
    this.#current.set(key, count);
    this.#inFlight.set(count, series);
  }
}

/** `pods`, `stats`; of metrics also what they are of: `metrics/cadvisor`. */
function rootOf(url: string): string {
  const [path = ''] = url.split('?', 1);
  const [first = '', second = ''] = path.slice(1).split('/', 2);
  return first === 'metrics' && second !== '' ? `${first}/${second}` : first;
}
