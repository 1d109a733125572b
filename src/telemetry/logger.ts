/** Structured values that go with a message; keys are lowerCamelCase, as in klog. */
export type LogFields = Record<string, unknown>;

/**
 * What every room logs through. Messages are constant texts that start with a capital; what varies goes
 * into fields (`{ pod: 'default/web', containerName: 'nginx' }`).
 */
export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, error: unknown, fields?: LogFields): void;
  /** True when lines of verbosity `level` are written; guards costly fields. */
  enabled(level: number): boolean;
  /** An info line at verbosity `level` (2 steady state, 4 debug, 6 and up trace). */
  v(level: number, message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to every line. */
  with(fields: LogFields): Logger;
}

/** Says nothing; for tests and for embedding. */
export const silentLogger: Logger = {
  info() {},
  warn() {},
  error() {},
  enabled: () => false,
  v() {},
  with: () => silentLogger,
};
