/** What the builders of the agent share: how it was started, when it ends, and the rooms that come later. */
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import type { NodeStats } from '../stats/node-stats.ts';
import type { Lifetime } from './lifetime.ts';
import type { NodeAgentOptions } from './node-agent.ts';
import { PodChanges } from './pod-changes.ts';

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
