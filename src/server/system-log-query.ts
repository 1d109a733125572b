/**
 * What `/logs/?query=…` asks for (NodeLogQuery): the logs of up to four services, or one file below `/var/log`.
 * Read and judged here; what passes can be handed to `journalctl` as arguments without a second thought.
 */
export interface ServiceLogQuery {
  /** Names of systemd services, or of log files. */
  readonly services: readonly string[];
  /** Epoch seconds. */
  readonly since?: number;
  readonly until?: number;
  readonly tailLines?: number;
  /** A regular expression, as `journalctl --grep` takes it. */
  readonly pattern?: string;
  /** 0: this boot; -1: the one before. */
  readonly boot?: number;
}

export type SystemLogQuery =
  | { readonly kind: 'file'; readonly path: string }
  | ({ readonly kind: 'services' } & ServiceLogQuery)
  /** 400: cannot be read; 406: can be read, and will not do. */
  | { readonly kind: 'refused'; readonly status: 400 | 406; readonly text: string };

const mostServices = 4;
const longestName = 256;
const mostLines = 100_000;
const longestPattern = 1024;
const options = ['sinceTime', 'untilTime', 'tailLines', 'pattern', 'boot'] as const;

/** Undefined when nothing is asked for, so that the directory is meant. */
export function readSystemLogQuery(parameters: URLSearchParams): SystemLogQuery | undefined {
  const given = options.filter((name) => (parameters.get(name) ?? '') !== '');
  const isAsked = parameters.has('query');
  if (!isAsked && given.length === 0) return undefined;
  const queries = parameters.getAll('query').filter((text) => text.trim() !== '');
  const unreadable: string[] = [];
  if (isAsked && queries.length === 0) unreadable.push('query: Invalid value: query cannot be empty');
  const text = (name: (typeof options)[number]) => (given.includes(name) ? parameters.get(name)! : undefined);
  const since = time(text('sinceTime'));
  const until = time(text('untilTime'));
  const tailLines = wholeNumber(text('tailLines'));
  const boot = wholeNumber(text('boot'));
  for (const [name, value] of Object.entries({ sinceTime: since, untilTime: until })) {
    if (Number.isNaN(value))
      unreadable.push(`${name}: Invalid value: ${quoted(parameters, name)}: invalid time format`);
  }
  for (const [name, value] of Object.entries({ tailLines, boot })) {
    if (Number.isNaN(value))
      unreadable.push(`${name}: Invalid value: ${quoted(parameters, name)}: not a number`);
  }
  if (unreadable.length > 0) return refused(400, unreadable);

  const pattern = text('pattern');
  const files = queries.filter((name) => /[/\\]/.test(name));
  const services = queries.filter((name) => !files.includes(name));
  const wrong = [
    ...services.flatMap(wrongName),
    ...wrongChoice(files, services, given.length > 0),
    ...(since !== undefined && until !== undefined && since > until
      ? ['untilTime: Invalid value: must be after `sinceTime`']
      : []),
    ...(boot !== undefined && boot > 0 ? [`boot: Invalid value: ${boot}: must be less than 1`] : []),
    ...(tailLines !== undefined && (tailLines < 0 || tailLines > mostLines)
      ? [`tailLines: Invalid value: ${tailLines}: must be between 0 and ${mostLines}, inclusive`]
      : []),
    ...(pattern === undefined ? [] : wrongPattern(pattern)),
  ];
  if (wrong.length > 0) return refused(406, wrong);
  if (files.length > 0) return { kind: 'file', path: files[0]! };
  return {
    kind: 'services',
    services,
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(tailLines !== undefined && { tailLines }),
    ...(pattern !== undefined && { pattern }),
    ...(boot !== undefined && { boot }),
  };
}

function wrongName(name: string): string[] {
  const shown = JSON.stringify(name.slice(0, longestName));
  if (name.length > longestName)
    return [`query: Invalid value: ${shown}: longer than ${longestName} characters`];
  // Neither an option of journalctl nor a step out of a directory.
  if (!/^[\w.:@][\w.:@-]*$/.test(name) || /^\.+$/.test(name)) {
    return [`query: Invalid value: ${shown}: input contains unsupported characters`];
  }
  return [];
}

function wrongChoice(files: readonly string[], services: readonly string[], hasOptions: boolean): string[] {
  if (files.length === 0 && services.length === 0)
    return ['query: Required value: cannot be empty with options'];
  if (services.length > mostServices) {
    return [`query: Too many: ${services.length}: must have at most ${mostServices} items`];
  }
  if (files.length === 0) return [];
  if (services.length > 0) return ['query: Invalid value: cannot specify a file and service'];
  if (files.length > 1) return ['query: Invalid value: cannot specify more than one file'];
  return hasOptions ? ['query: Invalid value: cannot specify file with options'] : [];
}

function wrongPattern(pattern: string): string[] {
  const wrong = (why: string) => [`pattern: Invalid value: ${why}`];
  if (pattern.length > longestPattern) return wrong(`longer than ${longestPattern} characters`);
  if (pattern.includes('\0')) return wrong('contains a NUL');
  try {
    // Switches such as `(?i)` at the beginning are known to journalctl, and not here.
    void new RegExp(pattern.replace(/^\(\?[a-zA-Z]+\)/, ''));
    return [];
  } catch (error) {
    return wrong((error as Error).message);
  }
}

const quoted = (parameters: URLSearchParams, name: string) =>
  JSON.stringify((parameters.get(name) ?? '').slice(0, longestName));

function refused(status: 400 | 406, reasons: readonly string[]): SystemLogQuery {
  const text = reasons.length === 1 ? reasons[0]! : `[${reasons.join(', ')}]`;
  return { kind: 'refused', status, text: `${text}\n` };
}

/** Epoch seconds; NaN for what is no RFC 3339 time. */
function time(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text);
  return isTime ? Math.floor(Date.parse(text) / 1000) : Number.NaN;
}

function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^[+-]?\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}
