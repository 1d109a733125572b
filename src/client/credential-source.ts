/**
 * As whom the client speaks: a certificate, a token, or both, kept fresh. Files are read again when they
 * change, plugins run again when what they gave runs out or is refused.
 *
 * Guarantees: `current` never gives a certificate that does not fit its key; a file half replaced leaves the
 * last good pair in force. Secrets never appear in messages.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Clock } from '../concurrency/clock.ts';
import { type ClientCertificate, CredentialError, type CredentialSource } from './credentials.ts';
import { ExecPlugin, type ExecPluginOptions } from './exec-plugin.ts';
import type { Impersonation, KubeconfigUser, PemSource } from './kubeconfig.ts';
import { WatchedText } from './watched-text.ts';

export interface CredentialSourceOptions extends Omit<ExecPluginOptions, 'config'> {
  readonly user: KubeconfigUser;
  readonly clock: Clock;
}

/** How often files are looked at: the kubelet's own transport check. */
const certificateCheckMs = 10_000;
const tokenCheckMs = 10_000;

/** The credentials of a kubeconfig's user. Reads nothing yet. */
export function credentialSource(options: CredentialSourceOptions): CredentialSource {
  const { user, clock } = options;
  const pair = user.clientCertificate && new CertificatePair(user.name, user.clientCertificate, clock);
  const tokenFile =
    user.tokenFile === undefined ? undefined : new WatchedText(user.tokenFile, clock, tokenCheckMs);
  const plugin = user.exec && new ExecPlugin({ ...options, config: user.exec });
  const fixed = user.impersonate ? impersonationHeaders(user.impersonate) : {};
  let lastToken: string | undefined;

  const token = async (force: boolean): Promise<string | undefined> => {
    if (!tokenFile) return user.token;
    try {
      const text = (await tokenFile.read({ force })).trim();
      if (text !== '' && !/[\r\n]/.test(text)) return text;
      if (user.token !== undefined) return user.token;
      throw new CredentialError(`token file ${tokenFile.path} of user "${user.name}" holds no token`);
    } catch (cause) {
      if (cause instanceof CredentialError) throw cause;
      if (user.token !== undefined) return user.token;
      throw new CredentialError(
        `token file ${tokenFile.path} of user "${user.name}" cannot be read: ${reasonOf(cause)}`,
        { cause },
      );
    }
  };

  return {
    async current(signal) {
      const certificate = await pair?.read();
      lastToken = await token(false);
      const given = plugin && lastToken === undefined ? await plugin.current(signal) : undefined;
      const bearer = lastToken ?? given?.token;
      const headers = bearer === undefined ? fixed : { ...fixed, authorization: `Bearer ${bearer}` };
      const used = certificate ?? given?.certificate;
      return { headers, ...(used && { certificate: used }) };
    },
    async refresh(signal) {
      const before = pair?.last;
      const changed = (await pair?.read({ force: true })) !== before;
      if (tokenFile && (await token(true)) !== lastToken) return true;
      return (plugin && (await plugin.refresh(signal))) || changed;
    },
    weakness: (now) => pair?.weakness(now) ?? tokenWeakness(lastToken),
  };
}

/** A refused bootstrap token has run out, as each does after a day or so, or was taken away. */
function tokenWeakness(token: string | undefined): string | undefined {
  const [, id] = /^([a-z0-9]{6})\.[a-z0-9]{16}$/.exec(token ?? '') ?? [];
  if (id === undefined) return undefined;
  return (
    `bootstrap token ${id} has expired, or this cluster does not know it: ` +
    'make another one (kubeadm token create) and put it into the bootstrap kubeconfig'
  );
}

class CertificatePair {
  readonly #user: string;
  readonly #certificate: PemSource;
  readonly #files: { certificate?: WatchedText; key?: WatchedText };
  readonly #key: PemSource;
  /** What was read last, whether it is fit for use or not, so that it is checked once. */
  #seen: ClientCertificate | undefined;
  #good: ClientCertificate | undefined;

