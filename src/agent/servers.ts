/** The HTTP servers of the agent, and what they say of its health. */
import type { Clock } from '../concurrency/clock.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import type { Pod } from '../kubernetes/types.ts';
import type { HealthCheck } from '../server/health-checks.ts';
import { startHealthServer } from '../server/health-server.ts';
import type { RunningServer } from '../server/http-listener.ts';
import { startReadOnlyServer } from '../server/read-only-server.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts';

export interface ServersInput {
  readonly settings: Pick<NodeAgentSettings, 'healthz' | 'readOnlyServer'>;
  readonly metrics: MetricsRegistry;
  readonly probeMetrics: MetricsRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly pods: () => Iterable<Pod>;
  readonly checks: readonly HealthCheck[];
}

export async function startServers(input: ServersInput): Promise<{ close(): Promise<void> }> {
  const { settings, metrics, probeMetrics, clock, logger: log, pods, checks } = input;
  const started: RunningServer[] = [];
  const close = async () => {
    await Promise.all(started.map((server) => server.close()));
  };
  try {
    if (settings.healthz) started.push(await startHealthServer({ ...settings.healthz, checks, clock, log }));
    if (settings.readOnlyServer) {
      started.push(
        await startReadOnlyServer({
          ...settings.readOnlyServer,
          checks,
          pods,
          metrics,
          probeMetrics,
          clock,
          log,
        }),
      );
    }
    return { close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The runtime must have been seen whole within this time; the limit of a kubelet's PLEG check. */
const seenWithinMs = 180_000;

/**
 * Healthy while the runtime answers. While the agent starts, or waits for a runtime that is not up yet, it
 * is healthy too: restarting it would not help.
 */
export function syncLoopCheck(clock: Clock, lastRelist: () => number | undefined): HealthCheck {
  return {
    name: 'syncloop',
    check() {
      const last = lastRelist();
      if (last === undefined || clock.now() - last <= seenWithinMs) return undefined;
      return `the container runtime was last seen whole ${Math.round((clock.now() - last) / 1000)} s ago`;
    },
  };
}
