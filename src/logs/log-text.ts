/**
 * Turns the bytes of log files, however they are cut, into the text people read: the parts of a line put
 * together, without times and tags unless times are asked for.
 *
 * A line of one stream never breaks into a line of the other as long as no more than {@link mostHeld} bytes
 * have to wait for that. Memory is bounded whatever is in the file: what is no log entry is left out, as is
 * an entry of more than {@link longestEntry}.
 */
import { unescaped } from './docker-log-entry.ts';
import { emptyEntry, entryTime, type LogStream, longestShownTime, writeTime } from './log-entry.ts';
import { readEntry } from './read-entry.ts';

export interface LogTextOptions {
  readonly timestamps?: boolean;
  /** Lines that begin before this time are left out; epoch milliseconds. */
  readonly sinceMs?: number;
  /** Only this stream; both when absent. */
  readonly stream?: LogStream;
  /** Most bytes of text; the last line may be cut. */
  readonly limitBytes?: number;
}

const lineBreak = 0x0a;
const lineEnd = Buffer.from('\n');
/** Runtimes split lines at 8 or 16 KiB. */
export const longestEntry = 1024 * 1024;
/** What of one stream may wait until a line of the other is whole. */
export const mostHeld = 256 * 1024;

export class LogText {
  readonly #options: LogTextOptions;
  readonly #entry = emptyEntry();
  /** The beginning of an entry whose end has not come yet. */
  #rest: Buffer | undefined;
  #skipping = false;
  /** The stream whose line is open in the text. */
  #open: LogStream | undefined;
  /** By stream: what comes next continues a line. */
  readonly #continues: Record<LogStream, boolean> = { 1: false, 2: false };
  /** By stream: the line that is under way is left out. */
  readonly #drops: Record<LogStream, boolean> = { 1: false, 2: false };
  #held: Buffer[] = [];
  #heldBytes = 0;
  #remaining: number;
  #text: Buffer | undefined;
  #length = 0;
  #hint = 0;

  constructor(options: LogTextOptions = {}) {
    this.#options = options;
    this.#remaining = options.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  /** True once `limitBytes` are out: nothing will come any more. */
  get isFull(): boolean {
    return this.#remaining === 0;
  }

  /** Takes the next bytes of the log; they may be overwritten afterwards. */
  push(block: Buffer): void {
    this.#hint = block.length;
    let at = 0;
    if (this.#rest || this.#skipping) {
      const end = block.indexOf(lineBreak) + 1;
      if (end === 0) return this.#keep(block);
      if (this.#rest) {
        const whole = Buffer.concat([this.#rest, block.subarray(0, end)]);
        this.#line(whole, 0, whole.length);
      }
      this.#rest = undefined;
      this.#skipping = false;
      at = end;
    }
    for (let end = block.indexOf(lineBreak, at); end >= 0; end = block.indexOf(lineBreak, at)) {
      this.#line(block, at, end + 1);
      at = end + 1;
    }
    if (at < block.length) this.#keep(block.subarray(at));
  }

  /** No more of this file is at hand: what waits for the end of a line waits no longer. */
  release(): void {
    while (this.#held.length > 0) {
      this.#open = undefined;
      this.#letGo();
    }
  }

  /** The file is at its end: an entry without a line break will get none. */
  endOfFile(): void {
    const rest = this.#rest;
    this.#rest = undefined;
    this.#skipping = false;
    if (rest) this.#line(rest, 0, rest.length);
  }

  /** The next container begins: what its predecessor left open stays as it is. */
  endOfContainer(): void {
    this.endOfFile();
    this.release();
    this.#open = undefined;
    this.#continues[1] = this.#continues[2] = false;
    this.#drops[1] = this.#drops[2] = false;
  }

  /** The text since the last call, undefined when there is none. */
  take(): Buffer | undefined {
    const text = this.#text?.subarray(0, this.#length);
    this.#text = undefined;
    this.#length = 0;
    return text && text.length > 0 ? text : undefined;
  }

  #keep(part: Buffer): void {
    if (this.#skipping) return;
    const length = (this.#rest?.length ?? 0) + part.length;
    if (length > longestEntry) {
      this.#rest = undefined;
      this.#skipping = true;
    } else this.#rest = this.#rest ? Buffer.concat([this.#rest, part]) : Buffer.from(part);
  }

  #line(block: Buffer, start: number, end: number): void {
    const entry = this.#entry;
    if (!readEntry(block, start, end, entry)) return;
    const { stream, isPartial } = entry;
    if (this.#options.stream !== undefined && this.#options.stream !== stream) return;
    if (this.#open !== undefined && this.#open !== stream) return this.#hold(block, start, end);
    if (!this.#continues[stream]) this.#drops[stream] = this.#isTooOld(block);
    if (!this.#drops[stream]) {
      const prefix = this.#options.timestamps === true && !this.#continues[stream];
      if (entry.isJson) this.#writeJson(block, prefix);
      else this.#write(block, prefix, isPartial ? entry.contentEnd : end);
      this.#open = isPartial ? stream : undefined;
    }
    this.#continues[stream] = isPartial;
    if (!isPartial && this.#held.length > 0) this.#letGo();
  }

  #isTooOld(block: Buffer): boolean {
    const { sinceMs } = this.#options;
    if (sinceMs === undefined) return false;
    const time = entryTime(block, this.#entry.timeStart, this.#entry.timeEnd);
    return time !== undefined && time < sinceMs;
  }

  #hold(block: Buffer, start: number, end: number): void {
    this.#held.push(Buffer.from(block.subarray(start, end)));
    this.#heldBytes += end - start;
    if (this.#heldBytes <= mostHeld) return;
    this.#open = undefined;
    this.#letGo();
  }

  /** Goes through what was held once more; of that, a part may have to wait again. */
  #letGo(): void {
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const line of held) this.#line(line, 0, line.length);
  }

  /** The content stands in the block in other words: it is put together first. */
  #writeJson(block: Buffer, withTime: boolean): void {
    const entry = this.#entry;
    const time = block.subarray(entry.timeStart, entry.timeEnd);
    const content = unescaped(block, entry);
    const line = Buffer.concat([time, content, ...(entry.isPartial ? [] : [lineEnd])]);
    entry.timeStart = 0;
    entry.timeEnd = entry.contentStart = time.length;
    this.#write(line, withTime, line.length);
  }

  #write(block: Buffer, withTime: boolean, end: number): void {
    if (this.#remaining === 0) return;
    const { contentStart } = this.#entry;
    const text = this.#room((withTime ? longestShownTime : 0) + end - contentStart);
    const before = this.#length;
    if (withTime) {
      this.#length += writeTime(block, this.#entry, text, this.#length);
      text[this.#length++] = 0x20;
    }
    block.copy(text, this.#length, contentStart, end);
    this.#length += end - contentStart;
    const written = this.#length - before;
    if (written > this.#remaining) this.#length = before + this.#remaining;
    this.#remaining = Math.max(0, this.#remaining - written);
  }

  #room(bytes: number): Buffer {
    const needed = this.#length + bytes;
    if (this.#text && needed <= this.#text.length) return this.#text;
    const size = this.#text ? Math.max(needed, this.#text.length * 2) : Math.max(needed, this.#hint);
    const text = Buffer.allocUnsafeSlow(size);
    this.#text?.copy(text, 0, 0, this.#length);
    this.#text = text;
    return text;
  }
}
