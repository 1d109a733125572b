/**
 * The node's API (`--port`, 10250): HTTPS for the API server, metrics scrapers and people with the right to it.
 * Nobody gets to a route without being known and allowed.
 *
 * Certificate and client authorities are read from their files before it listens, and again when they change; a
 * file that has become unusable leaves the last good content in force.
 */
import { readFile } from 'node:fs/promises';
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { AccessMetrics } from './access-metrics.ts';
import { Authentication } from './authentication.ts';
import { type Authorizer, alwaysAllow, WebhookAuthorization } from './authorization.ts';
import { disabledDebugging } from './debugging-paths.ts';
import { FileWatch } from './file-watch.ts';
import type { RunningServer } from './http-listener.ts';
import { type ConnectionLimits, HttpsListener, type ServingPair, usualLimits } from './https-listener.ts';
import { nodeAdmission } from './node-admission.ts';
import type { RequestMeter } from './request-meter.ts';
import type { Reviews } from './reviews.ts';
import type { NodeRoute } from './route.ts';
import { createRouter } from './router.ts';
import { missingSuites, type TlsRules } from './tls-rules.ts';

/** Who may use the node's API, as configured. Durations in milliseconds. */
export interface AccessRules {
  /** `authentication.x509.clientCAFile`, absolute. */
  readonly clientCaFile: string | undefined;
  readonly anonymous: boolean;
  readonly tokens: { readonly enabled: boolean; readonly cacheTtlMs: number };
  readonly authorization:
    | { readonly mode: 'AlwaysAllow' }
    | { readonly mode: 'Webhook'; readonly allowedTtlMs: number; readonly deniedTtlMs: number };
}

/** Which certificate is shown. */
export type ServingSource =
  | {
      /** Read again when they change. */
      readonly kind: 'files';
      readonly certificateFile: string;
      readonly keyFile: string;
    }
  | { readonly kind: 'pair'; readonly pair: ServingPair }
  /** The cluster signs one: {@link NodeServer.serveWith} tells it, now and whenever there is a new one. */
  | { readonly kind: 'told' };

