/**
 * The frames of a WebSocket (RFC 6455) as a server reads and writes them. Messages are handed on piece by piece
 * as they arrive, so that no size of message costs memory; what breaks the protocol ends the connection with the
 * code that the RFC has for it.
 */
import { createHash } from 'node:crypto';

export const Opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Why a WebSocket is closed. */
export const CloseCode = { normal: 1000, protocolError: 1002 } as const;

/** The client does not keep to the protocol. */
export class WebSocketProtocolError extends Error {
  override readonly name = 'WebSocketProtocolError';
}

export interface FrameListener {
  /** A piece of a message; `starts` with its first one, which may be empty. */
  readonly data: (piece: Buffer, starts: boolean) => void;
  readonly ping: (payload: Buffer) => void;
  /** The client takes its leave: nothing more is told. */
  readonly close: () => void;
}

interface Frame {
  readonly opcode: number;
  readonly mask: Buffer;
  readonly length: number;
  seen: number;
}

const longestControl = 125;
const noBytes = Buffer.alloc(0);

/** Reads what a client sends. */
export class FrameReader {
  readonly #listener: FrameListener;
  /** The beginning of a frame's head, at most 13 bytes. */
  #rest: Buffer = noBytes;
  #frame: Frame | undefined;
  #control: Buffer[] = [];
  #insideMessage = false;
  #isClosed = false;

  constructor(listener: FrameListener) {
    this.#listener = listener;
  }

  /** Takes over `chunk`, which is changed. Throws {@link WebSocketProtocolError}. */
  read(chunk: Buffer): void {
    let bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    this.#rest = noBytes;
    while (!this.#isClosed) {
      if (!this.#frame) {
        const head = this.#head(bytes);
        if (!head) break;
        bytes = bytes.subarray(head);
      }
      const frame = this.#frame!;
      const piece = bytes.subarray(0, frame.length - frame.seen);
      bytes = bytes.subarray(piece.length);
      this.#take(frame, piece);
      if (frame.seen < frame.length) return;
      this.#frame = undefined;
    }
    if (!this.#isClosed) this.#rest = Buffer.from(bytes);
  }

  /** Opens the next frame and answers the length of its head; undefined while that is not whole. */
  #head(bytes: Buffer): number | undefined {
    if (bytes.length < 2) return undefined;
    const [first = 0, second = 0] = bytes;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const end = 2 + lengthBytes + 4;
    const [isFinal, opcode] = [(first & 0x80) !== 0, first & 0x0f];
    if ((first & 0x70) !== 0) throw new WebSocketProtocolError('a reserved bit is set');
    if ((second & 0x80) === 0) throw new WebSocketProtocolError('a frame is not masked');
    if (opcode >= Opcode.close && (!isFinal || short > longestControl)) {
      throw new WebSocketProtocolError('a control frame is in parts or too long');
    }
    if (bytes.length < end) return undefined;
    const length =
      lengthBytes === 2
        ? bytes.readUInt16BE(2)
        : lengthBytes === 8
          ? Number(bytes.readBigUInt64BE(2))
          : short;
    if (!Number.isSafeInteger(length)) throw new WebSocketProtocolError('a frame is too long');
    this.#frame = { opcode, mask: Buffer.from(bytes.subarray(end - 4, end)), length, seen: 0 };
    this.#order(opcode, isFinal);
    return end;
  }

  /** Holds the order of a message's frames. */
  #order(opcode: number, isFinal: boolean): void {
    if (opcode >= Opcode.close) {
      if (opcode > Opcode.pong) throw new WebSocketProtocolError(`opcode ${opcode} is unknown`);
      return;
    }
    if (opcode > Opcode.binary) throw new WebSocketProtocolError(`opcode ${opcode} is unknown`);
    if ((opcode === Opcode.continuation) !== this.#insideMessage) {
      throw new WebSocketProtocolError('the frames of a message are out of order');
    }
    this.#insideMessage = !isFinal;
  }

  #take(frame: Frame, piece: Buffer): void {
    const starts = frame.seen === 0;
    unmask(piece, frame.mask, frame.seen);
    frame.seen += piece.length;
    if (frame.opcode < Opcode.close) {
      if (piece.length > 0 || frame.length === 0) {
        this.#listener.data(piece, starts && frame.opcode !== Opcode.continuation);
      }
      return;
    }
    this.#control.push(Buffer.from(piece));
    if (frame.seen < frame.length) return;
    const payload = Buffer.concat(this.#control);
    this.#control = [];
    if (frame.opcode === Opcode.ping) this.#listener.ping(payload);
    if (frame.opcode !== Opcode.close) return;
    this.#isClosed = true;
    this.#listener.close();
  }
}

/** In place, four bytes at a time where they lie so; `offset` is how far into the frame `bytes` begins. */
function unmask(bytes: Buffer, mask: Buffer, offset: number): void {
  const { buffer, byteOffset, length } = bytes;
  const begin = Math.min(length, -byteOffset & 3);
  const count = (length - begin) >> 2;
  for (let index = 0; index < begin; index++) bytes[index]! ^= mask[(index + offset) & 3]!;
  if (count > 0) {
    const words = new Uint32Array(buffer, byteOffset + begin, count);
    const turned = Uint8Array.from([0, 1, 2, 3], (index) => mask[(index + begin + offset) & 3]!);
    const key = new Uint32Array(turned.buffer)[0]!;
    for (let index = 0; index < count; index++) words[index]! ^= key;
  }
  for (let index = begin + 4 * count; index < length; index++) bytes[index]! ^= mask[(index + offset) & 3]!;
}

/** A whole frame of one message; servers mask nothing. */
export function frameOf(opcode: number, ...payload: readonly Buffer[]): Buffer {
  const length = payload.reduce((sum, { length }) => sum + length, 0);
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, ...payload]);
}

export function closeFrame(code: number): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return frameOf(Opcode.close, payload);
}

/** What the RFC has both sides add to the key, so that nobody answers by accident. */
const keySalt = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** The head that grants a WebSocket to who sent `key` and wishes `protocol`. */
export function acceptance(key: string, protocol: string): string {
  const accept = createHash('sha1')
    .update(key + keySalt)
    .digest('base64');
  return (
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`
  );
}
