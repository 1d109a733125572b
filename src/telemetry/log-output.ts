/**
 * Where log lines go: a file descriptor, written to at once, so that what was said before a kill is on record.
 *
 * Guarantees: never throws and never waits. A reader that is slow (a full pipe) gets the lines a little later,
 * whole and in order. What it falls behind by is bounded; lines beyond that, and lines that a broken output
 * does not take, are counted and told once the output works again.
 */
import { writeSync } from 'node:fs';
import type { Clock } from '../concurrency/clock.ts';

export interface LogOutputOptions {
  readonly fd: number;
  readonly clock: Clock;
  /** Called when the output works again after lines were lost; may write. */
  readonly onLost: (lines: number) => void;
  /** Bytes that may wait for a slow reader. */
  readonly capacity?: number;
  /** Writes to the descriptor, answers how many bytes it took; Node's own by default. */
  readonly writeBytes?: (fd: number, bytes: Uint8Array) => number;
}

const retryMs = 20;

/** Writes lines to a file descriptor without ever holding up the agent. */
export class LogOutput {
  readonly #options: LogOutputOptions;
  readonly #capacity: number;
  readonly #writeBytes: (fd: number, bytes: Uint8Array) => number;
  /** What the reader has not taken yet; the first may be the rest of a line. */
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #retries = false;

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#capacity = options.capacity ?? 1024 * 1024;
    this.#writeBytes = options.writeBytes ?? ((fd, bytes) => writeSync(fd, bytes));
  }

  /** What keeps lines from being written; undefined while all of them are. */
  get problem(): string | undefined {
    return this.#lost === 0 ? undefined : `${this.#lost} lines of the log could not be written`;
  }

  /** Takes one line, line break included. */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waiting.length > 0) this.flush();
    if (this.#waiting.length === 0) {
      const rest = this.#put(bytes);
      if (rest === undefined) this.#lost++;
      else if (rest.length > 0) this.#keep(rest);
      else this.#tellLost();
    } else if (this.#waitingBytes + bytes.length <= this.#capacity) this.#keep(bytes);
    else this.#lost++;
  }

  /** Writes what waits, as far as the reader takes it now. */
  flush(): void {
    let works = true;
    while (this.#waiting.length > 0) {
      const next = this.#waiting[0]!;
      const rest = this.#put(next);
      this.#waitingBytes -= next.length - (rest?.length ?? 0);
      if (rest !== undefined && rest.length > 0) {
        this.#waiting[0] = rest;
        return this.#retryLater();
      }
      this.#waiting.shift();
      works = rest !== undefined;
      if (!works) this.#lost++;
    }
    if (works) this.#tellLost();
  }

  #keep(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#retryLater();
  }

  #retryLater(): void {
    if (this.#retries) return;
    this.#retries = true;
    this.#options.clock.after(retryMs, () => {
      this.#retries = false;
      this.flush();
    });
  }

  #tellLost(): void {
    const lines = this.#lost;
    if (lines === 0) return;
    this.#lost = 0;
    this.#options.onLost(lines);
  }

  /** Answers what the descriptor cannot take yet; undefined when it takes nothing at all any more. */
  #put(bytes: Uint8Array): Uint8Array | undefined {
    let rest = bytes;
    try {
      while (rest.length > 0) rest = rest.subarray(this.#writeBytes(this.#options.fd, rest));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EAGAIN' || code === 'EINTR') return rest;
      // Nobody reads, or the disk is full: nothing that could be done, and nobody who could be told.
      return undefined;
    }
    return rest;
  }
}
