/** How the node's API and the other ports are served. */
import { parseDuration } from '../../kubernetes/duration.ts';
import { given, type Loaded } from './loaded.ts';

export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

/** The node's API: where it listens, its certificate, and who may do what. */
export interface NodeServerSettings extends ListenAddress {
  /** `--cert-dir`. */
  readonly certificateDirectory: string;
  /** The serving certificate: signed by the cluster, from files, or self-signed. */
  readonly serving:
    | { readonly kind: 'cluster' }
    | { readonly kind: 'files'; readonly certificateFile: string; readonly keyFile: string }
    | { readonly kind: 'self-signed' };
  readonly tls: {
    readonly minVersion: string;
    readonly cipherSuites: readonly string[];
    readonly curves: readonly number[];
  };
  readonly access: {
    readonly clientCaFile: string | undefined;
    readonly anonymous: boolean;
    readonly tokens: { readonly enabled: boolean; readonly cacheTtlMs: number };
    readonly authorization:
      | { readonly mode: 'AlwaysAllow' }
      | { readonly mode: 'Webhook'; readonly allowedTtlMs: number; readonly deniedTtlMs: number };
  };
  readonly debuggingHandlers: boolean;
  /** Endpoints that can be switched off one by one. */
  readonly handlers: {
    readonly flags: boolean;
    readonly status: boolean;
    readonly verbosity: boolean;
    readonly profiling: boolean;
    readonly systemLogs: boolean;
    readonly systemLogQueries: boolean;
  };
  /** Which files are read again when they change. */
  readonly reloads: { readonly clientCa: boolean; readonly serving: boolean };
}

/** Undefined: the node serves no API. */
export function nodeServerSettings({ configuration, flags, gates }: Loaded): NodeServerSettings | undefined {
  if (!configuration.enableServer) return undefined;
  const { authentication, authorization } = configuration;
  const { tlsCertFile: certificateFile, tlsPrivateKeyFile: keyFile } = configuration;
  const { cacheAuthorizedTTL, cacheUnauthorizedTTL } = authorization.webhook;
  return {
    address: configuration.address,
    port: configuration.port,
    certificateDirectory: flags['cert-dir'],
    serving: configuration.serverTLSBootstrap
      ? { kind: 'cluster' }
      : certificateFile !== '' || keyFile !== ''
        ? { kind: 'files', certificateFile, keyFile }
        : { kind: 'self-signed' },
    tls: {
      minVersion: configuration.tlsMinVersion,
      cipherSuites: configuration.tlsCipherSuites ?? [],
      curves: configuration.tlsCurvePreferences ?? [],
    },
    access: {
      clientCaFile: given(authentication.x509.clientCAFile),
      anonymous: authentication.anonymous.enabled,
      tokens: {
        enabled: authentication.webhook.enabled,
        cacheTtlMs: parseDuration(authentication.webhook.cacheTTL),
      },
      authorization:
        authorization.mode === 'AlwaysAllow'
          ? { mode: 'AlwaysAllow' }
          : {
              mode: 'Webhook',
              allowedTtlMs: parseDuration(cacheAuthorizedTTL),
              deniedTtlMs: parseDuration(cacheUnauthorizedTTL),
            },
    },
    debuggingHandlers: configuration.enableDebuggingHandlers,
    handlers: {
      flags: gates.enabled('ComponentFlagz'),
      status: gates.enabled('ComponentStatusz'),
      verbosity: configuration.enableDebugFlagsHandler,
      profiling: configuration.enableProfilingHandler,
      systemLogs: configuration.enableSystemLogHandler,
      systemLogQueries: configuration.enableSystemLogHandler && configuration.enableSystemLogQuery,
    },
    reloads: {
      clientCa: gates.enabled('ReloadKubeletClientCAFile'),
      serving: gates.enabled('ReloadKubeletServerCertificateFile'),
    },
  };
}

/** Port 0 switches a server off. */
export function listenAddress(address: string, port: number): ListenAddress | undefined {
  return port === 0 ? undefined : { address, port };
}
