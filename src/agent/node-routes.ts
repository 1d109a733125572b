/**
 * Every endpoint of the node's API, in one list: those of this program's own state, and those that rooms answer
 * which the server does not know. To add one, see `src/server/route.ts`.
 */
import type { NodeServerSettings } from '../config/settings/server-settings.ts';
import type { PodManifest } from '../kubernetes/types.ts';
import { type CoreRoutesInput, coreRoutes } from '../server/core-routes.ts';
import { type Introspection, introspectionRoutes } from '../server/introspection-routes.ts';
import { profileRoutes } from '../server/profile-routes.ts';
import type { NodeRoute } from '../server/route.ts';
import { runningPodsRoutes } from '../server/running-pods.ts';
import { systemLogRoutes } from '../server/system-logs.ts';
import type { NodeStats } from '../stats/node-stats.ts';
import { statsRoutes } from './stats-routes.ts';

export interface NodeRoutesInput {
  readonly core: CoreRoutesInput;
  readonly about: Introspection;
  readonly handlers: NodeServerSettings['handlers'];
  /** What the runtime shows. */
  readonly runningPods: () => Iterable<PodManifest>;
  /** Undefined while the agent starts. */
  readonly stats: () => NodeStats | undefined;
  /** Logs of containers and streams into them. */
  readonly containers: readonly NodeRoute[];
}

const systemLogDirectory = '/var/log';

/** For both ports: those marked `readOnly` are served without authentication as well, where that is on. */
export function nodeRoutes(input: NodeRoutesInput): NodeRoute[] {
  const { core, about, handlers, runningPods, stats, containers } = input;
  const { clock } = core;
  const routes: NodeRoute[] = [
    ...coreRoutes(core),
    ...runningPodsRoutes(runningPods),
    ...introspectionRoutes({
      about,
      clock,
      changesVerbosity: handlers.verbosity,
      showsFlags: handlers.flags,
      showsStatus: handlers.status,
      paths: () => statusPaths(routes),
    }),
    ...profileRoutes({ enabled: handlers.profiling, clock }),
    ...statsRoutes(stats),
    ...containers,
    ...systemLogRoutes({
      enabled: handlers.systemLogs,
      queries: handlers.systemLogQueries,
      clock,
      directory: systemLogDirectory,
      searchPath: process.env['PATH'] ?? '/usr/bin:/bin',
    }),
  ];
  return routes;
}

/** What people may want to look at next. */
function statusPaths(routes: readonly NodeRoute[]): string[] {
  const paths = routes.filter(({ debugging, path }) => !debugging && !path.includes('{'));
  return paths.map(({ path }) => path).sort();
}
