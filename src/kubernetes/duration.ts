/**
 * Durations as Go writes them (`1m30s`, `1.5h`, `300ms`), the notation of the kubelet's flags and
 * configuration. Counted in whole nanoseconds inside; the everyday unit outside is the millisecond.
 */

/** The text is no duration; `message` is the one Go gives. */
export class DurationError extends Error {
  override readonly name = 'DurationError';
}

const unitNanos: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  µs: 1000n, // U+00B5, micro sign
  μs: 1000n, // U+03BC, Greek mu
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const longest = 2n ** 63n - 1n;

/** Nanoseconds of a Go duration. Throws {@link DurationError}. */
export function parseDurationNanos(text: string): bigint {
  const invalid = () => new DurationError(`time: invalid duration ${JSON.stringify(text)}`);
  const negative = text.startsWith('-');
  let rest = negative || text.startsWith('+') ? text.slice(1) : text;
  if (rest === '0') return 0n;
  if (rest === '') throw invalid();
  let total = 0n;
  while (rest !== '') {
    const number = /^(\d*)(?:\.(\d*))?/.exec(rest);
    const [matched = '', whole = '', fraction = ''] = number ?? [];
    if (whole === '' && fraction === '') throw invalid();
    rest = rest.slice(matched.length);
    const unit = /^[^.\d]*/.exec(rest)?.[0] ?? '';
    if (unit === '') throw new DurationError(`time: missing unit in duration ${JSON.stringify(text)}`);
    const nanos = Object.hasOwn(unitNanos, unit) ? unitNanos[unit] : undefined;
    if (nanos === undefined) {
      throw new DurationError(
        `time: unknown unit ${JSON.stringify(unit)} in duration ${JSON.stringify(text)}`,
      );
    }
    rest = rest.slice(unit.length);
    if (whole.length > 30) throw invalid();
    // Digits beyond 18 places are far below a nanosecond of any unit.
    const places = fraction.slice(0, 18);
    total += BigInt(whole || '0') * nanos + (BigInt(places || '0') * nanos) / 10n ** BigInt(places.length);
    if (total > longest + (negative ? 1n : 0n)) throw invalid();
  }
  return negative ? -total : total;
}

/** Milliseconds of a Go duration, with a fraction where it is finer. Throws {@link DurationError}. */
export function parseDuration(text: string): number {
  const nanos = parseDurationNanos(text);
  return Number(nanos / 1_000_000n) + Number(nanos % 1_000_000n) / 1e6;
}

/** Nanoseconds as Go prints them: `0s`, `1.5s`, `300ms`, `1h0m0s`. */
export function formatDurationNanos(nanos: bigint): string {
  if (nanos === 0n) return '0s';
  const sign = nanos < 0n ? '-' : '';
  const length = nanos < 0n ? -nanos : nanos;
  if (length < 1000n) return `${sign}${length}ns`;
  if (length < 1_000_000n) return `${sign}${decimal(length, 3)}µs`;
  if (length < 1_000_000_000n) return `${sign}${decimal(length, 6)}ms`;
  const minutes = length / 60_000_000_000n;
  const seconds = `${decimal(length % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`;
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** Milliseconds, rounded to the nanosecond, as Go prints them. */
export function formatDuration(ms: number): string {
  const whole = Math.trunc(ms);
  return formatDurationNanos(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6)));
}

/** `value / 10^places` without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0');
  const fraction = digits.slice(-places).replace(/0+$/, '');
  return `${digits.slice(0, -places)}${fraction === '' ? '' : `.${fraction}`}`;
}
