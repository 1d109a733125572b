/**
 * One direction of a stream that is translated: reads what one side sends, gives what the other is to get, no
 * faster than that is taken. What is sent after its end is dropped, whoever sends it.
 */
import { Transform, type TransformCallback } from 'node:stream';

export interface DirectionOptions {
  /** Takes what came, which it may keep and change; answers by `send`. What it throws ends the stream. */
  readonly read: (chunk: Buffer) => void;
  /** The side has ended: the last chance to send something. */
  readonly end?: () => void;
}

export class StreamDirection extends Transform {
  readonly #options: DirectionOptions;
  #isOver = false;

  constructor(options: DirectionOptions) {
    super();
    this.#options = options;
  }

  send(bytes: Buffer): void {
    if (!this.#isOver) this.push(bytes);
  }

  /** Nothing more is sent; what comes is passed over. */
  finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.push(null);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      if (!this.#isOver) this.#options.read(chunk);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  override _flush(done: TransformCallback): void {
    if (!this.#isOver) this.#options.end?.();
    this.finish();
    done();
  }
}
