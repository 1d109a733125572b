/**
 * Turns the WebSocket that an API server of 1.36 passes on (`v5.channel.k8s.io`) into SPDY for a runtime's
 * streaming server, and back: each channel is a stream, the end of the input (channel 255 names the channel that
 * has ended) becomes the end of its stream. What the runtime says of the command's end goes to the client as it
 * comes; when the runtime goes without a word, the client is told so.
 */
import { dataFrame, openingFrames, SpdyReader } from './spdy-frames.ts';
import { StreamDirection } from './stream-direction.ts';
import type { StreamOptions } from './stream-request.ts';
import {
  CloseCode,
  closeFrame,
  FrameReader,
  frameOf,
  Opcode,
  WebSocketProtocolError,
} from './websocket-frames.ts';

/** How a client and a runtime that speak differently are joined. */
export interface Translation {
  /** What the runtime is sent first. */
  readonly opening: Buffer;
  readonly toRuntime: StreamDirection;
  readonly toClient: StreamDirection;
}

export const streamCloseProtocol = 'v5.channel.k8s.io';
/** What the runtime is spoken to with. */
export const remoteCommandProtocol = 'v4.channel.k8s.io';

const Channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
/** More than this of answers to pings does not pile up for a client that reads nothing. */
const mostPending = 64 * 1024;
/** SPDY counts 24 bits. */
const longestData = 1 << 20;

/** Between a client that speaks {@link streamCloseProtocol} and a runtime that was asked for these streams. */
export function translateStreams(options: StreamOptions): Translation {
  const { stdin, stdout, stderr, tty } = options;
  const wanted: readonly (readonly [keyof typeof Channel, boolean])[] = [
    ['error', true],
    ['stdin', stdin],
    ['stdout', stdout],
    ['stderr', stderr],
    ['resize', tty],
  ];
  const names = wanted.filter(([, isWanted]) => isWanted).map(([name]) => name);
  const streams = new Map<number, number>(names.map((name, index) => [Channel[name], 2 * index + 1]));
  const toClient = clientDirection(streams);
  const toRuntime = runtimeDirection(streams, toClient);
  toClient.onPing = (frame) => toRuntime.send(frame);
  return { opening: openingFrames(names.map((name) => ({ streamtype: name }))), toRuntime, toClient };
}

/** `streams` has the number of each channel's stream. */
function runtimeDirection(streams: ReadonlyMap<number, number>, toClient: StreamDirection): StreamDirection {
  const open = new Set<number>([Channel.stdin, Channel.resize].filter((channel) => streams.has(channel)));
  let channel: number | undefined;
  const write = (to: number, payload: Buffer): void => {
    for (let at = 0; at < payload.length; at += longestData) {
      direction.send(dataFrame(streams.get(to)!, payload.subarray(at, at + longestData)));
    }
  };
  const reader = new FrameReader({
    data(piece, starts) {
      if (starts) channel = undefined;
      const payload = channel === undefined ? piece.subarray(1) : piece;
      channel ??= piece[0];
      if (channel === undefined || payload.length === 0) return;
      if (channel !== Channel.close) {
        if (open.has(channel)) write(channel, payload);
        return;
      }
      const ended = payload[0]!;
      if (open.delete(ended)) direction.send(dataFrame(streams.get(ended)!, noBytes, { last: true }));
    },
    ping: (payload) => answerPing(toClient, payload),
    close: () => direction.finish(),
  });
  const direction = readingDirection(reader, toClient);
  return direction;
}

function clientDirection(streams: ReadonlyMap<number, number>): StreamDirection & {
  onPing: (answer: Buffer) => void;
} {
  const channels = new Map([...streams].map(([channel, stream]) => [stream, channel]));
  const outgoing = [Channel.stdout, Channel.stderr, Channel.error].filter((channel) => streams.has(channel));
  const going = new Set<number>(outgoing);
  let hasStatus = false;
  const send = (channel: number, piece: Buffer): void =>
    direction.send(frameOf(Opcode.binary, Buffer.from([channel]), piece));
  const finish = (): void => {
    if (!hasStatus) send(Channel.error, noStatus);
    direction.send(closeFrame(CloseCode.normal));
    direction.finish();
  };
  const spdy = new SpdyReader({
    data(stream, piece) {
      const channel = channels.get(stream);
      if (channel === undefined || !going.has(channel)) return;
      hasStatus ||= channel === Channel.error;
      send(channel, piece);
    },
    end(stream) {
      const channel = channels.get(stream);
      if (channel !== undefined && going.delete(channel) && going.size === 0) finish();
    },
    pong: (frame) => direction.onPing(frame),
    goAway: finish,
  });
  const direction = Object.assign(new StreamDirection({ read: (chunk) => spdy.read(chunk), end: finish }), {
    onPing: (_answer: Buffer): void => {},
  });
  // An empty message tells the client that the streams stand.
  send(outgoing[0]!, noBytes);
  return direction;
}

const noBytes = Buffer.alloc(0);
const noStatus = Buffer.from(
  JSON.stringify({
    metadata: {},
    status: 'Failure',
    message: 'the container runtime ended the stream without telling how the command ended',
    reason: 'InternalError',
    code: 500,
  }),
);

/** For a WebSocket that carries the bytes of a SPDY connection, whatever they say. */
export function tunnelStreams(): Translation {
  const toClient = new StreamDirection({
    read: (chunk) => toClient.send(frameOf(Opcode.binary, chunk)),
    end: () => toClient.send(closeFrame(CloseCode.normal)),
  });
  const reader = new FrameReader({
    data: (piece) => toRuntime.send(piece),
    ping: (payload) => answerPing(toClient, payload),
    close: () => toRuntime.finish(),
  });
  const toRuntime = readingDirection(reader, toClient);
  return { opening: noBytes, toRuntime, toClient };
}

/** Feeds the reader; a client that breaks the protocol is told so, and the whole ends. */
function readingDirection(reader: FrameReader, toClient: StreamDirection): StreamDirection {
  const direction = new StreamDirection({
    read(chunk) {
      try {
        reader.read(chunk);
      } catch (error) {
        if (!(error instanceof WebSocketProtocolError)) throw error;
        toClient.send(closeFrame(CloseCode.protocolError));
        toClient.finish();
        direction.finish();
      }
    },
  });
  return direction;
}

function answerPing(toClient: StreamDirection, payload: Buffer): void {
  if (toClient.readableLength < mostPending) toClient.send(frameOf(Opcode.pong, payload));
}
