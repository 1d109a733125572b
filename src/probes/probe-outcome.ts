/** How one run of a probe ends. Handlers return this; they never throw for what the container does. */
export type ProbeOutcome =
  /** `output` is for the message, at most 10 KiB. A warning counts as success. */
  | { readonly result: 'success' | 'warning' | 'failure'; readonly output: string }
  /** The probe could not be made; nothing is known of the container. */
  | { readonly result: 'unknown'; readonly error: string };

/** Bytes of output and response bodies that are kept. */
export const outputLimit = 10 * 1024;

/** The probe has succeeded. */
export const success = (output = ''): ProbeOutcome => ({ result: 'success', output });
/** The probe has failed. */
export const failure = (output: string): ProbeOutcome => ({ result: 'failure', output });
/** The probe itself could not be made; it counts for nothing. */
export const unknown = (error: string): ProbeOutcome => ({ result: 'unknown', error });

/** The reason a probe's signal is aborted with when its time is up. */
export class ProbeTimeoutError extends Error {
  override readonly name = 'ProbeTimeoutError';
  readonly timeoutMs: number;

  constructor(timeoutMs: number) {
    super(`the probe took longer than ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}

/** Whether `signal` was aborted because the time is up, not because the container is gone. */
export function isTimeUp(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof ProbeTimeoutError;
}
