/**
 * Says why a certificate cannot be had: once, until something else is the matter. What concerns every caller,
 * a server that is away or does not accept the credentials, the client has said.
 */
import { ApiError } from '../client/api-client.ts';
import { errorText } from '../telemetry/error-text.ts';
import type { LogFields, Logger } from '../telemetry/logger.ts';

export class CertificateTrouble {
  readonly #logger: Logger;
  readonly #message: string;
  #last: string | undefined;

  /** `message` is constant: `The client certificate could not be renewed, trying again`. */
  constructor(logger: Logger, message: string) {
    this.#logger = logger;
    this.#message = message;
  }

  failed(error: unknown, fields: LogFields = {}): void {
    const text = errorText(error);
    const isKnown = error instanceof ApiError && (error.unreachable || error.status === 401);
    if (isKnown || text === this.#last) this.#logger.v(2, this.#message, { err: text, ...fields });
    else this.#logger.error(this.#message, error, fields);
    this.#last = text;
  }

  /** The same trouble would be news again. */
  succeeded(): void {
    this.#last = undefined;
  }
}
