/** What Kubernetes clients count about their requests (`rest_client_*`). */
import type { Metrics } from '../telemetry/metrics.ts';

const seconds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const bytes = [64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216];

export interface RequestMetrics {
  /** `code`: the HTTP status, or `<error>` when there was no answer. */
  answered(call: { method: string; code: string; tookMs: number; sent: number; received: number }): void;
  limited(method: string, waitedMs: number): void;
  retried(method: string, code: string): void;
  /** The name of the server, or of the proxy before it, has been looked up. */
  resolved(name: string, tookMs: number): void;
}

/** `host`: of the API server, with its port. */
export function requestMetrics(metrics: Metrics, host: string): RequestMetrics {
  const total = metrics.counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by status code, method and host.',
    labels: ['code', 'method', 'host'],
  });
  const retries = metrics.counter({
    name: 'rest_client_request_retries_total',
    help: 'Requests that were sent again, by status code, verb and host.',
    labels: ['code', 'verb', 'host'],
  });
  const histogram = (name: string, help: string, buckets: readonly number[]) =>
    metrics.histogram({ name, help, labels: ['verb', 'host'], buckets });
  const duration = histogram(
    'rest_client_request_duration_seconds',
    'Time from a request to its answer, in seconds.',
    seconds,
  );
  const limiter = histogram(
    'rest_client_rate_limiter_duration_seconds',
    "Time requests waited for the client's own rate limit, in seconds.",
    seconds,
  );
  const resolution = metrics.histogram({
    name: 'rest_client_dns_resolution_duration_seconds',
    help: 'Time that looking up the name of the API server took, in seconds.',
    labels: ['host'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30],
  });
  const requestSize = histogram('rest_client_request_size_bytes', 'Size of request bodies.', bytes);
  const responseSize = histogram('rest_client_response_size_bytes', 'Size of answers.', bytes);
  return {
    answered({ method, code, tookMs, sent, received }) {
      const labels = { verb: method, host };
      total.inc({ code, method, host });
      duration.observe(tookMs / 1000, labels);
      requestSize.observe(sent, labels);
      responseSize.observe(received, labels);
    },
    limited: (method, waitedMs) => limiter.observe(waitedMs / 1000, { verb: method, host }),
    retried: (method, code) => retries.inc({ code, verb: method, host }),
    resolved: (name, tookMs) => resolution.observe(tookMs / 1000, { host: name }),
  };
}
