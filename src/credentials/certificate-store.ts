/**
 * Certificates on disk, where every kubelet has them: `<name>-<date>.pem` with certificate and key in one
 * file, and the symbolic link `<name>-current.pem` to the newest. At any instant the link leads to a whole
 * pair, the former or the new one.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import { readFileIfExists, writeFileAtomically } from '../linux/atomic-file.ts';

export interface StoredCertificate {
  /** PEM: the leaf first. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
  readonly leaf: X509Certificate;
  /** Epoch milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
}

/** What is in the file, or what a signer gave, is no certificate that fits its key. */
export class StoredCertificateError extends Error {
  override readonly name = 'StoredCertificateError';
}

export class CertificateStore {
  readonly currentPath: string;
  readonly #directory: string;
  readonly #name: string;
  readonly #clock: Clock;

  /** `name`: `kubelet-client` or `kubelet-server`. */
  constructor(options: { directory: string; name: string; clock: Clock }) {
    this.#directory = options.directory;
    this.#name = options.name;
    this.#clock = options.clock;
    this.currentPath = join(options.directory, `${options.name}-current.pem`);
  }

  /** Undefined when there is none. Rejects with {@link StoredCertificateError} when it is damaged. */
  async current(): Promise<StoredCertificate | undefined> {
    const text = await readFileIfExists(this.currentPath);
    return text === undefined ? undefined : decodePair(text, text, this.currentPath);
  }

  /** Stores a new pair and makes it the current one. Rejects with {@link StoredCertificateError}. */
  async save(certificate: string, key: string): Promise<StoredCertificate> {
    const stored = decodePair(certificate, key, 'the new certificate');
    await mkdir(this.#directory, { recursive: true, mode: 0o755 });
    const file = `${this.#name}-${fileDate(new Date(this.#clock.now()))}.pem`;
    const end = certificate.endsWith('\n') ? '' : '\n';
    await writeFileAtomically(join(this.#directory, file), `${certificate}${end}${key}`, { mode: 0o600 });
    const link = `${this.currentPath}.tmp`;
    await rm(link, { force: true });
    await symlink(file, link);
    await rename(link, this.currentPath);
    return stored;
  }

  /** Where the key of a request that is not answered yet is kept, so that a restart asks for the same. */
  get pendingKeyPath(): string {
    return join(this.#directory, `${this.#name}.key.tmp`);
  }

  async pendingKey(): Promise<string | undefined> {
    return readFileIfExists(this.pendingKeyPath);
  }

  async savePendingKey(key: string): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o755 });
    await writeFileAtomically(this.pendingKeyPath, key, { mode: 0o600 });
  }

  async forgetPendingKey(): Promise<void> {
    await rm(this.pendingKeyPath, { force: true });
  }
}

/** Reads a pair; `where` names it in errors. */
export function decodePair(certificate: string, key: string, where: string): StoredCertificate {
  const blocks = certificate.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g);
  const keyBlock = /-----BEGIN ((?:EC |RSA )?PRIVATE KEY)-----[^-]+-----END \1-----\n?/.exec(key)?.[0];
  if (!blocks || keyBlock === undefined)
    throw new StoredCertificateError(`${where} does not hold a certificate and its private key`);
  let leaf: X509Certificate;
  let fits: boolean;
  try {
    leaf = new X509Certificate(blocks[0]);
    fits = leaf.checkPrivateKey(createPrivateKey(keyBlock));
  } catch (cause) {
    throw new StoredCertificateError(`${where} is damaged: ${(cause as Error).message}`, { cause });
  }
  if (!fits) throw new StoredCertificateError(`${where} does not belong to its private key`);
  return {
    certificate: blocks.map((block) => (block.endsWith('\n') ? block : `${block}\n`)).join(''),
    key: keyBlock,
    leaf,
    notBefore: leaf.validFromDate.getTime(),
    notAfter: leaf.validToDate.getTime(),
  };
}

/** `2026-11-30-18-44-33`, local time. */
function fileDate(date: Date): string {
  const two = (number: number) => String(number).padStart(2, '0');
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())];
  return [...day, two(date.getHours()), two(date.getMinutes()), two(date.getSeconds())].join('-');
}
