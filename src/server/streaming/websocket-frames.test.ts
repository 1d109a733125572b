import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { maskedFrame } from '../fixtures/masked-frame.ts';
import {
  acceptance,
  closeFrame,
  FrameReader,
  frameOf,
  Opcode,
  WebSocketProtocolError,
} from './websocket-frames.ts';

/** What a reader tells of these chunks: messages put together, pings, and whether the client has gone. */
function heard(chunks: readonly Buffer[]) {
  const messages: string[] = [];
  const pings: string[] = [];
  let closed = false;
  const reader = new FrameReader({
    data: (piece, starts) => {
      if (starts) messages.push('');
      messages.push(messages.pop()! + piece.toString('latin1'));
    },
    ping: (payload) => void pings.push(payload.toString('latin1')),
    close: () => void (closed = true),
  });
  for (const chunk of chunks) reader.read(Buffer.from(chunk));
  return { messages, pings, closed };
}

const message = fc.record({
  parts: fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 4 }),
  ping: fc.option(fc.uint8Array({ maxLength: 125 })),
});
const latin = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');

describe('frames of a WebSocket', () => {
  it('are read alike however they are cut', () => {
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 6 }),
        fc.array(fc.nat(2000), { maxLength: 12 }),
        (all, cuts) => {
          const frames = all.flatMap(({ parts, ping }) =>
            parts.flatMap((part, index) => [
              maskedFrame(
                index === 0 ? Opcode.binary : Opcode.continuation,
                part,
                index === parts.length - 1,
              ),
              // Control frames may stand between the parts of a message.
              ...(ping && index === 0 ? [maskedFrame(Opcode.ping, ping)] : []),
            ]),
          );
          const bytes = Buffer.concat([...frames, maskedFrame(Opcode.close, Buffer.alloc(0))]);
          const places = [
            0,
            ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
            bytes.length,
          ];
          const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
          assert.deepEqual(heard(chunks), {
            messages: all.map(({ parts }) => parts.map(latin).join('')),
            pings: all.flatMap(({ ping }) => (ping ? [latin(ping)] : [])),
            closed: true,
          });
        },
      ),
    );
  });

  it('of every length are read, and written', () => {
    for (const length of [0, 125, 126, 65_535, 65_536, 100_000]) {
      const payload = Buffer.alloc(length, 'q');
      assert.deepEqual(heard([maskedFrame(Opcode.text, payload)]).messages, [payload.toString()]);
      const written = frameOf(Opcode.binary, payload);
      const head = length < 126 ? 2 : length < 65_536 ? 4 : 10;
      assert.equal(written.length, head + length);
      const told =
        head === 2 ? written[1] : head === 4 ? written.readUInt16BE(2) : Number(written.readBigUInt64BE(2));
      assert.equal(told, length);
    }
  });

  it('that break the protocol are refused, and nothing makes the reader fail otherwise', () => {
    const broken = [
      frameOf(Opcode.binary, Buffer.from('not masked')),
      Buffer.from([0xc2, 0x80, 0, 0, 0, 0]),
      maskedFrame(3, Buffer.from('x')),
      maskedFrame(11, Buffer.from('x')),
      maskedFrame(Opcode.continuation, Buffer.from('x')),
      Buffer.concat([
        maskedFrame(Opcode.binary, Buffer.from('x'), false),
        maskedFrame(Opcode.binary, Buffer.from('y')),
      ]),
      maskedFrame(Opcode.ping, Buffer.alloc(126)),
      maskedFrame(Opcode.ping, Buffer.from('x'), false),
      Buffer.from([0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    ];
    for (const frame of broken) {
      assert.throws(() => heard([frame]), WebSocketProtocolError, frame.subarray(0, 8).toString('hex'));
    }
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 }), (chunks) => {
        try {
          heard(chunks.map((chunk) => Buffer.from(chunk)));
        } catch (error) {
          assert.ok(error instanceof WebSocketProtocolError);
        }
      }),
    );
  });

  it('greet a client as the RFC has it', () => {
    const head = acceptance('dGhlIHNhbXBsZSBub25jZQ==', 'v5.channel.k8s.io');
    assert.match(head, /^HTTP\/1\.1 101 /);
    assert.match(head, /\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/);
    assert.match(head, /\r\nSec-WebSocket-Protocol: v5\.channel\.k8s\.io\r\n\r\n$/);
    assert.deepEqual(closeFrame(1000), Buffer.from([0x88, 2, 0x03, 0xe8]));
  });
});
