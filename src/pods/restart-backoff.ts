/**
 * How long a crashed container waits for its next start.
 *
 * The delay is not kept in memory but on the container itself, as an annotation that says how long the
 * instance after it has to wait. So a restarted agent goes on where it was, neither forgiving nor
 * punishing anybody. Instances made by another kubelet carry no such annotation; their restart count is
 * the next best witness.
 */
import type { ObservedContainer } from '../runtime/observed-pod.ts';

/** Annotation on the runtime's container: milliseconds the next instance waits after this one's end. */
export const nextBackoffAnnotation = 'io.kubelet-ts.container.nextBackoffMs';

const baseMs = 10_000;

export interface RestartBackoff {
  /** When the next instance may be made, epoch milliseconds. */
  readonly startAt: number;
  /** The whole delay, milliseconds; 0 when the first restart is free. */
  readonly delayMs: number;
  /** What the next instance will carry for the one after it. */
  readonly nextBackoffMs: number;
}

/** The back-off after `dead` has ended, given the newest dead instance of a container. */
export function restartBackoff(dead: ObservedContainer, maxMs: number): RestartBackoff {
  const finishedAt = dead.finishedAt ?? dead.startedAt ?? dead.createdAt;
  // Having run twice the longest delay proves health: the count starts anew and the restart is free.
  const proven = finishedAt - (dead.startedAt ?? finishedAt) > 2 * maxMs;
  const delayMs = proven ? 0 : Math.min(carriedBackoff(dead), maxMs);
  return { startAt: finishedAt + delayMs, delayMs, nextBackoffMs: nextDelay(delayMs, maxMs) };
}

/** Milliseconds the instance after this one has to wait, as the instance itself says. */
export function carriedBackoff(container: ObservedContainer): number {
  const text = container.annotations[nextBackoffAnnotation];
  const carried = text === undefined ? Number.NaN : Number(text);
  if (Number.isFinite(carried) && carried >= 0) return carried;
  return container.attempt === 0 ? 0 : baseMs * 2 ** Math.min(container.attempt - 1, 20);
}

function nextDelay(delayMs: number, maxMs: number): number {
  return Math.min(delayMs === 0 ? baseMs : delayMs * 2, maxMs);
}

/** The delay after `count` failures in a row of an action that is no container: short, then patient. */
export function retryDelay(count: number): number {
  return Math.min(1000 * 2 ** Math.min(count - 1, 10), 30_000);
}
