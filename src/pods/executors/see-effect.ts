/**
 * Looks at what an action has just done to the runtime. The action itself has succeeded, and stays so when
 * looking fails: the look is taken again, after growing delays, until it succeeds, the effect is known from
 * elsewhere (an event, a relist), or nobody needs it any more.
 */
import { sleep } from '../../concurrency/clock.ts';
import { retryDelay } from '../restart-backoff.ts';
import type { PodServices } from './pod-services.ts';

/** One look, and whether its answer has come another way. */
export interface Look {
  readonly refresh: (signal: AbortSignal) => Promise<void>;
  readonly isKnown: () => boolean;
}

/** Never rejects. An abort ends the looking, after which a relist or an event has to tell. */
export async function seeEffect(
  { refresh, isKnown }: Look,
  { clock, logger }: Pick<PodServices, 'clock' | 'logger'>,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    try {
      await refresh(signal);
      return;
    } catch (error) {
      if (signal.aborted || isKnown()) return;
      failures++;
      if (failures === 1) {
        logger.warn('Looking at what was just done in the runtime failed; looking again', {
          error: (error as Error).message,
        });
      }
      await sleep(clock, retryDelay(failures), signal).catch(() => {});
      if (isKnown()) return;
    }
  }
}
