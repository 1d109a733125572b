/**
 * How long a crashed container waits for its next start.
 *
 * The delay is not kept in memory but on the container itself, as an annotation that says how long the
 * instance after it has to wait. So a restarted agent goes on where it was, neither forgiving nor
 * punishing anybody. Instances made by another kubelet carry no such annotation; their restart count is
 * the next best witness.
 */
import type { ObservedContainer } from '../runtime/observed-pod.ts';
import type { NodeRules } from './pod-view.ts';

/** Annotation on the runtime's container: milliseconds the next instance waits after this one's end. */
export const nextBackoffAnnotation = 'io.kubelet-ts.container.nextBackoffMs';

/** The first delay, milliseconds, unless the node has another. */
const usualInitialMs = 10_000;

/** What of the node's rules the back-off depends on. */
export type RestartBackoffRules = Pick<NodeRules, 'initialRestartBackoffMs' | 'maxRestartBackoffMs'>;

/** When a container may start again. */
export interface RestartBackoff {
  /** When the next instance may be made, epoch milliseconds. */
  readonly startAt: number;
  /** The whole delay, milliseconds; 0 when the first restart is free. */
  readonly delayMs: number;
  /** What the next instance will carry for the one after it. */
  readonly nextBackoffMs: number;
}

/** The back-off after `dead` has ended, given the newest dead instance of a container. */
export function restartBackoff(dead: ObservedContainer, rules: RestartBackoffRules): RestartBackoff {
  const { initialRestartBackoffMs: initialMs = usualInitialMs, maxRestartBackoffMs: maxMs } = rules;
  const finishedAt = dead.finishedAt ?? dead.startedAt ?? dead.createdAt;
  // Having run twice the longest delay proves health: the count starts anew and the restart is free.
  const proven = finishedAt - (dead.startedAt ?? finishedAt) > 2 * maxMs;
  const delayMs = proven ? 0 : Math.min(carriedBackoff(dead, initialMs), maxMs);
  const nextBackoffMs = Math.min(delayMs === 0 ? initialMs : delayMs * 2, maxMs);
  return { startAt: finishedAt + delayMs, delayMs, nextBackoffMs };
}

/** Differences that clocks and their rounding make between runtime and agent. */
const clockSlackMs = 1000;

/**
 * Whether the wait of `delayMs` that ends at `startAt` is still on at `now`. One that seems to begin in the
 * future was noted by a clock that has been set back since, and must not last until that time comes again.
 */
export function isWaiting(
  { startAt, delayMs }: Pick<RestartBackoff, 'startAt' | 'delayMs'>,
  now: number,
): boolean {
  return now < startAt && now >= startAt - delayMs - clockSlackMs;
}

/** Milliseconds the instance after this one has to wait, as the instance itself says. */
export function carriedBackoff(container: ObservedContainer, initialMs = usualInitialMs): number {
  const text = container.annotations[nextBackoffAnnotation];
  const carried = text === undefined ? Number.NaN : Number(text);
  if (Number.isFinite(carried) && carried >= 0) return carried;
  return container.attempt === 0 ? 0 : initialMs * 2 ** Math.min(container.attempt - 1, 20);
}

/** The delay after `count` failures in a row of an action that is no container: short, then patient. */
export function retryDelay(count: number): number {
  return Math.min(1000 * 2 ** Math.min(count - 1, 10), 30_000);
}
