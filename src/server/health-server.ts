/**
 * The health endpoint of the node agent itself (`--healthz-bind-address`, `--healthz-port`, 10248): what
 * systemd units, load balancers and scripts ask on the machine. Plain HTTP, nothing but health.
 *
 * Differs from the kubelet, whose endpoint only says that it answers: every check that is handed in counts,
 * so an agent whose loop has stopped is not called healthy.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type HealthCheck, healthRoutes, pingCheck } from './health-checks.ts';
import { listen, type RunningServer } from './http-listener.ts';
import { createRouter } from './router.ts';

export interface HealthServerOptions {
  address: string;
  port: number;
  /** Beside `ping`, which is always there. */
  checks: readonly HealthCheck[];
  clock: Clock;
  log: Logger;
}

/** Resolves when health is served; rejects with a `ListenError` that tells what to change. */
export function startHealthServer(options: HealthServerOptions): Promise<RunningServer> {
  const { address, port, checks, clock } = options;
  const log = options.log.with({ logger: 'server' });
  const setting = {
    server: 'health',
    portFlag: '--healthz-port (healthzPort)',
    addressFlag: '--healthz-bind-address (healthzBindAddress)',
  };
  const routes = healthRoutes({ checks: [pingCheck, ...checks], clock, log });
  return listen({ address, port, clock, log, setting }, createRouter({ routes, log }));
}
