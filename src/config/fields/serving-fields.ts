/** The HTTPS API, the health endpoint, who may call them, and TLS. */
import { bool, choice, duration, integer, integers, object, text, texts } from '../field.ts';
import { knownCipherSuites, knownCurves } from '../tls-names.ts';
import { between, ipAddress } from '../value-checks.ts';

export const servingFields = {
  address: text('Listen IP for the secure (and read-only) server', { default: '0.0.0.0', check: ipAddress }),
  authentication: object('Request authentication settings', {
    anonymous: object('Anonymous access', {
      enabled: bool('Admit unauthenticated callers as system:anonymous in group system:unauthenticated', {
        default: false,
        pointer: true,
      }),
    }),
    webhook: object('Bearer token authentication', {
      cacheTTL: duration('Lifetime of cached token reviews', { default: '2m' }),
      enabled: bool('Check bearer tokens with TokenReview', { default: true, pointer: true }),
    }),
    x509: object('Client certificate authentication', {
      clientCAFile: text('CA bundle for client certs; user=CN, groups=O', { default: '' }),
    }),
  }),
  authorization: object('Request authorization settings', {
    mode: choice('string(enum)', ['AlwaysAllow', 'Webhook'], 'How requests are authorized', {
      default: 'Webhook',
    }),
    webhook: object('SubjectAccessReview authorization', {
      cacheAuthorizedTTL: duration('Cache time for allowed decisions', { default: '5m' }),
      cacheUnauthorizedTTL: duration('Cache time for denied decisions', { default: '30s' }),
    }),
  }),
  enableContentionProfiling: bool('Turn on Go block profiling', { default: false }),
  enableDebugFlagsHandler: bool('Serve /debug/flags/v', { default: true, pointer: true }),
  enableDebuggingHandlers: bool('Expose the debugging endpoints', { default: true, pointer: true }),
  enableProfilingHandler: bool('Serve /debug/pprof/', { default: true, pointer: true }),
  enableServer: bool('Turns the authenticated HTTPS server on or off', { default: true, pointer: true }),
  enableSystemLogHandler: bool('Serve /logs/', { default: true, pointer: true }),
  enableSystemLogQuery: bool('Serve log queries on /logs/', {
    default: false,
    pointer: true,
    gate: 'NodeLogQuery',
  }),
  healthzBindAddress: text('Listen IP of the health endpoint', { default: '127.0.0.1', check: ipAddress }),
  healthzPort: integer('int32', 'Health endpoint port', {
    default: 10248,
    pointer: true,
    check: between(0, 65535),
  }),
  port: integer('int32', 'Secure server port', { default: 10250, check: between(1, 65535) }),
  readOnlyPort: integer('int32', 'Port of the unauthenticated read-only server', {
    default: 0,
    check: between(0, 65535),
  }),
  serverTLSBootstrap: bool('Obtain the serving certificate through CSRs', {
    default: false,
    gate: 'RotateKubeletServerCertificate',
  }),
  streamingConnectionIdleTimeout: duration('Deprecated idle limit of streaming connections', {
    default: '4h',
  }),
  tlsCertFile: text('Serving certificate file', { default: '' }),
  tlsCipherSuites: texts('Allowed cipher suites of the server', { check: knownCipherSuites }),
  tlsCurvePreferences: integers('Allowed TLS key exchange groups; order ignored', { check: knownCurves }),
  tlsMinVersion: choice(
    'string',
    ['', 'VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'],
    'Lowest accepted TLS version',
    { default: '' },
  ),
  tlsPrivateKeyFile: text('Private key for the serving certificate', { default: '' }),
};
