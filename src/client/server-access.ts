/**
 * What the next request needs: headers that say who asks, and the identity a connection is made with
 * (trusted authority and client certificate), both as the files say now.
 */
import type { Clock } from '../concurrency/clock.ts';
import { CredentialError, type CredentialSource } from './credentials.ts';
import type { KubeconfigCluster } from './kubeconfig.ts';
import type { TlsIdentity } from './server-socket.ts';
import { WatchedText } from './watched-text.ts';

const authorityCheckMs = 10_000;

export class ServerAccess {
  readonly #cluster: KubeconfigCluster;
  readonly #credentials: CredentialSource;
  readonly #authorityFile: WatchedText | undefined;
  #identity: TlsIdentity = {};

  constructor(cluster: KubeconfigCluster, credentials: CredentialSource, clock: Clock) {
    this.#cluster = cluster;
    this.#credentials = credentials;
    const { authority } = cluster;
    if (authority && 'file' in authority)
      this.#authorityFile = new WatchedText(authority.file, clock, authorityCheckMs);
  }

  /** The same identity object for as long as nothing about it has changed. */
  async current(signal: AbortSignal): Promise<{
    readonly headers: Readonly<Record<string, string | readonly string[]>>;
    readonly identity: TlsIdentity;
  }> {
    const { headers, certificate } = await this.#credentials.current(signal);
    const authority = await this.authorityPem();
    const former = this.#identity;
    if (
      former.authority !== authority ||
      former.certificate !== certificate?.certificate ||
      former.key !== certificate?.key
    )
      this.#identity = { ...(authority !== undefined && { authority }), ...certificate };
    return { headers, identity: this.#identity };
  }

  /** Rejects with {@link CredentialError} when the file is not there or holds no certificate. */
  async authorityPem(): Promise<string | undefined> {
    const { authority } = this.#cluster;
    if (!authority || 'pem' in authority) return authority?.pem;
    let text: string;
    try {
      text = await this.#authorityFile!.read();
    } catch (cause) {
      throw new CredentialError(
        `certificate authority ${authority.file} of cluster "${this.#cluster.name}" cannot be read: ` +
          (cause as Error).message,
        { cause },
      );
    }
    if (text.includes('-----BEGIN ')) return text;
    throw new CredentialError(
      `certificate authority ${authority.file} of cluster "${this.#cluster.name}" holds no PEM certificate`,
    );
  }

  refresh(signal: AbortSignal): Promise<boolean> {
    return this.#credentials.refresh(signal);
  }

  weakness(now: number): string | undefined {
    return this.#credentials.weakness(now);
  }
}
