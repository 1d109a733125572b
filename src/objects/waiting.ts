/** Waiting for work that others wait for as well: giving up leaves the work to them. */
import { type Clock, sleep } from '../concurrency/clock.ts';

/** The result of `work`; rejects with the signal's reason when that comes first. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Waits for `event`, `ms` at the most; rejects with the signal's reason when it is aborted meanwhile. */
export async function waitAtMost(
  event: Promise<void>,
  { ms, clock, signal }: { ms: number; clock: Clock; signal: AbortSignal },
): Promise<void> {
  signal.throwIfAborted();
  const done = new AbortController();
  const enough = AbortSignal.any([signal, done.signal]);
  const waited = sleep(clock, ms, enough).catch(() => {});
  await Promise.race([event, waited]);
  done.abort();
  signal.throwIfAborted();
}
