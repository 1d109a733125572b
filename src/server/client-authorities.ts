/**
 * Whose client certificates are trusted: the bundle of `clientCAFile`, which may change while connections stand.
 * TLS checks the chain when a connection is made; after a change, what was checked against the former bundle
 * counts only if its issuer is in the new one.
 */
import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { ShownCertificate } from './authentication.ts';

/** The client CA file holds nothing to trust. */
export class ClientAuthorityError extends Error {
  override readonly name = 'ClientAuthorityError';
}

interface Shown {
  readonly leaf: X509Certificate;
  readonly generation: number;
  readonly verified: boolean;
}

export class ClientAuthorities {
  #bundle = '';
  #certificates: readonly X509Certificate[] = [];
  #generation = 0;
  readonly #shown = new WeakMap<TLSSocket, Shown | 'none'>();

  /** PEM; empty while there is none. */
  get bundle(): string {
    return this.#bundle;
  }

  /** Throws {@link ClientAuthorityError} and keeps the former bundle when `text` holds no certificate. */
  set(text: string, path: string): void {
    const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    if (blocks.length === 0) throw new ClientAuthorityError(`there is no certificate in PEM in ${path}`);
    try {
      this.#certificates = blocks.map((block) => new X509Certificate(block));
    } catch (cause) {
      throw new ClientAuthorityError(`a certificate in ${path} cannot be read`, { cause });
    }
    this.#bundle = text;
    this.#generation++;
  }

  /** What the client at the other end of `socket` has shown; undefined: nothing. */
  shownBy(socket: TLSSocket): ShownCertificate | undefined {
    const known = this.#shown.get(socket) ?? this.#look(socket);
    if (known === 'none') return undefined;
    if (known.generation === this.#generation) return { leaf: known.leaf, trusted: known.verified };
    return { leaf: known.leaf, trusted: known.verified && this.#issued(known.leaf) };
  }

  /** To be called when a connection is made, so that it is known which bundle it was checked against. */
  remember(socket: TLSSocket): void {
    this.#look(socket);
  }

  #look(socket: TLSSocket): Shown | 'none' {
    const leaf = socket.getPeerX509Certificate();
    const shown = leaf ? { leaf, generation: this.#generation, verified: socket.authorized } : 'none';
    this.#shown.set(socket, shown);
    return shown;
  }

  #issued(leaf: X509Certificate): boolean {
    return this.#certificates.some((issuer) => leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey));
  }
}
