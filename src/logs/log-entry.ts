/**
 * One line of a log file, as CRI has it: `<RFC 3339 time> <stdout|stderr> <tags> <content>`. The first tag is
 * `F` for a whole line or the last part of one, `P` for a part that goes on. Entries are read in place:
 * positions in the block, no string and no copy. Lines that Docker wrote are in `docker-log-entry.ts`.
 */

export const streams = { stdout: 1, stderr: 2 } as const;
export type LogStream = (typeof streams)[keyof typeof streams];

/** Positions in the block an entry was read from; one object serves for many entries. */
export interface LogEntry {
  timeStart: number;
  timeEnd: number;
  stream: LogStream;
  /** The line goes on in the next entry of the stream. */
  isPartial: boolean;
  contentStart: number;
  /** After the content, in front of the line break. */
  contentEnd: number;
  /** The content is the inside of a JSON string, to be read by `unescaped`. */
  isJson: boolean;
}

export const emptyEntry = (): LogEntry => ({
  timeStart: 0,
  timeEnd: 0,
  stream: streams.stdout,
  isPartial: false,
  contentStart: 0,
  contentEnd: 0,
  isJson: false,
});

const space = 0x20;
const lineBreak = 0x0a;
/** A time with nanoseconds and zone has 35 bytes. */
const longestTime = 64;

/** Reads the entry in `[start, end)`, with or without its line break, into `entry`; false when it is none. */
export function readCriEntry(block: Uint8Array, start: number, end: number, entry: LogEntry): boolean {
  const contentEnd = end > start && block[end - 1] === lineBreak ? end - 1 : end;
  let at = start;
  const timeLimit = Math.min(contentEnd, start + longestTime);
  while (at < timeLimit && block[at] !== space) at++;
  if (at === timeLimit || at === start) return false;
  const stream = streamAt(block, at + 1);
  if (stream === undefined || at + 7 >= contentEnd || block[at + 7] !== space) return false;
  const tags = at + 8;
  const first = block[tags];
  if (tags >= contentEnd || (first !== 0x46 && first !== 0x50)) return false;
  let tagsEnd = tags + 1;
  // Further tags follow after a colon and mean nothing here.
  while (tagsEnd < contentEnd && block[tagsEnd] !== space) tagsEnd++;
  if (tagsEnd > tags + 1 && block[tags + 1] !== 0x3a) return false;
  entry.timeStart = start;
  entry.timeEnd = at;
  entry.stream = stream;
  entry.isPartial = first === 0x50;
  entry.contentStart = Math.min(tagsEnd + 1, contentEnd);
  entry.contentEnd = contentEnd;
  entry.isJson = false;
  return true;
}

/** `stdout` or `stderr` at this place. */
function streamAt(block: Uint8Array, at: number): LogStream | undefined {
  if (block[at] !== 0x73 || block[at + 1] !== 0x74 || block[at + 2] !== 0x64) return undefined;
  if (block[at + 3] === 0x6f && block[at + 4] === 0x75 && block[at + 5] === 0x74) return streams.stdout;
  if (block[at + 3] === 0x65 && block[at + 4] === 0x72 && block[at + 5] === 0x72) return streams.stderr;
  return undefined;
}

/**
 * The time of an entry in epoch milliseconds, parts of a millisecond included; undefined when it is no
 * RFC 3339 time.
 */
export function entryTime(block: Uint8Array, start: number, end: number): number | undefined {
  const number = (at: number, digits: number): number => {
    let value = 0;
    for (let index = 0; index < digits; index++) {
      const digit = (block[start + at + index] ?? 0) - 0x30;
      if (digit < 0 || digit > 9) return Number.NaN;
      value = value * 10 + digit;
    }
    return value;
  };
  if (end - start < 20) return undefined;
  const whole = Date.UTC(
    number(0, 4),
    number(5, 2) - 1,
    number(8, 2),
    number(11, 2),
    number(14, 2),
    number(17, 2),
  );
  let at = 19;
  let fraction = 0;
  if (block[start + at] === 0x2e) {
    at++;
    for (let weight = 100; isDigit(block[start + at]) && start + at < end; weight /= 10, at++) {
      fraction += (block[start + at]! - 0x30) * weight;
    }
  }
  const zone = block[start + at];
  let offset = 0;
  if (zone === 0x2b || zone === 0x2d) {
    if (end - start !== at + 6) return undefined;
    offset = (number(at + 1, 2) * 60 + number(at + 4, 2)) * (zone === 0x2b ? 60_000 : -60_000);
  } else if (zone !== 0x5a || end - start !== at + 1) return undefined;
  const time = whole + fraction - offset;
  return Number.isNaN(time) ? undefined : time;
}

/**
 * Writes an entry's time as Kubernetes shows it, with nine digits of a second whatever the runtime wrote;
 * answers how many bytes. `target` has room for {@link longestShownTime}.
 */
export function writeTime(block: Uint8Array, entry: LogEntry, target: Uint8Array, at: number): number {
  const { timeStart, timeEnd } = entry;
  let from = timeStart;
  let to = at;
  const secondsEnd = Math.min(timeStart + 19, timeEnd);
  while (from < secondsEnd) target[to++] = block[from++]!;
  target[to++] = 0x2e;
  if (block[from] === 0x2e) from++;
  let digits = 0;
  for (; isDigit(block[from]) && from < timeEnd; from++, digits++)
    if (digits < 9) target[to++] = block[from]!;
  for (; digits < 9; digits++) target[to++] = 0x30;
  while (from < timeEnd) target[to++] = block[from++]!;
  return to - at;
}

export const longestShownTime = longestTime + 10;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}
