/**
 * Cuts a watch's bytes into its lines, each one JSON document, at most `limit` bytes long. Bytes are joined
 * before they are decoded, so characters never break between chunks.
 */
export class WatchLineTooLongError extends Error {
  override readonly name = 'WatchLineTooLongError';
}

const lineFeed = 0x0a;

export class WatchLines {
  readonly #limit: number;
  readonly #onLine: (line: string) => void;
  #pieces: Buffer[] = [];
  #size = 0;

  constructor(limit: number, onLine: (line: string) => void) {
    this.#limit = limit;
    this.#onLine = onLine;
  }

  /** Throws {@link WatchLineTooLongError}; what `onLine` throws passes through. */
  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      const piece = chunk.subarray(start, end);
      start = end + 1;
      this.#grow(piece.length);
      const line = this.#pieces.length === 0 ? piece : Buffer.concat([...this.#pieces, piece]);
      this.#pieces = [];
      this.#size = 0;
      if (line.length > 0) this.#onLine(line.toString('utf8'));
    }
    if (start === chunk.length) return;
    this.#grow(chunk.length - start);
    this.#pieces.push(chunk.subarray(start));
  }

  #grow(bytes: number): void {
    this.#size += bytes;
    if (this.#size > this.#limit)
      throw new WatchLineTooLongError(`a watch event is longer than ${this.#limit} bytes`);
  }
}
