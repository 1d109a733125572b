/**
 * As much of SPDY/3.1 as a client of a runtime's streaming server needs: it opens streams, sends data on them
 * and hears data and ends. Runtimes keep no windows, the connection's own back-pressure is what there is; what
 * they send of headers says nothing that is of use here and is passed over.
 */

export const FrameType = { synStream: 1, synReply: 2, reset: 3, settings: 4, ping: 6, goAway: 7 } as const;

export interface SpdyListener {
  /** A piece of a stream's data. */
  readonly data: (stream: number, piece: Buffer) => void;
  /** The runtime sends no more on the stream. */
  readonly end: (stream: number) => void;
  /** The frame that answers a ping, to be sent as it is. */
  readonly pong: (frame: Buffer) => void;
  /** The runtime takes its leave. */
  readonly goAway: () => void;
}

/** What comes is not SPDY/3.1. */
export class SpdyProtocolError extends Error {
  override readonly name = 'SpdyProtocolError';
}

const headBytes = 8;
const fin = 0x01;
const noBytes = Buffer.alloc(0);
/** Frames whose content is looked at; none of them is longer than this. */
const longestControl = 8;

/** Reads what a runtime sends. */
export class SpdyReader {
  readonly #listener: SpdyListener;
  #rest: Buffer = noBytes;
  #frame: { readonly head: Buffer; readonly length: number; seen: number; content: Buffer } | undefined;

  constructor(listener: SpdyListener) {
    this.#listener = listener;
  }

  /** Throws {@link SpdyProtocolError}. */
  read(chunk: Buffer): void {
    let bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    this.#rest = noBytes;
    for (;;) {
      if (!this.#frame) {
        if (bytes.length < headBytes) break;
        const head = Buffer.from(bytes.subarray(0, headBytes));
        if (isControl(head) && (head.readUInt16BE(0) & 0x7fff) !== 3) {
          throw new SpdyProtocolError("the runtime's streaming server does not speak SPDY/3.1");
        }
        this.#frame = { head, length: head.readUIntBE(5, 3), seen: 0, content: noBytes };
        bytes = bytes.subarray(headBytes);
      }
      const frame = this.#frame;
      const piece = bytes.subarray(0, frame.length - frame.seen);
      bytes = bytes.subarray(piece.length);
      frame.seen += piece.length;
      if (!isControl(frame.head)) {
        if (piece.length > 0) this.#listener.data(frame.head.readUInt32BE(0), piece);
      } else if (frame.content.length < longestControl) {
        frame.content = Buffer.concat([frame.content, piece.subarray(0, longestControl)]);
      }
      if (frame.seen < frame.length) return;
      this.#frame = undefined;
      this.#ended(frame.head, frame.content);
    }
    this.#rest = Buffer.from(bytes);
  }

  #ended(head: Buffer, content: Buffer): void {
    const hasFin = (head[4]! & fin) !== 0;
    if (!isControl(head)) {
      if (hasFin) this.#listener.end(head.readUInt32BE(0));
      return;
    }
    const type = head.readUInt16BE(2);
    if (type === FrameType.goAway) return this.#listener.goAway();
    if (content.length < 4) return;
    const id = content.readUInt32BE(0);
    // Even numbers are the runtime's own pings; we send none.
    if (type === FrameType.ping && id % 2 === 0) {
      this.#listener.pong(controlFrame(FrameType.ping, 0, content.subarray(0, 4)));
    }
    if (type === FrameType.reset || (type === FrameType.synReply && hasFin))
      this.#listener.end(id & 0x7fffffff);
  }
}

const isControl = (head: Buffer): boolean => (head[0]! & 0x80) !== 0;

function controlFrame(type: number, flags: number, content: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt16BE(0x8003, 0);
  head.writeUInt16BE(type, 2);
  head[4] = flags;
  head.writeUIntBE(content.length, 5, 3);
  return Buffer.concat([head, content]);
}

export function dataFrame(stream: number, piece: Buffer, { last = false } = {}): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(stream, 0);
  head[4] = last ? fin : 0;
  head.writeUIntBE(piece.length, 5, 3);
  return Buffer.concat([head, piece]);
}

/**
 * The frames that open streams, one for each set of headers, with the numbers 1, 3, 5 … Header blocks of a
 * connection are one zlib stream which begins by naming SPDY's dictionary; stored blocks are as good as
 * compressed ones and need neither. An empty block after each has the reader hand out what it has read.
 */
export function openingFrames(streams: readonly Readonly<Record<string, string>>[]): Buffer {
  const zlibHead = Buffer.from([0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2]);
  const flush = Buffer.from([0, 0, 0, 0xff, 0xff]);
  const frames = streams.map((headers, index) => {
    const block = headerBlock(headers);
    const stored = Buffer.alloc(5);
    stored.writeUInt16LE(block.length, 1);
    stored.writeUInt16LE(~block.length & 0xffff, 3);
    const start = Buffer.alloc(10);
    start.writeUInt32BE(2 * index + 1, 0);
    const content = [start, ...(index === 0 ? [zlibHead] : []), stored, block, flush];
    return controlFrame(FrameType.synStream, 0, Buffer.concat(content));
  });
  return Buffer.concat(frames);
}

function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(headers);
  const counted = (text: string): Buffer[] => {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  };
  const count = Buffer.alloc(4);
  count.writeUInt32BE(entries.length);
  return Buffer.concat([count, ...entries.flatMap(([name, value]) => [...counted(name), ...counted(value)])]);
}
