import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../concurrency/virtual-clock.ts';
import { LogOutput } from './log-output.ts';

/** A reader that takes `room` bytes until it is given more, and fails with `failure` when there is one. */
function slowReader(room: number, capacity?: number) {
  const reader = { room, failure: '', taken: '' };
  const clock = new VirtualClock();
  const lost: number[] = [];
  const output = new LogOutput({
    fd: 2,
    clock,
    ...(capacity !== undefined && { capacity }),
    onLost: (lines) => {
      lost.push(lines);
      output.write(`${lines} lost\n`);
    },
    writeBytes(_fd, bytes) {
      if (reader.failure !== '') throw Object.assign(new Error(reader.failure), { code: reader.failure });
      if (reader.room === 0) throw Object.assign(new Error('try again'), { code: 'EAGAIN' });
      const count = Math.min(reader.room, bytes.length);
      reader.room -= count;
      reader.taken += Buffer.from(bytes.subarray(0, count)).toString();
      return count;
    },
  });
  return { reader, clock, lost, output };
}

describe('the output of the log', () => {
  it('gives a slow reader every line, whole and in order', async () => {
    const { reader, clock, output } = slowReader(6);
    for (const line of ['one\n', 'two\n', 'three\n']) output.write(line);
    assert.equal(reader.taken, 'one\ntw');
    reader.room = 3;
    await clock.advance(20);
    assert.equal(reader.taken, 'one\ntwo\nt');
    reader.room = 100;
    output.write('four\n');
    assert.equal(reader.taken, 'one\ntwo\nthree\nfour\n');
  });

  it('sets no timer while the reader keeps up', () => {
    const { clock, output } = slowReader(100);
    output.write('one\n');
    assert.equal(clock.nextTimer(), undefined);
  });

  it('keeps no more than its capacity and tells what was lost', async () => {
    const { reader, clock, lost, output } = slowReader(0, 8);
    assert.equal(output.problem, undefined);
    for (const line of ['one\n', 'two\n', 'six\n', 'ten\n']) output.write(line);
    assert.equal(output.problem, '2 lines of the log could not be written');
    reader.room = 100;
    await clock.advance(20);
    assert.equal(reader.taken, 'one\ntwo\n2 lost\n');
    assert.deepEqual(lost, [2]);
    assert.equal(output.problem, undefined);
  });

  it('outlives an output that is broken', () => {
    const { reader, lost, output } = slowReader(100);
    reader.failure = 'ENOSPC';
    output.write('one\n');
    assert.deepEqual(lost, []);
    reader.failure = '';
    output.write('two\n');
    assert.equal(reader.taken, 'two\n1 lost\n');
  });
});
