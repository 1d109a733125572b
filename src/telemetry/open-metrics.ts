/**
 * The OpenMetrics form of an exposition, for scrapers that prefer it. Pure.
 *
 * No sample changes its name: a counter whose name does not end in `_total`, which OpenMetrics does not
 * know, is told as of unknown type, as client libraries of Go do.
 */

export const openMetricsContentType = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** Turns text format 0.0.4 into OpenMetrics 1.0.0. */
export function toOpenMetrics(text: string): string {
  const lines = text.split('\n');
  const types = new Map<string, string>();
  for (const line of lines) {
    const found = /^# TYPE (\S+) (\S+)/.exec(line);
    if (found) types.set(found[1]!, found[2]!);
  }
  let written = '';
  for (const line of lines) {
    if (line === '') continue;
    written += line.startsWith('# ') ? declaration(line, types) : sample(line);
  }
  return `${written}# EOF\n`;
}

/** Whether an `Accept` header puts OpenMetrics before the text format. */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  let open = 0;
  let plain = 0;
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((each) => each.trim().toLowerCase());
    const weight = Number(parameters.find((each) => each.startsWith('q='))?.slice(2) ?? 1);
    if (type === 'application/openmetrics-text') open = Math.max(open, weight);
    else if (type === 'text/plain' || type === 'text/*' || type === '*/*') plain = Math.max(plain, weight);
  }
  return open > 0 && open >= plain;
}

function declaration(line: string, types: ReadonlyMap<string, string>): string {
  const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
  if (keyword === undefined) return '';
  const isCounter = types.get(name) === 'counter';
  const family = isCounter && name.endsWith('_total') ? name.slice(0, -'_total'.length) : name;
  if (keyword === 'HELP') return `# HELP ${family} ${rest.replaceAll('"', '\\"')}\n`;
  const type = rest === 'untyped' || (isCounter && family === name) ? 'unknown' : rest;
  return `# TYPE ${family} ${type}\n`;
}

/** Time stamps are seconds here, not milliseconds. */
function sample(line: string): string {
  const end = line.lastIndexOf('}');
  const found = / (\S+) (-?\d+)$/.exec(end < 0 ? line : line.slice(end));
  if (!found) return `${line}\n`;
  return `${line.slice(0, -found[2]!.length)}${Number(found[2]) / 1000}\n`;
}