  constructor(user: string, source: NonNullable<KubeconfigUser['clientCertificate']>, clock: Clock) {
    this.#user = user;
    this.#certificate = source.certificate;
    this.#key = source.key;
    const watch = (pem: PemSource) =>
      'file' in pem ? new WatchedText(pem.file, clock, certificateCheckMs) : undefined;
    const certificate = watch(source.certificate);
    // A kubelet keeps both in one file: read once, they always fit.
    const shared = 'file' in source.key && certificate?.path === source.key.file;
    const key = shared ? certificate : watch(source.key);
    this.#files = { ...(certificate && { certificate }), ...(key && { key }) };
  }

  get last(): ClientCertificate | undefined {
    return this.#good;
  }

  async read(options: { force?: boolean } = {}): Promise<ClientCertificate> {
    const certificate = await this.#text(
      'client certificate',
      this.#certificate,
      this.#files.certificate,
      options,
    );
    const key =
      this.#files.key && this.#files.key === this.#files.certificate
        ? certificate
        : await this.#text('client key', this.#key, this.#files.key, options);
    if (this.#seen?.certificate !== certificate || this.#seen.key !== key) {
      this.#seen = { certificate, key };
      const fault = pairFault(this.#seen);
      if (fault === undefined) this.#good = this.#seen;
      else if (!this.#good) {
        this.#seen = undefined;
        throw new CredentialError(`client certificate of user "${this.#user}"${this.#where()}: ${fault}`);
      }
    }
    return this.#good ?? this.#seen;
  }

  weakness(now: number): string | undefined {
    if (!this.#good) return undefined;
    const leaf = new X509Certificate(this.#good.certificate);
    const what = `the client certificate${this.#where()} (${leaf.subject.replaceAll('\n', ', ')})`;
    const at = new Date(now).toISOString();
    if (now > leaf.validToDate.getTime())
      return (
        `${what} expired on ${leaf.validToDate.toISOString()} and it is ${at} here: ` +
        'renew it, or give --bootstrap-kubeconfig so that the node asks for a new one by itself'
      );
    if (now < leaf.validFromDate.getTime())
      return `${what} is valid from ${leaf.validFromDate.toISOString()} on and it is ${at} here: set this machine's clock`;
    return undefined;
  }

  async #text(
    what: string,
    source: PemSource,
    file: WatchedText | undefined,
    options: { force?: boolean },
  ): Promise<string> {
    if ('pem' in source) return source.pem;
    try {
      return await file!.read(options);
    } catch (cause) {
      throw new CredentialError(
        `${what} ${source.file} of user "${this.#user}" cannot be read: ${reasonOf(cause)}`,
        { cause },
      );
    }
  }

  #where(): string {
    return 'file' in this.#certificate ? ` ${this.#certificate.file}` : ' in the kubeconfig';
  }
}

/** What is wrong with a certificate and its key, if anything. */
function pairFault(pair: ClientCertificate): string | undefined {
  let leaf: X509Certificate;
  try {
    leaf = new X509Certificate(pair.certificate);
  } catch {
    return 'is not a PEM certificate';
  }
  try {
    if (leaf.checkPrivateKey(createPrivateKey(pair.key))) return undefined;
  } catch {
    return 'has no readable private key beside it';
  }
  return 'does not belong to the private key beside it';
}

/** Header values as the API server decodes them: extras are percent-encoded in their names. */
function impersonationHeaders(as: Impersonation): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = { 'impersonate-user': as.user };
  if (as.uid !== undefined) headers['impersonate-uid'] = as.uid;
  if (as.groups.length > 0) headers['impersonate-group'] = as.groups;
  for (const [key, values] of Object.entries(as.extra))
    headers[`impersonate-extra-${encodeURIComponent(key.toLowerCase())}`] = values;
  return headers;
}

function reasonOf(cause: unknown): string {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'permission denied';
  return cause instanceof Error ? cause.message : String(cause);
}
