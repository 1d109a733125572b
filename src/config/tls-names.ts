/** TLS parameters by the names and numbers that Go's TLS library gives them. */
import type { ValueCheck } from './field.ts';

const CIPHER_SUITES = new Set([
  // TLS 1.3
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  // TLS 1.2
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA',
  'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA',
  'TLS_RSA_WITH_AES_128_CBC_SHA',
  'TLS_RSA_WITH_AES_256_CBC_SHA',
  'TLS_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_RSA_WITH_AES_256_GCM_SHA384',
  // Known, and unsafe
  'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256',
  'TLS_ECDHE_ECDSA_WITH_RC4_128_SHA',
  'TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256',
  'TLS_ECDHE_RSA_WITH_RC4_128_SHA',
  'TLS_RSA_WITH_3DES_EDE_CBC_SHA',
  'TLS_RSA_WITH_AES_128_CBC_SHA256',
  'TLS_RSA_WITH_RC4_128_SHA',
]);

/** Suites that Kubernetes accepts. */
export const knownCipherSuites: ValueCheck<readonly string[]> = {
  rule: 'names of TLS cipher suites such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  accepts: (value) => value.every((name) => CIPHER_SUITES.has(name)),
};

/** P-256, P-384, P-521, X25519, and the hybrids with ML-KEM. */
const CURVES = new Set([23, 24, 25, 29, 4587, 4588, 4589]);

/** Groups that Kubernetes accepts. */
export const knownCurves: ValueCheck<readonly number[]> = {
  rule: 'numbers of TLS key exchange groups: 23, 24, 25, 29, 4587, 4588, 4589',
  accepts: (value) => value.every((id) => CURVES.has(id)),
};
