/**
 * Compares this machine's clock with the API server's, which every answer tells. A clock that is off is said
 * once, with the remedy, and once more when it is right again: certificates, tokens and leases are judged by
 * it, and what then fails says nothing of the clock.
 */
import type { Clock } from '../../concurrency/clock.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { clockFindings } from '../doctor/cluster-findings.ts';
import { findingText } from '../doctor/finding.ts';

export class ClockWatch {
  readonly #clock: Clock;
  readonly #logger: Logger;
  #isOff = false;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** `serverTime` in epoch milliseconds, whole seconds, as an answer that has just come in tells it. */
  seen(serverTime: number): void {
    const [finding] = clockFindings('the API server', this.#clock.now() - serverTime);
    if ((finding !== undefined) === this.#isOff) return;
    this.#isOff = finding !== undefined;
    if (finding) this.#logger.warn('Something may trouble this node', { problem: findingText(finding) });
    else this.#logger.info('The clock of this machine agrees with that of the API server again');
  }
}
