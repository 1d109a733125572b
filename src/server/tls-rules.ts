/** TLS parameters by Go's names, as the configuration has them, in the words of OpenSSL. */
import type { TlsOptions } from 'node:tls';

export interface TlsRules {
  /** `VersionTLS10` … `VersionTLS13`; empty: 1.2. */
  readonly minVersion: string;
  /** Go's names of suites; empty: the usual ones. They say nothing about TLS 1.3, whose suites are all safe. */
  readonly cipherSuites: readonly string[];
  /** Numbers of key exchange groups; empty: the usual ones. */
  readonly curves: readonly number[];
}

const versions = {
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
} as const;

const curveNames: ReadonlyMap<number, string> = new Map([
  [23, 'P-256'],
  [24, 'P-384'],
  [25, 'P-521'],
  [29, 'X25519'],
  [4587, 'SecP256r1MLKEM768'],
  [4588, 'X25519MLKEM768'],
  [4589, 'SecP384r1MLKEM1024'],
]);

/** OpenSSL 3 refuses its own old protocol versions unless it is told that little security will do. */
const oldProtocols = '@SECLEVEL=0';

export function tlsOptions({ minVersion, cipherSuites, curves }: TlsRules): TlsOptions {
  const lowest = versions[minVersion as keyof typeof versions] ?? 'TLSv1.2';
  const isOld = lowest === 'TLSv1' || lowest === 'TLSv1.1';
  const { DEFAULT_CIPHERS } = process.getBuiltinModule('node:tls');
  const modern = DEFAULT_CIPHERS.split(':').filter((name) => name.startsWith('TLS_'));
  const chosen = cipherSuites.map(openSslName).filter((name) => name !== undefined);
  const suites = cipherSuites.length === 0 ? [DEFAULT_CIPHERS] : [...modern, ...new Set(chosen)];
  const groups = curves.map((id) => curveNames.get(id)).filter((name) => name !== undefined);
  return {
    minVersion: lowest,
    ciphers: [...suites, ...(isOld ? [oldProtocols] : [])].join(':'),
    honorCipherOrder: true,
    ...(groups.length > 0 && { ecdhCurve: groups.join(':') }),
  };
}

/** Suites that this program cannot offer although they were asked for: OpenSSL has given them up. */
export function missingSuites({ cipherSuites }: TlsRules): string[] {
  const offered = new Set(process.getBuiltinModule('node:tls').getCiphers());
  return cipherSuites.filter((name) => {
    const known = openSslName(name);
    return known === undefined ? !offered.has(name.toLowerCase()) : !offered.has(known.toLowerCase());
  });
}

/** `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256`; undefined for those of TLS 1.3. */
function openSslName(name: string): string | undefined {
  const [, exchange, cipher = ''] = /^TLS_(.+)_WITH_(.+)$/.exec(name) ?? [];
  if (exchange === undefined) return undefined;
  const translated = cipher
    .replace(/^CHACHA20_POLY1305(_SHA256)?$/, 'CHACHA20-POLY1305')
    .replace(/^AES_(\d+)_CBC_/, 'AES$1-')
    .replace(/^AES_(\d+)_/, 'AES$1-')
    .replace(/^3DES_EDE_CBC_/, 'DES-CBC3-')
    .replace(/^RC4_128_/, 'RC4-')
    .replaceAll('_', '-');
  return exchange === 'RSA' ? translated : `${exchange.replaceAll('_', '-')}-${translated}`;
}
