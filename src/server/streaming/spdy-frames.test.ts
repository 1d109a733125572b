import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { constants, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { dataFrame, openingFrames, SpdyProtocolError, SpdyReader } from './spdy-frames.ts';

function heard(chunks: readonly Uint8Array[]) {
  const data = new Map<number, string>();
  const told: string[] = [];
  const reader = new SpdyReader({
    data: (stream, piece) => void data.set(stream, (data.get(stream) ?? '') + piece.toString('latin1')),
    end: (stream) => void told.push(`end ${stream}`),
    pong: (frame) => void told.push(`pong ${frame.toString('hex')}`),
    goAway: () => void told.push('go away'),
  });
  for (const chunk of chunks) reader.read(Buffer.from(chunk));
  return { data: [...data], told };
}

const control = (type: number, flags: number, content: readonly number[]) =>
  Buffer.from([0x80, 3, 0, type, flags, 0, 0, content.length, ...content]);

describe('frames of SPDY', () => {
  it('open streams with headers that a zlib of SPDY understands', () => {
    const frames = openingFrames([{ streamtype: 'error' }, { streamtype: 'stdin' }]);
    let rest = frames;
    const blocks: Buffer[] = [];
    for (const id of [1, 3]) {
      assert.equal(rest.readUInt32BE(0), 0x80030001);
      const length = rest.readUIntBE(5, 3);
      assert.equal(rest.readUInt32BE(8), id);
      blocks.push(rest.subarray(8 + 10, 8 + length));
      rest = rest.subarray(8 + length);
    }
    assert.equal(rest.length, 0);
    const compressed = Buffer.concat(blocks);
    // A preset dictionary is announced, that of SPDY.
    assert.equal(compressed.subarray(0, 6).toString('hex'), '78bbe3c6a7c2');
    assert.equal(compressed.readUInt16BE(0) % 31, 0);
    const text = inflateRawSync(compressed.subarray(6), { finishFlush: constants.Z_SYNC_FLUSH });
    const block = (value: string) => `\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05${value}`;
    assert.equal(text.toString(), block('error') + block('stdin'));
  });

  it('are read alike however they are cut', () => {
    const bytes = Buffer.concat([
      control(2, 0, [0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9]),
      control(4, 0, [0, 0, 0, 0]),
      dataFrame(1, Buffer.from('out')),
      control(6, 0, [0, 0, 0, 4]),
      control(6, 0, [0, 0, 0, 3]),
      dataFrame(3, Buffer.alloc(0)),
      dataFrame(3, Buffer.from('err'), { last: true }),
      dataFrame(1, Buffer.from('put')),
      control(9, 0, [0, 0, 0, 1, 0, 0, 1, 0]),
      control(3, 0, [0, 0, 0, 1, 0, 0, 0, 5]),
      control(7, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
    ]);
    const expected = {
      data: [
        [1, 'output'],
        [3, 'err'],
      ],
      told: ['pong 800300060000000400000004', 'end 3', 'end 1', 'go away'],
    };
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 20 }), (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        assert.deepEqual(heard(places.slice(1).map((end, at) => bytes.subarray(places[at], end))), expected);
      }),
    );
  });

  it('of another protocol are refused', () => {
    assert.throws(() => heard([Buffer.from('80020001000000', 'hex'), Buffer.alloc(8)]), SpdyProtocolError);
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 }), (chunks) => {
        try {
          heard(chunks);
        } catch (error) {
          assert.ok(error instanceof SpdyProtocolError);
        }
      }),
    );
  });
});
