/** Builds what stands between the agent and the container runtime: connection, health, observation. */
import { CriClient } from '../runtime/cri/cri-client.ts';
import { checkRuntime, type RuntimeFacts } from '../runtime/cri/runtime-check.ts';
import { runtimeEventSource } from '../runtime/events/runtime-event-source.ts';
import { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { AgentContext } from './agent-context.ts';
import type { NodeMembership } from './cluster/membership.ts';
import { CurrentRuntime } from './current-runtime.ts';
import { RuntimeLink } from './runtime-link.ts';

export interface RuntimeRooms {
  readonly runtime: CriClient;
  readonly name: string;
  /** What the runtime is now; it may change while the agent runs. */
  readonly facts: () => RuntimeFacts;
  readonly link: RuntimeLink;
  readonly observer: RuntimeObserver;
}

/**
 * Waits for the runtime, and tells the node what it is. Link and observer do not run yet. Rejects when the
 * runtime is one that cannot be worked with.
 */
export async function buildRuntime(context: AgentContext, node: NodeMembership): Promise<RuntimeRooms> {
  const { settings, clock, logger, metrics, lifetime, signal, rooms } = context;
  const { endpoint, imageEndpoint, requestTimeoutMs } = settings.runtime;
  const runtime = new CriClient({ endpoint, imageEndpoint, clock, metrics, requestTimeoutMs });
  lifetime.onEnd(() => runtime.close());
  const facts = await checkRuntime({ runtime, clock, logger, signal });
  const current = followRuntime(context, { runtime, facts, node });
  node.runtimeFound(facts, runtime);
  const link = new RuntimeLink({
    runtime,
    clock,
    logger,
    onChange: () => rooms.workers?.wakeAll(),
    onLook: (look) => node.runtimeLooked(look),
  });
  // Asked a moment ago, when the runtime was found: a node need not wait for the same answer again.
  link.seen(facts.conditions);
  const observer = observeRuntime(context, { runtime, facts, node });
  rooms.observer = observer;
  return { runtime, name: facts.name, facts: () => current.facts, link, observer };
}

interface FoundRuntime {
  readonly runtime: CriClient;
  readonly facts: RuntimeFacts;
  readonly node: NodeMembership;
}

function followRuntime(
  { clock, logger, signal, rooms }: AgentContext,
  { runtime, facts, node }: FoundRuntime,
): CurrentRuntime {
  const current = new CurrentRuntime({
    runtime,
    connection: runtime.connection,
    facts,
    clock,
    logger,
    signal,
    // A pod may wait for what the runtime could not do before.
    onChange: (changed) => {
      node.runtimeFound(changed, runtime);
      rooms.workers?.wakeAll();
    },
  });
  current.watch();
  return current;
}

function observeRuntime(
  { clock, logger, metrics, rooms }: AgentContext,
  { runtime, facts, node }: FoundRuntime,
): RuntimeObserver {
  return new RuntimeObserver({
    runtime,
    metrics,
    events: runtimeEventSource({
      runtimeName: facts.name,
      connection: runtime.connection,
      clock,
      logger,
      metrics,
    }),
    clock,
    logger,
    onChange: (uid) => {
      const { workers } = rooms;
      if (workers?.get(uid)) workers.wake(uid);
      // Something of a pod that was thought gone has turned up, as after a call that timed out.
      else workers?.endLeftovers();
    },
    onRelisted: () => node.relisted(),
  });
}
