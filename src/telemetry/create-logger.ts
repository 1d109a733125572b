/**
 * The log of the process: one line per call, written at once through the function it is given.
 *
 * Guarantees: a line is one `write`, ends with a line break and never throws, whatever the fields hold.
 * A line that is not enabled costs a comparison. Where a line comes from is the name of the room
 * (`with({ logger: 'sources' })`), not a stack trace: taking one costs ten times the line itself.
 */
import type { Clock } from '../concurrency/clock.ts';
import { jsonLine } from './json-logger.ts';
import { klogLine } from './klog-logger.ts';
import type { LogRecord, Severity } from './log-record.ts';
import type { LogFields, Logger } from './logger.ts';

/** How lines are written, and which. */
export interface LoggerOptions {
  /** `logging.format` of the configuration. */
  format: 'text' | 'json';
  /** Lines of a higher verbosity are dropped (`-v`). */
  verbosity: number;
  /** Takes one finished line, line break included. The severity lets errors go to another stream. */
  write: (line: string, severity: Severity) => void;
  clock: Clock;
  /**
   * Verbosity per source: the first pattern that matches the name of the room (`*` and `?` are wildcards)
   * decides instead of `verbosity`.
   * Differs from the kubelet: its patterns name Go source files; here they name rooms.
   */
  vmodule?: readonly { readonly filePattern: string; readonly verbosity: number }[];
  /** Name of lines that come from no room. */
  source?: string;
}

/** The logger that all others are made from. */
export interface RootLogger extends Logger {
  /** Changes the verbosity of this logger and of every logger made from it, at once. */
  setVerbosity(verbosity: number): void;
}

interface Shared {
  readonly options: LoggerOptions;
  readonly render: (record: LogRecord) => string;
  readonly patterns: readonly { readonly matches: RegExp; readonly verbosity: number }[];
  verbosity: number;
}

/** Makes the log of the process. */
export function createLogger(options: LoggerOptions): RootLogger {
  const shared: Shared = {
    options,
    render: options.format === 'json' ? jsonLine : klogLine,
    patterns: (options.vmodule ?? []).map(({ filePattern, verbosity }) => ({
      matches: wildcard(filePattern),
      verbosity,
    })),
    verbosity: options.verbosity,
  };
  return new LineLogger(shared, options.source ?? 'kubelet', []);
}

/** A line that carries no error and is always shown. */
const steady: { verbosity: number; error: unknown } = { verbosity: 0, error: undefined };

class LineLogger implements RootLogger {
  readonly #shared: Shared;
  readonly #source: string;
  readonly #bound: readonly LogFields[];
  /** Verbosity that a vmodule pattern gives this source. */
  readonly #own: number | undefined;

  constructor(shared: Shared, source: string, bound: readonly LogFields[]) {
    this.#shared = shared;
    this.#source = source;
    this.#bound = bound;
    this.#own = shared.patterns.find(({ matches }) => matches.test(source))?.verbosity;
  }

  setVerbosity(verbosity: number): void {
    this.#shared.verbosity = verbosity;
  }

  enabled(level: number): boolean {
    return level <= (this.#own ?? this.#shared.verbosity);
  }

  info(message: string, fields?: LogFields): void {
    this.#write('I', message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write('W', message, fields);
  }

  error(message: string, error: unknown, fields?: LogFields): void {
    this.#write('E', message, fields, { verbosity: 0, error });
  }

  v(level: number, message: string, fields?: LogFields): void {
    if (this.enabled(level)) this.#write('I', message, fields, { verbosity: level, error: undefined });
  }

  with(fields: LogFields): Logger {
    const { logger, ...rest } = fields;
    const source = typeof logger === 'string' ? logger : this.#source;
    const bound = Object.keys(rest).length === 0 ? this.#bound : [...this.#bound, rest];
    return new LineLogger(this.#shared, source, bound);
  }

  #write(severity: Severity, message: string, fields: LogFields | undefined, detail = steady): void {
    const { options, render } = this.#shared;
    const record: LogRecord = {
      severity,
      time: options.clock.now(),
      verbosity: detail.verbosity,
      source: this.#source,
      message,
      error: detail.error,
      fields: this.#bound.length === 0 ? [fields] : [...this.#bound, fields],
    };
    options.write(render(record), severity);
  }
}

function wildcard(pattern: string): RegExp {
  const body = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${body}$`);
}
