/** The servers of the agent, and what they say of its health. */
import { resolve } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import type { NodeServerSettings } from '../config/settings/server-settings.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import { selfSignedServingCertificate } from '../credentials/serving-certificate.ts';
import { AccessMetrics } from '../server/access-metrics.ts';
import type { HealthCheck } from '../server/health-checks.ts';
import { startHealthServer } from '../server/health-server.ts';
import type { RunningServer } from '../server/http-listener.ts';
import {
  type NodeServer,
  type NodeServerOptions,
  type ServingSource,
  startNodeServer,
} from '../server/node-server.ts';
import { startReadOnlyServer } from '../server/read-only-server.ts';
import { RequestMeter } from '../server/request-meter.ts';
import type { NodeRoute } from '../server/route.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { apiReviews } from './api-reviews.ts';
import type { Membership } from './cluster/membership.ts';

export interface HealthInput {
  readonly settings: Pick<NodeAgentSettings, 'healthz'>;
  readonly checks: readonly HealthCheck[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The health endpoint, where it is on: up before everything else. */
export async function startHealth(input: HealthInput): Promise<RunningServer | undefined> {
  const { settings, checks, clock, logger: log } = input;
  return settings.healthz && (await startHealthServer({ ...settings.healthz, checks, clock, log }));
}

export interface NodeApiInput {
  readonly settings: Pick<NodeAgentSettings, 'nodeServer' | 'readOnlyServer'>;
  readonly routes: readonly NodeRoute[];
  readonly nodeName: string;
  /** Addresses of this machine, for a certificate of its own making. */
  readonly addresses: readonly string[];
  /** Whom to ask about callers, and who signs certificates. */
  readonly membership: Pick<Membership, 'api' | 'servingCertificate'>;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface NodeApi {
  /** Undefined where it is switched off. */
  readonly server: NodeServer | undefined;
  close(): Promise<void>;
}

/** The node's API with and without authentication, where they are on. */
export async function startNodeApi(input: NodeApiInput): Promise<NodeApi> {
  const { settings, routes, metrics, clock, logger: log } = input;
  const meter = new RequestMeter({ routes, metrics, clock });
  const counted = { meter, accessMetrics: new AccessMetrics({ metrics, clock }) };
  const started: RunningServer[] = [];
  const close = async () => {
    await Promise.all(started.map((server) => server.close()));
  };
  try {
    const server = settings.nodeServer && (await startSecure(settings.nodeServer, { ...input, ...counted }));
    if (server) started.push(server);
    if (settings.readOnlyServer)
      started.push(await startReadOnlyServer({ ...settings.readOnlyServer, routes, meter, clock, log }));
    return { server, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startSecure(
  settings: NodeServerSettings,
  input: NodeApiInput & Pick<NodeServerOptions, 'meter' | 'accessMetrics'>,
): Promise<NodeServer> {
  const { routes, nodeName, membership, meter, accessMetrics, clock, logger: log } = input;
  const { address, port, tls, access, debuggingHandlers, reloads } = settings;
  const { api, servingCertificate } = membership;
  const server = await startNodeServer({
    address,
    port,
    nodeName,
    tls,
    access: { ...access, clientCaFile: access.clientCaFile && resolve(access.clientCaFile) },
    serving: await servingSource(settings, input),
    reviews: api && apiReviews(api),
    routes,
    debuggingHandlers,
    reloads,
    meter,
    accessMetrics,
    clock,
    log,
  });
  if (settings.serving.kind === 'cluster' && servingCertificate) {
    const signed = servingCertificate.current();
    if (signed) server.serveWith(signed);
    servingCertificate.onChange((pair) => server.serveWith(pair));
  }
  return server;
}

async function servingSource(
  { serving, certificateDirectory }: NodeServerSettings,
  { nodeName, addresses, membership, clock }: NodeApiInput,
): Promise<ServingSource> {
  if (serving.kind === 'cluster' && membership.servingCertificate) return { kind: 'told' };
  if (serving.kind === 'files') {
    const { certificateFile, keyFile } = serving;
    return { kind: 'files', certificateFile: resolve(certificateFile), keyFile: resolve(keyFile) };
  }
  // Also on a node that stands alone, where no cluster could sign.
  const pair = await selfSignedServingCertificate({
    directory: resolve(certificateDirectory),
    hostName: nodeName,
    ips: addresses,
    clock,
  });
  return { kind: 'pair', pair };
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
