/** What has become of health checks, as service level indicators: `/metrics/slis`, until somebody resets them. */
import type { Counter, Gauge } from '../telemetry/metrics.ts';
import { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import { sendExposition } from '../telemetry/send-exposition.ts';
import type { NodeRoute } from './route.ts';
import { sendText } from './router.ts';

interface Counts {
  readonly registry: MetricsRegistry;
  readonly last: Gauge;
  readonly total: Counter;
}

export class HealthIndicators {
  #counts = countFromZero();

  /** A check has been run. */
  observe(name: string, isHealthy: boolean): void {
    const labels = { name, type: 'healthz' };
    this.#counts.last.set(isHealthy ? 1 : 0, labels);
    this.#counts.total.inc({ ...labels, status: isHealthy ? 'success' : 'error' });
  }

  routes(): NodeRoute[] {
    const path = '/metrics/slis';
    return [
      {
        methods: ['GET'],
        path,
        readOnly: true,
        handle: async (exchange) => sendExposition(exchange, await this.#counts.registry.exposition()),
      },
      {
        methods: ['DELETE'],
        path,
        readOnly: true,
        handle: ({ response }) => {
          this.#counts = countFromZero();
          sendText(response, 200, 'the indicators of health count from zero again\n');
        },
      },
    ];
  }
}

function countFromZero(): Counts {
  const registry = new MetricsRegistry();
  return {
    registry,
    last: registry.gauge({
      name: 'kubernetes_healthcheck',
      help: 'Whether a health check held when it was last asked for: 1 if so, 0 if not.',
      labels: ['name', 'type'],
    }),
    total: registry.counter({
      name: 'kubernetes_healthchecks_total',
      help: 'How often health checks were asked for, by what became of them.',
      labels: ['name', 'status', 'type'],
    }),
  };
}