export interface NodeServerOptions {
  readonly address: string;
  readonly port: number;
  readonly nodeName: string;
  readonly tls: TlsRules;
  readonly serving: ServingSource;
  readonly access: AccessRules;
  /** Absent where there is no API server: then what takes a review is refused. */
  readonly reviews: Reviews | undefined;
  readonly routes: readonly NodeRoute[];
  /** Without it routes marked `debugging` answer 405. */
  readonly debuggingHandlers: boolean;
  /** Which files are read again when they change. */
  readonly reloads: { readonly clientCa: boolean; readonly serving: boolean };
  readonly meter: RequestMeter;
  readonly accessMetrics: AccessMetrics;
  /** {@link usualLimits} by default. */
  readonly limits?: ConnectionLimits;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface NodeServer extends RunningServer {
  /** Shows another certificate to new connections. Throws when the pair does not fit together. */
  serveWith(pair: ServingPair): void;
  /** How many connections there are. */
  readonly connections: number;
}

/** A file that the server cannot do without cannot be used. */
export class ServerFileError extends Error {
  override readonly name = 'ServerFileError';
}

/**
 * Resolves when requests are served. Rejects with a `ListenError`, or a {@link ServerFileError} that names the
 * file and the setting.
 */
export async function startNodeServer(options: NodeServerOptions): Promise<NodeServer> {
  const { access, clock, reloads, serving, tls } = options;
  const log = options.log.with({ logger: 'server' });
  const missing = missingSuites(tls);
  if (missing.length > 0)
    log.warn('Cipher suites that this program does not have are left out', { tlsCipherSuites: missing });
  const setting = {
    server: "the node's API",
    portFlag: '--port (port)',
    addressFlag: '--address (address)',
  };
  const { clientCaFile } = access;
  const listener = new HttpsListener({
    ...options,
    log,
    setting,
    rules: tls,
    asksForCertificates: clientCaFile !== undefined,
    limits: options.limits ?? usualLimits,
  });
  const watches: FileWatch[] = [];
  /** Reads now, which must succeed, and where it is wanted again whenever one of `paths` changes. */
  const follow = async (paths: readonly string[], again: boolean, use: () => Promise<void>) => {
    if (!again) return await use();
    const watch = new FileWatch({
      paths,
      clock,
      onChange: use,
      onError: (error) => log.error('A file has changed and cannot be used; the former content stays', error),
    });
    watches.push(watch);
    await watch.start();
    await use();
  };
  const close = async () => {
    for (const watch of watches) watch.close();
    await listener.close();
  };
  const begin = async () => {
    if (clientCaFile !== undefined) {
      await follow([clientCaFile], reloads.clientCa, () =>
        using('authentication.x509.clientCAFile', clientCaFile, async () =>
          listener.setClientAuthorities(await readFile(clientCaFile, 'utf8'), clientCaFile),
        ),
      );
    }
    if (serving.kind === 'pair') listener.setServingPair(serving.pair);
    if (serving.kind === 'files') {
      const { certificateFile, keyFile } = serving;
      await follow([certificateFile, keyFile], reloads.serving, () =>
        using('tlsCertFile and tlsPrivateKeyFile', `${certificateFile}, ${keyFile}`, async () =>
          listener.setServingPair({
            certificate: await readFile(certificateFile, 'utf8'),
            key: await readFile(keyFile, 'utf8'),
          }),
        ),
      );
    }
    await listener.start(router);
  };
  const routes = options.debuggingHandlers
    ? options.routes
    : [...options.routes.filter(({ debugging }) => !debugging), ...disabledDebugging];
  const router = createRouter({
    routes,
    admission: admissionOf(options, listener, log),
    meter: (request) => options.meter.begin('readwrite', request),
    log,
  });
  try {
    await begin();
  } catch (error) {
    for (const watch of watches) watch.close();
    throw error;
  }
  return {
    address: listener.address,
    port: listener.port,
    get connections() {
      return listener.connections;
    },
    serveWith: (pair) => listener.setServingPair(pair),
    close,
  };
}

function admissionOf(
  { access, reviews, accessMetrics: metrics, clock, nodeName }: NodeServerOptions,
  listener: HttpsListener,
  log: Logger,
) {
  const { clientCaFile, anonymous, tokens } = access;
  if (!reviews && (tokens.enabled || access.authorization.mode === 'Webhook')) {
    log.warn(
      'There is no API server to ask who may use the port of this node, so nobody may whom it would have to be ' +
        'asked about; set authorization.mode to AlwaysAllow and authentication.webhook.enabled to false, or ' +
        'give --kubeconfig',
    );
  }
  const asked = reviews ? metrics.reviews(reviews) : noReviews;
  const authentication = new Authentication({
    certificates: clientCaFile !== undefined,
    ...(tokens.enabled && { tokens: { reviews: asked, cacheTtlMs: tokens.cacheTtlMs } }),
    anonymous,
    metrics,
    clock,
    log,
  });
  return nodeAdmission({
    authentication,
    authorizer: authorizerOf(access, asked, { nodeName, clock }),
    credentialsOf: (request) => {
      const socket = listener.socketOf(request);
      return {
        certificate: socket && listener.authorities.shownBy(socket),
        authorization: request.headers.authorization,
      };
    },
    log,
  });
}

function authorizerOf(
  { authorization }: AccessRules,
  reviews: Reviews,
  node: { readonly nodeName: string; readonly clock: Clock },
): Authorizer {
  if (authorization.mode === 'AlwaysAllow') return alwaysAllow;
  const { allowedTtlMs, deniedTtlMs } = authorization;
  return new WebhookAuthorization({ ...node, reviews, allowedTtlMs, deniedTtlMs });
}

/** Differs from the kubelet, which does not start then: this node serves nobody it would have to ask about. */
const noReviews: Reviews = {
  tokenReview: () => Promise.reject(new Error('there is no API server to review tokens; give --kubeconfig')),
  accessReview: () => Promise.reject(new Error('there is no API server to review access; give --kubeconfig')),
};

async function using(setting: string, files: string, use: () => Promise<void>): Promise<void> {
  try {
    await use();
  } catch (cause) {
    throw new ServerFileError(`${setting}: ${files} cannot be used: ${(cause as Error).message}`, { cause });
  }
}
