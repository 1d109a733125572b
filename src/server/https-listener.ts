/**
 * Listens with TLS on the node's address: HTTP/2, and HTTP/1.1 with upgrades. Certificate and client
 * authorities can change while it serves; new connections are made with the new ones.
 *
 * A client may be slow, silent or rude: it gets ten seconds to say hello, thirty for its headers, and is let
 * go when it has asked nothing, or has not read its answer, for ninety. What is quiet on its own account, such
 * as a followed log, stays.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2SecureServer, Http2ServerRequest, Http2ServerResponse, Http2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ClientAuthorities } from './client-authorities.ts';
import { ConnectionRecords } from './connection-records.ts';
import {
  bound,
  closeGrace,
  idleTimeout,
  type ListenOptions,
  maxHeaderSize,
  type RunningServer,
} from './http-listener.ts';
import { refuseBrokenRequests } from './refuse-broken-requests.ts';
import type { AnyRequest } from './request-body.ts';
import type { Router } from './router.ts';
import { type TlsRules, tlsOptions } from './tls-rules.ts';

/** PEM texts. */
export interface ServingPair {
  readonly certificate: string;
  readonly key: string;
}

export interface SecureListenOptions extends ListenOptions {
  readonly rules: TlsRules;
  /** Whether clients are asked for certificates. */
  readonly asksForCertificates: boolean;
  readonly limits: ConnectionLimits;
}

/** What a client may take, times in milliseconds. */
export interface ConnectionLimits {
  /** From the connection to the end of the handshake. */
  readonly handshakeMs: number;
  /** For the headers of a request. */
  readonly headersMs: number;
  /** Without a request, or without reading an answer. */
  readonly idleMs: number;
  /** Open connections; who has had nothing to do for longest leaves for a newcomer. */
  readonly connections: number;
}

/** Streams of hundreds of pods, and few enough to leave file descriptors for the rest. */
export const usualLimits: ConnectionLimits = {
  handshakeMs: 10_000,
  headersMs: 30_000,
  idleMs: idleTimeout,
  connections: 1024,
};

const requestTimeout = 4 * 3600 * 1000;
const longestCheckingInterval = 5000;
const maxStreamsPerConnection = 250;
/** Vanished peers are noticed by the kernel's probes, from this long after they were last heard of. */
const keepAliveDelay = 30_000;

export class HttpsListener implements RunningServer {
  readonly authorities = new ClientAuthorities();
  readonly #server: Http2SecureServer;
  readonly #records: ConnectionRecords;
  readonly #options: SecureListenOptions;
  #pair: ServingPair | undefined;

  constructor(options: SecureListenOptions) {
    const { createSecureServer } = process.getBuiltinModule('node:http2');
    this.#options = options;
    this.#records = new ConnectionRecords(options.limits.connections);
    this.#server = createSecureServer({
      allowHTTP1: true,
      ...tlsOptions(options.rules),
      requestCert: options.asksForCertificates,
      // Who may is decided for each request; TLS only finds out whether the certificate holds.
      rejectUnauthorized: false,
      handshakeTimeout: options.limits.handshakeMs,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveDelay,
      connectionsCheckingInterval: Math.min(longestCheckingInterval, options.limits.headersMs / 2),
      settings: { maxConcurrentStreams: maxStreamsPerConnection, maxHeaderListSize: maxHeaderSize },
      maxSendHeaderBlockLength: maxHeaderSize,
    } as Parameters<typeof createSecureServer>[0]);
  }

  get address(): string {
    return (this.#server.address() as AddressInfo).address;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many connections there are. */
  get connections(): number {
    return this.#records.size;
  }

  /** Until there is a certificate no connection can be made. Throws when the pair does not fit together. */
  setServingPair(pair: ServingPair): void {
    this.#server.setSecureContext(this.#context(pair));
    this.#pair = pair;
  }

  /** PEM, read from `path`. Throws when it holds no certificate; the former ones stay in force then. */
  setClientAuthorities(bundle: string, path: string): void {
    this.authorities.set(bundle, path);
    if (this.#pair) this.#server.setSecureContext(this.#context(this.#pair));
  }

  /** Resolves when requests are taken; rejects with a `ListenError`. */
  async start(router: Router): Promise<void> {
    const { log, setting, limits } = this.#options;
    const server = this.#server;
    // Of the HTTP/1.1 half, which is told by properties.
    Object.assign(server, {
      maxHeaderSize,
      headersTimeout: limits.headersMs,
      requestTimeout,
      keepAliveTimeout: limits.idleMs,
      shouldUpgradeCallback: (request: IncomingMessage) => router.upgrades(request),
    });
    // Together with those that have not finished their handshake.
    server.maxConnections = 2 * limits.connections;
    // Before the listener that makes an HTTP connection of it.
    server.prependListener('secureConnection', (socket: TLSSocket) => {
      socket.on('error', () => {});
      this.authorities.remember(socket);
      this.#records.add(socket);
    });
    server.on('session', (session) => this.#welcome(session));
    refuseBrokenRequests(
      server as unknown as Parameters<typeof refuseBrokenRequests>[0],
      this.#options.clock,
    );
    server.on('sessionError', () => {});
    server.on('tlsClientError', (_error, socket) => socket.destroy());
    server.setTimeout(limits.idleMs);
    server.on('timeout', ((quiet: Http2Session | TLSSocket) => {
      const record = this.#records.of('socket' in quiet ? quiet.socket : quiet);
      if (record) this.#records.onIdle(record);
      else quiet.destroy();
    }) as () => void);
    server.on('request', (request, response) => this.#request(router, request, response));
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const record = this.#records.of(socket);
      if (record) record.upgraded = true;
      (socket as TLSSocket).setTimeout(0);
      router.upgrade(request, socket, head);
    });
    await bound(server, this.#options);
    server.on('error', (error) => log.error('A server has trouble', error, { server: setting.server }));
  }

  /** The TLS connection a request came by. */
  socketOf(request: AnyRequest): TLSSocket | undefined {
    return this.#records.of(connectionOf(request))?.socket;
  }

  async close(): Promise<void> {
    const { clock } = this.#options;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#records.beginClosing();
    const cancel = clock.after(closeGrace, () => this.#records.destroyAll());
    await closed;
    cancel();
  }

  #context({ certificate, key }: ServingPair) {
    const { bundle } = this.authorities;
    return {
      ...tlsOptions(this.#options.rules),
      cert: certificate,
      key,
      ...(bundle !== '' && { ca: bundle }),
    };
  }

  #welcome(session: Http2Session): void {
    session.on('error', () => {});
    const record = this.#records.of(session.socket);
    if (record) record.session = session;
  }

  #request(router: Router, request: Http2ServerRequest, response: Http2ServerResponse): void {
    const record = this.#records.of(connectionOf(request));
    if (record) this.#records.answering(record, response as unknown as ServerResponse);
    router.request(request, response);
  }
}

const connectionOf = (request: AnyRequest): Duplex =>
  request.httpVersionMajor === 2
    ? (request as Http2ServerRequest).stream.session!.socket
    : (request as IncomingMessage).socket;
