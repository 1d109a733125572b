/**
 * Why the API server cannot be reached, in one sentence that names the server, the cause and the remedy.
 * Pure: a table from what the system and TLS libraries report to words for the operator.
 */
import { ConnectTimeoutError, ProxyError } from './server-socket.ts';

export interface FailureContext {
  /** `https://10.0.0.1:6443`. */
  readonly server: string;
  /** The kubeconfig the server comes from. */
  readonly kubeconfig: string;
  /** The machine's time, epoch milliseconds. */
  readonly now: number;
}

type Explain = (context: FailureContext, detail: string) => string;

const authorityRemedy: Explain = ({ server, kubeconfig }) =>
  `the certificate of API server ${server} is not signed by an authority that ${kubeconfig} trusts: ` +
  "put the cluster's CA certificate into certificate-authority-data (or certificate-authority), " +
  'or correct the server address';

const unreachable =
  (why: string): Explain =>
  ({ server, kubeconfig }) =>
    `API server ${server} cannot be reached: ${why}; check that it runs, and the address in ${kubeconfig}`;

const refusedCertificate: Explain = ({ server, kubeconfig }, detail) =>
  `API server ${server} refused the client certificate of ${kubeconfig} (${detail}): ` +
  'it must be signed by the client CA of this cluster';

const explanations: Readonly<Record<string, Explain>> = {
  ECONNREFUSED: unreachable('connection refused, nothing listens there'),
  ECONNRESET: unreachable('the connection was reset'),
  EPIPE: unreachable('the connection was reset'),
  EHOSTUNREACH: unreachable('no route to the host'),
  ENETUNREACH: unreachable('no route to the network'),
  EADDRNOTAVAIL: unreachable('this machine has no address to reach it from'),
  ETIMEDOUT: unreachable('the connection timed out'),
  ENOTFOUND: unreachable('its name does not resolve'),
  EAI_AGAIN: unreachable('its name does not resolve, the name server did not answer'),
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: authorityRemedy,
  UNABLE_TO_GET_ISSUER_CERT: authorityRemedy,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: authorityRemedy,
  SELF_SIGNED_CERT_IN_CHAIN: authorityRemedy,
  DEPTH_ZERO_SELF_SIGNED_CERT: authorityRemedy,
  CERT_UNTRUSTED: authorityRemedy,
  CERT_SIGNATURE_FAILURE: authorityRemedy,
  INVALID_CA: authorityRemedy,
  INVALID_PURPOSE: authorityRemedy,
  CERT_HAS_EXPIRED: ({ server, now }) =>
    `the certificate of API server ${server} (or of its authority) has expired, seen from this machine's ` +
    `clock (${new Date(now).toISOString()}): renew it on the control plane, or set this machine's clock`,
  CERT_NOT_YET_VALID: ({ server, now }) =>
    `the certificate of API server ${server} (or of its authority) is not valid yet, seen from this ` +
    `machine's clock (${new Date(now).toISOString()}): the clock is behind; set it, for example with NTP`,
  ERR_TLS_CERT_ALTNAME_INVALID: ({ server, kubeconfig }, detail) =>
    `the certificate of API server ${server} is for other names (${detail}): use one of them as the server ` +
    `in ${kubeconfig}, or set tls-server-name`,
  EPROTO: ({ server, kubeconfig }, detail) =>
    `API server ${server} does not speak TLS as expected (${detail}): check scheme and port in ${kubeconfig}`,
  ERR_SSL_WRONG_VERSION_NUMBER: ({ server, kubeconfig }) =>
    `${server} does not speak TLS: check scheme (http or https) and port in ${kubeconfig}`,
  ERR_SSL_SSL_ALERT_BAD_CERTIFICATE: refusedCertificate,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: refusedCertificate,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: refusedCertificate,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: refusedCertificate,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: refusedCertificate,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: refusedCertificate,
};

/** The sentence for `error`, of any shape. */
export function explainConnectionFailure(error: unknown, context: FailureContext): string {
  if (error instanceof ConnectTimeoutError) return unreachable(error.message)(context, '');
  if (error instanceof ProxyError)
    return (
      `API server ${context.server} cannot be reached: ${error.message}; check proxy-url in ${context.kubeconfig}, ` +
      `or HTTPS_PROXY and NO_PROXY in the agent's environment`
    );
  const code = codeOf(error);
  const detail = error instanceof Error ? error.message : String(error);
  const explain = code === undefined ? undefined : explanations[code];
  return explain ? explain(context, shortDetail(detail)) : unreachable(shortDetail(detail))(context, '');
}

/** The first code in the error, its causes, or the errors it stands for (one per address tried). */
function codeOf(error: unknown): string | undefined {
  for (let depth = 0, at = error; depth < 5 && typeof at === 'object' && at !== null; depth++) {
    const { code, cause, errors } = at as { code?: unknown; cause?: unknown; errors?: unknown };
    if (typeof code === 'string' && Object.hasOwn(explanations, code)) return code;
    at = Array.isArray(errors) ? errors[0] : cause;
  }
  return undefined;
}

/** OpenSSL's texts carry addresses and source lines; what an operator can use is in the middle. */
function shortDetail(message: string): string {
  const reason = /:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1];
  return (reason ?? message.replace(/^.*?altnames: /, '')).trim().slice(0, 300);
}
