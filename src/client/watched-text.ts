/**
 * A small text file that others replace: read again when it has changed, looked at no more often than
 * `checkMs`. Once it has been read, a failure to read it again leaves the last good content in force.
 */
import { readFile, stat } from 'node:fs/promises';
import type { Clock } from '../concurrency/clock.ts';

/** More than any certificate chain or token; a wrong path must not fill the memory. */
const largestFile = 4 * 1024 * 1024;

export class WatchedText {
  readonly path: string;
  readonly #clock: Clock;
  readonly #checkMs: number;
  #text: string | undefined;
  #stamp = '';
  #checkedAt = 0;

  constructor(path: string, clock: Clock, checkMs: number) {
    this.path = path;
    this.#clock = clock;
    this.#checkMs = checkMs;
  }

  /** The content. Rejects with the file system's error as long as it has never been read. */
  async read(options: { force?: boolean } = {}): Promise<string> {
    const age = Math.abs(this.#clock.now() - this.#checkedAt);
    if (this.#text !== undefined && !options.force && age < this.#checkMs) return this.#text;
    try {
      const { dev, ino, mtimeMs, size } = await stat(this.path);
      if (size > largestFile) throw new Error(`${this.path} is larger than ${largestFile} bytes`);
      const stamp = `${dev}:${ino}:${mtimeMs}:${size}`;
      if (this.#text === undefined || stamp !== this.#stamp) {
        this.#text = await readFile(this.path, 'utf8');
        this.#stamp = stamp;
      }
    } catch (error) {
      if (this.#text === undefined) throw error;
    }
    this.#checkedAt = this.#clock.now();
    return this.#text;
  }
}
