/** One line of the log before it has a format. */
import type { LogFields } from './logger.ts';

/** I info, W warning, E error; the first letter of a klog line. */
export type Severity = 'I' | 'W' | 'E';

/** Everything a format needs to write one line. */
export interface LogRecord {
  readonly severity: Severity;
  /** Epoch milliseconds. */
  readonly time: number;
  readonly verbosity: number;
  /** Room the line comes from. */
  readonly source: string;
  readonly message: string;
  /** Present on error lines only; may itself be undefined there. */
  readonly error: unknown;
  /** Fields of every `with`, outermost first, then those of the call. */
  readonly fields: readonly (LogFields | undefined)[];
}
