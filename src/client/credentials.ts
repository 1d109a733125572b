/** What the client proves itself with, and who gives it. */

/** A PEM chain, leaf first, with its key. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
}

export interface Credentials {
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** The same object for as long as it is the same certificate. */
  readonly certificate?: ClientCertificate;
}

export interface CredentialSource {
  /** What to send now. Rejects with {@link CredentialError} when there is nothing to send. */
  current(signal?: AbortSignal): Promise<Credentials>;
  /** The server has refused them: looks for newer ones. True when there are. */
  refresh(signal?: AbortSignal): Promise<boolean>;
  /** Why the server may refuse them at `now` (epoch ms), in words for the operator. */
  weakness(now: number): string | undefined;
}

/** There are no usable credentials; the message says whose, why, and what helps. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
}
