/**
 * Where in a log file to begin: the last lines of it are found from its end, the lines since a time by
 * halving. What is read is a few blocks, whatever the size of the file; only compressed files have to be
 * gone through.
 */
import { emptyEntry, entryTime } from './log-entry.ts';
import { blockBytes, type LogFile } from './log-file.ts';
import { longestEntry } from './log-text.ts';
import { readEntry } from './read-entry.ts';

const lineBreak = 0x0a;
const brace = 0x7b;

/**
 * Counts lines from the end of a log, over several files from the newest to the oldest. A line counts by its
 * last part; parts at the very end that still go on count as a line.
 */
export class TailSearch {
  readonly #wanted: number;
  #counted = 0;

  constructor(wanted: number) {
    this.#wanted = wanted;
  }

  /** The offset the wanted lines begin at, or undefined when they begin in an older file. */
  async startIn(file: LogFile): Promise<number | undefined> {
    if (this.#wanted === 0) return file.isCompressed ? Number.POSITIVE_INFINITY : await file.size();
    return file.isCompressed ? await this.#forwards(file) : await this.#backwards(file);
  }

  /** True when the entry ends the first line that is not wanted. */
  #isBeyond(isPartial: boolean): boolean {
    if (isPartial && this.#counted > 0) return false;
    return ++this.#counted > this.#wanted;
  }

  async #backwards(file: LogFile): Promise<number | undefined> {
    const entry = emptyEntry();
    let size = blockBytes;
    let buffer = Buffer.allocUnsafeSlow(size);
    for (let end = await file.size(); end > 0; ) {
      const start = Math.max(0, end - size);
      const block = await file.read(buffer.subarray(0, end - start), start);
      // A block that does not begin the file may begin within a line, which is left to the next one.
      const firstLine = start === 0 ? 0 : block.indexOf(lineBreak) + 1;
      if (start > 0 && (firstLine === 0 || firstLine === block.length)) {
        if (size < 2 * longestEntry) buffer = Buffer.allocUnsafeSlow((size *= 2));
        // No entry is that long: what is here is no part of the log.
        else end = start;
        continue;
      }
      for (let lineEnd = block.length; lineEnd > firstLine; ) {
        const lineStart = lineEnd < 2 ? 0 : block.lastIndexOf(lineBreak, lineEnd - 2) + 1;
        if (readEntry(block, lineStart, lineEnd, entry) && this.#isBeyond(entry.isPartial))
          return start + lineEnd;
        lineEnd = lineStart;
      }
      end = start + firstLine;
    }
    return undefined;
  }

  async #forwards(file: LogFile): Promise<number | undefined> {
    // Ends of the newest lines, in a ring: what comes before the oldest of them is not wanted.
    const room = this.#wanted - this.#counted + 1;
    const ends: number[] = [];
    let lines = 0;
    let isOpen = false;
    await eachEntry(file, (isPartial, end) => {
      isOpen = isPartial;
      if (!isPartial) ends[lines++ % room] = end;
    });
    // Parts at the end go on in a newer file, where the line was counted, or nowhere.
    const openLine = isOpen && this.#counted === 0 ? 1 : 0;
    const index = lines - (room - openLine);
    if (index >= 0) return ends[index % room];
    this.#counted += lines + openLine;
    return undefined;
  }
}

async function eachEntry(file: LogFile, visit: (isPartial: boolean, end: number) => void): Promise<void> {
  const entry = emptyEntry();
  let rest: Buffer | undefined;
  let position = 0;
  for await (const fresh of file.blocks()) {
    const block: Buffer = rest ? Buffer.concat([rest, fresh]) : fresh;
    let at = 0;
    for (let end = block.indexOf(lineBreak); end >= 0; end = block.indexOf(lineBreak, at)) {
      if (readEntry(block, at, end + 1, entry)) visit(entry.isPartial, position + end + 1);
      at = end + 1;
    }
    position += at;
    rest = at < block.length ? Buffer.from(block.subarray(at)) : undefined;
    if (rest && rest.length > 2 * longestEntry) {
      position += rest.length;
      rest = undefined;
    }
  }
  if (rest && readEntry(rest, 0, rest.length, entry)) visit(entry.isPartial, position + rest.length);
}

/** The time of the first entry of a file, epoch milliseconds; undefined when it has none. */
export async function firstTime(file: LogFile): Promise<number | undefined> {
  const beginning = await file.beginning();
  if (beginning[0] !== brace || file.isCompressed) return timeOfLine(beginning);
  const block = await file.read(Buffer.allocUnsafeSlow(blockBytes), 0);
  const end = block.indexOf(lineBreak);
  return end < 0 ? undefined : timeOfLine(block.subarray(0, end));
}

/**
 * An offset from which on all entries since `sinceMs` follow, for files whose times do not go back; entries
 * before it may follow as well.
 */
export async function sinceStart(file: LogFile, sinceMs: number): Promise<number> {
  if (file.isCompressed) return 0;
  const buffer = Buffer.allocUnsafeSlow(blockBytes);
  let low = 0;
  let high = await file.size();
  while (high - low > blockBytes) {
    const middle = Math.floor((low + high) / 2);
    const found = await firstEntryFrom(file, buffer, middle);
    if (found === undefined || found.time >= sinceMs) high = middle;
    else low = found.start;
  }
  return low;
}

async function firstEntryFrom(
  file: LogFile,
  buffer: Buffer,
  offset: number,
): Promise<{ start: number; time: number } | undefined> {
  const block = await file.read(buffer, offset);
  for (let end = block.indexOf(lineBreak); end >= 0; ) {
    const start = end + 1;
    end = block.indexOf(lineBreak, start);
    // The time of a line that Docker wrote stands at its end.
    const isWhole = block[start] === brace && end >= 0;
    const time = timeOfLine(block.subarray(start, isWhole ? end : start + 64));
    if (time !== undefined) return { start: offset + start, time };
  }
  return undefined;
}

function timeOfLine(line: Buffer): number | undefined {
  if (line[0] === brace) {
    const entry = emptyEntry();
    return readEntry(line, 0, line.length, entry)
      ? entryTime(line, entry.timeStart, entry.timeEnd)
      : undefined;
  }
  const end = line.indexOf(0x20);
  return end < 0 ? undefined : entryTime(line, 0, end);
}
