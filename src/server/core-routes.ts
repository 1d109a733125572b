/** The endpoints every node has: health, pods and metrics. */
import type { Clock } from '../concurrency/clock.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { Logger } from '../telemetry/logger.ts';
import { sendExposition } from '../telemetry/send-exposition.ts';
import { type HealthCheck, healthRoutes, pingCheck } from './health-checks.ts';
import { HealthIndicators } from './health-indicators.ts';
import { sendPodList } from './pod-list.ts';
import type { NodeRoute } from './route.ts';

/** Metrics in the Prometheus text format. */
export interface Exposition {
  exposition(): Promise<string>;
}

export interface CoreRoutesInput {
  /** Beside `ping`, which is always there: `log`, `syncloop`. */
  readonly checks: readonly HealthCheck[];
  /** Pods with their status as the agent reports it, asked for at each request. */
  readonly pods: () => Iterable<Pod>;
  /** The metrics registry. */
  readonly metrics: Exposition;
  /** The registry of probe results. */
  readonly probeMetrics: Exposition;
  readonly clock: Clock;
  readonly log: Logger;
}

export function coreRoutes(input: CoreRoutesInput): NodeRoute[] {
  const { checks, pods, metrics, probeMetrics, clock, log } = input;
  const indicators = new HealthIndicators();
  return [
    ...healthRoutes({
      checks: [pingCheck, ...checks],
      onOutcome: (name, isHealthy) => indicators.observe(name, isHealthy),
      clock,
      log,
    }),
    ...indicators.routes(),
    {
      methods: ['GET'],
      path: '/pods',
      readOnly: true,
      handle: (exchange) => sendPodList(exchange, pods()),
    },
    metricsRoute('/metrics', metrics, true),
    metricsRoute('/metrics/probes', probeMetrics),
  ];
}

function metricsRoute(path: string, metrics: Exposition, openMetrics = false): NodeRoute {
  return {
    methods: ['GET'],
    path,
    readOnly: true,
    handle: async (exchange) => sendExposition(exchange, await metrics.exposition(), { openMetrics }),
  };
}
