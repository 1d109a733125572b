/**
 * Says what is wrong once, not once per caller: the same trouble is logged again only after a minute, and its
 * end is logged once.
 */
import type { Clock } from '../concurrency/clock.ts';
import type { Logger } from '../telemetry/logger.ts';

const repeatMs = 60_000;

export class Complaints {
  readonly #logger: Logger;
  readonly #clock: Clock;
  #kind: string | undefined;
  #saidAt = 0;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** `text` is a whole sentence; times in it do not make it a new one. */
  complain(message: string, text: string): void {
    const kind = `${message} ${text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '')}`;
    const now = this.#clock.now();
    if (kind === this.#kind && Math.abs(now - this.#saidAt) < repeatMs) return;
    this.#kind = kind;
    this.#saidAt = now;
    this.#logger.warn(message, { err: text });
  }

  /** The trouble is over. */
  resolve(message: string): void {
    if (this.#kind === undefined) return;
    this.#kind = undefined;
    this.#logger.info(message);
  }
}
