/** What the builders of the agent share: how it was started, when it ends, and the rooms that come later. */
import type { Clock } from '../concurrency/clock.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import type { StepHook } from '../pods/executors/executors.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { Introspection } from '../server/introspection-routes.ts';
import type { NodeStats } from '../stats/node-stats.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts';
import type { Lifetime } from './lifetime.ts';
import { PodChanges } from './pod-changes.ts';

/** What an agent is started with. */
export interface NodeAgentOptions {
  readonly settings: NodeAgentSettings;
  /** Whether a Kubernetes feature gate is on. */
  readonly featureEnabled: (gate: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  /** What `/metrics/probes` shows. */
  readonly probeMetrics: MetricsRegistry;
  /** What keeps the log from being written, if anything does; for the health check `log`. */
  readonly logProblem?: () => string | undefined;
  /** What the node's API tells about this program. */
  readonly about: Introspection;
  /** Called around every action of every pod; for tests that stop the world between two steps. */
  readonly onStep?: StepHook;
  /** Gives a start up that is under way, such as one that waits for the runtime. */
  readonly signal?: AbortSignal;
}

/** The options, and what comes with a start. */
export interface AgentContext extends Omit<NodeAgentOptions, 'signal'> {
  readonly lifetime: Lifetime;
  /** Aborts when the agent's end begins. */
  readonly signal: AbortSignal;
  readonly rooms: LateRooms;
}

/**
 * Rooms that others look into, or tell of changes, before they are there; until then nobody listens and there
 * is nothing to see.
 */
export class LateRooms {
  workers: PodWorkers | undefined;
  observer: RuntimeObserver | undefined;
  stats: NodeStats | undefined;
  /** For those who follow one pod. */
  readonly changes = new PodChanges();
}
