/** The HTTPS API, the health endpoint, and TLS. */
import { configFlag } from './flag.ts';

export const servingFlags = {
  address: configFlag('ip', '0.0.0.0', 'address', 'Listen IP for the secure (and read-only) server'),
  'anonymous-auth': configFlag(
    'bool',
    true,
    'authentication.anonymous.enabled',
    'Admit unauthenticated callers as system:anonymous in group system:unauthenticated',
  ),
  'authentication-token-webhook': configFlag(
    'bool',
    false,
    'authentication.webhook.enabled',
    'Check bearer tokens with TokenReview',
  ),
  'authentication-token-webhook-cache-ttl': configFlag(
    'duration',
    '2m',
    'authentication.webhook.cacheTTL',
    'Lifetime of cached token reviews',
  ),
  'authorization-mode': configFlag(
    'string',
    'AlwaysAllow',
    'authorization.mode',
    'How requests are authorized',
  ),
  'authorization-webhook-cache-authorized-ttl': configFlag(
    'duration',
    '5m',
    'authorization.webhook.cacheAuthorizedTTL',
    'Cache time for allowed decisions',
  ),
  'authorization-webhook-cache-unauthorized-ttl': configFlag(
    'duration',
    '30s',
    'authorization.webhook.cacheUnauthorizedTTL',
    'Cache time for denied decisions',
  ),
  'client-ca-file': configFlag(
    'string',
    '',
    'authentication.x509.clientCAFile',
    'CA bundle for client certs; user=CN, groups=O',
  ),
  'contention-profiling': configFlag(
    'bool',
    false,
    'enableContentionProfiling',
    'Turn on Go block profiling',
  ),
  'enable-debugging-handlers': configFlag(
    'bool',
    true,
    'enableDebuggingHandlers',
    'Expose the debugging endpoints',
  ),
  'enable-server': configFlag('bool', true, 'enableServer', 'Turns the authenticated HTTPS server on or off'),
  'healthz-bind-address': configFlag(
    'ip',
    '127.0.0.1',
    'healthzBindAddress',
    'Listen IP of the health endpoint',
  ),
  'healthz-port': configFlag('int32', 10248, 'healthzPort', 'Health endpoint port'),
  port: configFlag('int32', 10250, 'port', 'Secure server port'),
  'read-only-port': configFlag(
    'int32',
    10255,
    'readOnlyPort',
    'Port of the unauthenticated read-only server',
  ),
  'rotate-server-certificates': configFlag(
    'bool',
    false,
    'serverTLSBootstrap',
    'Obtain the serving certificate through CSRs',
  ),
  'streaming-connection-idle-timeout': configFlag(
    'duration',
    '4h',
    'streamingConnectionIdleTimeout',
    'Deprecated idle limit of streaming connections',
  ),
  'tls-cert-file': configFlag('string', '', 'tlsCertFile', 'Serving certificate file'),
  'tls-cipher-suites': configFlag('strings', [], 'tlsCipherSuites', 'Allowed cipher suites of the server'),
  'tls-min-version': configFlag('string', '', 'tlsMinVersion', 'Lowest accepted TLS version'),
  'tls-private-key-file': configFlag(
    'string',
    '',
    'tlsPrivateKeyFile',
    'Private key for the serving certificate',
  ),
};
