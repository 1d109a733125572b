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
const optionNames = ['sinceTime', 'untilTime', 'tailLines', 'pattern', 'boot'] as const;
type OptionName = (typeof optionNames)[number];

/** Undefined when nothing is asked for, so that the directory is meant. */
export function readSystemLogQuery(parameters: URLSearchParams): SystemLogQuery | undefined {
  const asked = parameters.getAll('query');
  const given = new Map<OptionName, string>();
  for (const name of optionNames) {
    const text = parameters.get(name) ?? '';
    if (text !== '') given.set(name, text);
  }
  if (asked.length === 0 && given.size === 0) return undefined;

  const problems: string[] = [];
  const read = (name: OptionName, parse: (text: string) => number | undefined, form: string) => {
    const text = given.get(name);
    const value = text === undefined ? undefined : parse(text);
    if (text !== undefined && value === undefined) problems.push(`${name}=${shown(text)} is not ${form}`);
    return value;
  };
  const names = asked.filter((text) => text.trim() !== '');
  if (asked.length > names.length && names.length === 0) {
    problems.push('query= names nothing; give a service (query=kubelet) or a file (query=/messages)');
  }
  const since = read('sinceTime', epochSeconds, 'a time such as 2026-03-01T12:00:00Z');
  const until = read('untilTime', epochSeconds, 'a time such as 2026-03-01T12:00:00Z');
  const tailLines = read('tailLines', wholeNumber, 'a whole number');
  const boot = read('boot', wholeNumber, 'a whole number');
  if (problems.length > 0) return refused(400, problems);

  const isPath = (name: string) => /[/\\]/.test(name);
  const files = names.filter(isPath);
  const services = names.filter((name) => !isPath(name));
  const pattern = given.get('pattern');
  problems.push(...wrongTarget(files, services, [...given.keys()]), ...services.flatMap(wrongName));
  if (since !== undefined && until !== undefined && until < since) {
    problems.push('untilTime is before sinceTime');
  }
  if (tailLines !== undefined && (tailLines < 0 || tailLines > mostLines)) {
    problems.push(`tailLines=${tailLines}: from 0 to ${mostLines} lines can be asked for`);
  }
  if (boot !== undefined && boot > 0) problems.push(`boot=${boot}: 0 is this boot, -1 the one before it`);
  if (pattern !== undefined) problems.push(...wrongPattern(pattern));
  if (problems.length > 0) return refused(406, problems);

  const [path] = files;
  if (path !== undefined) return { kind: 'file', path };
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

/** Up to four services, or one file without options. */
function wrongTarget(
  files: readonly string[],
  services: readonly string[],
  options: readonly OptionName[],
): string[] {
  if (files.length === 0 && services.length === 0) {
    return [`${options.join(', ')} without a service; add query=NAME`];
  }
  if (services.length > mostServices) {
    return [`query names ${services.length} services; ask for ${mostServices} at a time`];
  }
  if (files.length === 0) return [];
  if (services.length > 0) return ['query names a file and a service; ask for one after the other'];
  if (files.length > 1) return [`query names ${files.length} files; ask for one after the other`];
  return options.length === 0 ? [] : [`a file is sent as it is; leave ${options.join(', ')} away`];
}

function wrongName(name: string): string[] {
  if (name.length > longestName) return [`query=${shown(name)}: a name has up to ${longestName} characters`];
  // Neither an option of journalctl nor a step out of a directory.
  if (/^[\w.:@][\w.:@-]*$/.test(name) && !/^\.+$/.test(name)) return [];
  return [`query=${shown(name)}: names of services are made of letters, digits and _ . : @ -`];
}

function wrongPattern(pattern: string): string[] {
  if (pattern.length > longestPattern) return [`pattern has more than ${longestPattern} characters`];
  if (pattern.includes('\0')) return ['pattern has a NUL in it'];
  try {
    // Switches such as `(?i)` at the beginning are known to journalctl, and not here.
    void new RegExp(pattern.replace(/^\(\?[a-zA-Z]+\)/, ''));
    return [];
  } catch (error) {
    return [`pattern: ${(error as Error).message}`];
  }
}

const shown = (text: string) => JSON.stringify(text.slice(0, longestName));

/** One line for each problem. */
function refused(status: 400 | 406, problems: readonly string[]): SystemLogQuery {
  return { kind: 'refused', status, text: `${problems.join('\n')}\n` };
}

/** Of an RFC 3339 time. */
function epochSeconds(text: string): number | undefined {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const milliseconds = isTime ? Date.parse(text) : Number.NaN;
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000);
}

function wholeNumber(text: string): number | undefined {
  return /^[+-]?\d{1,9}$/.test(text) ? Number(text) : undefined;
}
