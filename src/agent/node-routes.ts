/**
 * Every endpoint of the node's API, in one list: those of this program's own state, and those that rooms answer
 * which the server does not know. To add one, see `src/server/route.ts`.
 */
import { type CoreRoutesInput, coreRoutes } from '../server/core-routes.ts';
import type { NodeRoute } from '../server/route.ts';
import type { NodeStats } from '../stats/node-stats.ts';
import { statsRoutes } from './stats-routes.ts';

export interface NodeRoutesInput {
  readonly core: CoreRoutesInput;
  /** Undefined while the agent starts. */
  readonly stats: () => NodeStats | undefined;
}

/** For both ports: those marked `readOnly` are served without authentication as well, where that is on. */
export function nodeRoutes({ core, stats }: NodeRoutesInput): NodeRoute[] {
  return [...coreRoutes(core), ...statsRoutes(stats)];
}
