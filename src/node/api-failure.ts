/**
 * Failures of the API server in an operator's words, said once: repeated ones are logged at a verbosity
 * where they do not drown the rest, until something else happens.
 */
import { ApiError } from '../client/api-client.ts';
import { errorText } from '../telemetry/error-text.ts';
import type { Logger } from '../telemetry/logger.ts';

/** What failed, and what can be done about it. */
export function explainFailure(error: unknown, nodeName: string): string {
  const text = errorText(error);
  if (!(error instanceof ApiError)) return text;
  if (error.status === 403) {
    return `${text}. A node needs the user "system:node:${nodeName}" in group "system:nodes": check the subject of its client certificate, --hostname-override, and that the Node authorizer or a binding of ClusterRole system:node is in place`;
  }
  if (error.status === 422) {
    return `${text}. Check the node's name, --node-labels and registerWithTaints`;
  }
  return text;
}

/** Milliseconds to wait: what the back-off says, or longer when the server asks for it. */
export function waitAfter(error: unknown, backoffMs: number): number {
  return error instanceof ApiError ? Math.max(backoffMs, error.retryAfterMs ?? 0) : backoffMs;
}

export class FailureLog {
  readonly #logger: Logger;
  readonly #nodeName: string;
  readonly #message: string;
  #last: string | undefined;

  /** `message` is constant: `Cannot register the node`. */
  constructor(options: { logger: Logger; nodeName: string; message: string }) {
    this.#logger = options.logger;
    this.#nodeName = options.nodeName;
    this.#message = options.message;
  }

  /** What concerns every caller, a server that is away or refuses the credentials, the client has said. */
  failed(error: unknown): void {
    const problem = explainFailure(error, this.#nodeName);
    if (!(error instanceof ApiError) || !(error.unreachable || error.status === 401))
      return this.says(problem);
    this.#logger.v(4, this.#message, { node: this.#nodeName, problem });
    this.#last = problem;
  }

  says(problem: string): void {
    const fields = { node: this.#nodeName, problem };
    if (problem === this.#last) this.#logger.v(4, this.#message, fields);
    else this.#logger.warn(this.#message, fields);
    this.#last = problem;
  }

  /** Works again. True when it had failed before. */
  succeeded(): boolean {
    const hadFailed = this.#last !== undefined;
    this.#last = undefined;
    return hadFailed;
  }
}
