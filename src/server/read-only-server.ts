/**
 * The read-only endpoint without authentication (`--read-only-port`, 10255): pods, health and metrics over
 * plain HTTP. It changes nothing and runs nothing: the paths that could answer 405, as on a kubelet.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type HealthCheck, healthRoutes, pingCheck } from './health-checks.ts';
import { listen, type RunningServer } from './http-listener.ts';
import { sendPodList } from './pod-list.ts';
import { createRouter, type Route, sendText } from './router.ts';

/** Metrics in the Prometheus text format. */
export interface Exposition {
  readonly contentType: string;
  exposition(): Promise<string>;
}

export interface ReadOnlyServerOptions {
  address: string;
  port: number;
  /** Beside `ping`, which is always there: `log`, `syncloop`. */
  checks: readonly HealthCheck[];
  /** Pods with their status as the agent reports it, asked for at each request. */
  pods: () => Iterable<Pod>;
  /** The metrics registry. */
  metrics: Exposition;
  /** The registry of probe results. */
  probeMetrics: Exposition;
  clock: Clock;
  log: Logger;
}

/** Everything under these needs the authenticated server. */
const debugPaths = [
  '/run/',
  '/exec/',
  '/attach/',
  '/portForward/',
  '/containerLogs/',
  '/runningpods/',
  '/debug/pprof/',
  '/logs/',
];

/** Resolves when requests are served; rejects with a `ListenError` that tells what to change. */
export function startReadOnlyServer(options: ReadOnlyServerOptions): Promise<RunningServer> {
  const { address, port, checks, clock, pods, metrics, probeMetrics } = options;
  const log = options.log.with({ logger: 'server' });
  const setting = {
    server: 'the read-only API',
    portFlag: '--read-only-port (readOnlyPort)',
    addressFlag: '--address (address)',
  };
  const routes: Route[] = [
    ...healthRoutes([pingCheck, ...checks], clock, log),
    { method: 'GET', path: '/pods', answer: (exchange) => sendPodList(exchange, pods()) },
    metricsRoute('/metrics', metrics),
    metricsRoute('/metrics/probes', probeMetrics),
    ...debugPaths.map((path) => ({
      path,
      answer: ({ response }: { response: Parameters<typeof sendText>[0] }) =>
        sendText(response, 405, 'Debug endpoints are disabled.\n'),
    })),
  ];
  return listen({ address, port, clock, log, setting }, createRouter(routes, log));
}

function metricsRoute(path: string, metrics: Exposition): Route {
  return {
    method: 'GET',
    path,
    async answer({ response }) {
      const text = await metrics.exposition();
      response.writeHead(200, {
        'content-type': metrics.contentType,
        'content-length': Buffer.byteLength(text),
      });
      response.end(text);
    },
  };
}
