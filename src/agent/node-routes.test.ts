import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../concurrency/clock.ts';
import type { ContainerRuntime } from '../runtime/container-runtime.ts';
import type { RuntimeObserver } from '../runtime/runtime-observer.ts';
import { endpointFacts, examplePath } from '../server/fixtures/endpoint-facts.ts';
import { parseTarget } from '../server/request-target.ts';
import { RouteTable } from '../server/route-table.ts';
import { silentLogger } from '../telemetry/logger.ts';
import { buildCheckpointRoutes } from './checkpoint-builder.ts';
import { logRoutes } from './logs-builder.ts';
import { nodeRoutes } from './node-routes.ts';
import { PodChanges } from './pod-changes.ts';
import { buildStreamingRoutes } from './streaming-builder.ts';

const exposition = { contentType: 'text/plain', exposition: async () => '' };
// Nobody is asked anything here.
const rooms = {
  runtime: {} as ContainerRuntime,
  observer: {} as RuntimeObserver,
  workers: () => undefined,
  clock: systemClock,
};
const containers = [
  ...logRoutes({ clock: systemClock, featureEnabled: () => false }, { ...rooms, changes: new PodChanges() }),
  ...buildStreamingRoutes({ ...rooms, idleMs: 0, translates: true }),
  ...buildCheckpointRoutes({ ...rooms, rootDirectory: '/nowhere' }),
];
const routes = nodeRoutes({
  core: {
    checks: [],
    pods: () => [],
    metrics: exposition,
    probeMetrics: exposition,
    clock: systemClock,
    log: silentLogger,
  },
  about: { configuration: {}, flags: {}, version: 'v1.36.2', startedAt: 0, setVerbosity: () => {} },
  handlers: {
    flags: true,
    status: true,
    verbosity: true,
    profiling: true,
    systemLogs: true,
    systemLogQueries: true,
  },
  runningPods: () => [],
  stats: () => undefined,
  containers,
});

test('every endpoint of a kubelet is there on its ports', () => {
  const ports = {
    10250: new RouteTable(routes),
    10255: new RouteTable(routes.filter(({ readOnly }) => readOnly)),
  };
  for (const { method, path, ports: served } of endpointFacts) {
    for (const [port, table] of Object.entries(ports)) {
      const found = table.find(method, parseTarget(examplePath(path))!);
      const isThere = found !== undefined && 'route' in found;
      if (!served.includes(Number(port))) continue;
      assert.ok(isThere, `${method} ${path} on ${port}`);
    }
  }
});

test('nothing is open without authentication that a kubelet does not show there', () => {
  const open = endpointFacts.filter(({ ports }) => ports.includes(10255)).map(({ path }) => path);
  for (const { path, readOnly } of routes) {
    if (readOnly) assert.ok(open.includes(path) || path.startsWith('/healthz/'), path);
  }
});
