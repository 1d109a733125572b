/** Builds the ways the agent is asked from outside: its health from the first moment, then the node's API. */
import type { Pod } from '../kubernetes/types.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { ObservedPod } from '../runtime/observed-pod.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { HealthCheck } from '../server/health-checks.ts';
import type { NodeRoute } from '../server/route.ts';
import type { AgentContext } from './agent-context.ts';
import { buildCheckpointRoutes } from './checkpoint-builder.ts';
import type { Membership } from './cluster/membership.ts';
import { logRoutes } from './logs-builder.ts';
import { nodeRoutes } from './node-routes.ts';
import { runningPods } from './running-pods.ts';
import { startHealth, startNodeApi, syncLoopCheck } from './servers.ts';
import { buildStreamingRoutes } from './streaming-builder.ts';

/** First of all, so that whoever started the agent sees that it lives. */
export async function serveHealth(context: AgentContext): Promise<void> {
  const health = await startHealth({ ...context, checks: healthChecks(context) });
  context.lifetime.onEnd(() => health?.close());
}

export interface NodeApiRooms {
  readonly nodeName: string;
  /** Addresses of this machine, for a certificate of its own making. */
  readonly addresses: readonly string[];
  readonly membership: Membership;
  readonly runtime: ContainerRuntime;
  readonly observer: RuntimeObserver;
}

/** What is asked of the node, once there is something to answer with. */
export async function serveNode(context: AgentContext, input: NodeApiRooms): Promise<void> {
  const { about, clock, logger, metrics, probeMetrics, settings, rooms } = context;
  const { nodeName, addresses, membership, observer } = input;
  const routes = nodeRoutes({
    about,
    handlers: settings.nodeServer?.handlers ?? noHandlers,
    runningPods: () => runningPods(observedPods(observer)),
    containers: containerRoutes(context, input),
    core: {
      checks: healthChecks(context),
      pods: () => [...(rooms.workers?.all() ?? [])].map(({ pod, status }): Pod => ({ ...pod, status })),
      metrics,
      probeMetrics,
      clock,
      log: logger,
    },
    stats: () => rooms.stats,
  });
  const api = await startNodeApi({ ...context, routes, nodeName, addresses, membership });
  context.lifetime.onEnd(() => api.close());
}

/** Nobody asks: the port is closed. */
const noHandlers = {
  flags: false,
  status: false,
  verbosity: false,
  profiling: false,
  systemLogs: false,
  systemLogQueries: false,
};

function healthChecks({ clock, logProblem, rooms }: AgentContext): HealthCheck[] {
  return [
    ...(logProblem ? [{ name: 'log', check: logProblem }] : []),
    syncLoopCheck(clock, () => rooms.observer?.lastRelist),
  ];
}

/** Logs of containers, streams into them, checkpoints of them. */
function containerRoutes(context: AgentContext, { runtime, observer }: NodeApiRooms): NodeRoute[] {
  const { settings, clock, rooms, featureEnabled } = context;
  const workers = () => rooms.workers;
  const idleMs = settings.streamIdleMs;
  const translates = featureEnabled('ExtendWebSocketsToKubelet');
  return [
    ...logRoutes(context, { workers, observer, changes: rooms.changes }),
    ...buildStreamingRoutes({ runtime, observer, workers, idleMs, translates, clock }),
    ...(featureEnabled('ContainerCheckpoint')
      ? buildCheckpointRoutes({ runtime, observer, workers, rootDirectory: settings.rootDirectory, clock })
      : []),
  ];
}

function* observedPods(observer: RuntimeObserver): Generator<ObservedPod> {
  for (const uid of observer.pods()) yield observer.pod(uid);
}
